"""Who may write a session? One process, and the right ends with it, however it ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ra.core.errors import SessionInUse, StoreError
from ra.timeline.schema import make_private


class WriterLock:
    """An flock on a file of the session's own. The kernel lets go of it when the holder dies, even by `kill -9`.

    flock and not a POSIX record lock, because it also excludes a second writer inside the same process.
    """

    def __init__(self, directory: Path, session: str) -> None:
        self._path = directory / f"{session}.lock"
        self._file = self._take(session)

    def _take(self, session: str) -> int:
        while True:
            try:
                make_private(self._path.parent)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StoreError(
                    f"{self._path} cannot be made ({error.strerror}), so session {session} cannot be recorded. "
                    "Set app.dataDir or RA_HOME to a directory that you can write to, or run with --no-session."
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(file, 20, 0).decode("ascii", "replace").strip()
                os.close(file)
                raise SessionInUse(
                    f"Session {session} is in use by another process{f' ({holder})' if holder else ''}. "
                    f"Wait until it is done, or go on in a copy: --resume {session} --fork."
                ) from error
            # The holder before us removes its file before it lets go: a lock on a removed file guards nothing.
            if _is_still(self._path, file):
                with suppress(OSError):  # who holds it is a courtesy to others: a full disk does not matter
                    os.ftruncate(file, 0)
                    os.pwrite(file, str(os.getpid()).encode(), 0)
                return file
            os.close(file)

    def release(self) -> None:
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def _is_still(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
