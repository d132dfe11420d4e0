"""How are files read and written safely? Regular files only, bounded reads, atomic writes that keep the mode."""

import contextlib
import os
import stat
import time
from typing import BinaryIO

from ra.tools.paths import shown
from ra.tools.tool import Mistake

MAX_EDIT_BYTES = 50_000_000


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading. Raises Mistake for folders, pipes and devices, which could block or never end."""
    try:
        # Not blocking: opening a pipe without a writer would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Mistake(_why(path, error)) from error
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        raise Mistake(
            f"{shown(path)} is {_KINDS.get(stat.S_IFMT(kind), 'not a regular file')}; only files can be read."
        )
    os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def read_whole(path: str) -> bytes:
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MAX_EDIT_BYTES:
            raise Mistake(f"{shown(path)} has {size} bytes; files over {MAX_EDIT_BYTES} are changed with Bash.")
        return file.read(MAX_EDIT_BYTES + 1)


def replace_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all: a new file takes the old one's place, with its mode and owner."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        old = os.stat(path) if os.path.lexists(path) else None
        if old and not stat.S_ISREG(old.st_mode):
            raise Mistake(f"{shown(path)} is {_KINDS.get(stat.S_IFMT(old.st_mode), 'not a regular file')}.")
        if old and not os.access(path, os.W_OK):
            raise Mistake(f"{shown(path)} is read-only.")
        _swap_in(folder, path, data, old)
    except OSError as error:
        raise Mistake(_why(path, error)) from error


def _swap_in(folder: str, path: str, data: bytes, old: os.stat_result | None) -> None:
    # Not tempfile, which costs every start 4 ms.
    draft = os.path.join(folder, f".ra-{os.getpid()}-{time.monotonic_ns()}.tmp")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if old:
            os.chmod(draft, stat.S_IMODE(old.st_mode))
            with contextlib.suppress(PermissionError):  # only root may give files away
                os.chown(draft, old.st_uid, old.st_gid)
        else:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(draft, 0o666 & ~mask)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def why_not(path: str, error: OSError) -> str:
    """An operating system's error as a sentence for the model."""
    return f"{shown(path)}: {error.strerror or error}."


def _why(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{shown(path)} does not exist.{_near(path)}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{shown(path)}: a file stands where a folder would have to be."
    return why_not(path, error)


def _near(path: str) -> str:
    """Names that may have been meant."""
    from difflib import get_close_matches  # only for a path that is wrong

    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f" Nor does the folder {shown(folder)}." if folder else ""
    close = get_close_matches(name, names[:5000], n=3, cutoff=0.6)
    return f" Did you mean {', '.join(shown(found) for found in close)}?" if close else ""


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
