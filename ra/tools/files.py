"""How are files read and written safely? Regular files only, bounded reads, atomic writes that keep the mode.

Paths come here as they were judged: without links. A command that runs meanwhile could put one there, so each folder on
the way is opened by itself, and a link is not followed.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO

from ra.tools.paths import shown
from ra.tools.tool import Mistake

MAX_EDIT_BYTES = 50_000_000


_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def held(folder: str, *, make: bool = False) -> Iterator[int]:
    """A folder as a descriptor: what is put in its place from now on changes nothing. Raises OSError."""
    handle = os.open("/", _FOLDER)
    try:
        for part in folder.split(os.sep):
            if not part:
                continue
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def standing_in(folder: str) -> Iterator[str]:
    """A name for a folder that stays the same one, for programs that take names; the plain one where there is no /proc.

    Raises OSError.
    """
    with held(folder) as handle:
        name = f"/proc/self/fd/{handle}"
        yield name if os.path.isdir(name) else folder


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading. Raises Mistake for folders, pipes and devices, which could block or never end."""
    folder, name = os.path.split(path)
    try:
        with held(folder) as handle:
            # Not blocking: opening a pipe without a writer would wait for ever.
            how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name or ".", how, dir_fd=handle)
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
    folder, name = os.path.split(path)
    try:
        with held(folder, make=True) as handle:
            old = _status(name, handle)
            if old and not stat.S_ISREG(old.st_mode):
                raise Mistake(f"{shown(path)} is {_KINDS.get(stat.S_IFMT(old.st_mode), 'not a regular file')}.")
            if old and not os.access(name, os.W_OK, dir_fd=handle):
                raise Mistake(f"{shown(path)} is read-only.")
            _swap_in(handle, name, data, old)
    except OSError as error:
        raise Mistake(_why(path, error)) from error


def remove_file(path: str) -> None:
    folder, name = os.path.split(path)
    with held(folder) as handle:
        os.unlink(name, dir_fd=handle)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _swap_in(folder: int, name: str, data: bytes, old: os.stat_result | None) -> None:
    # Not tempfile, which costs every start 4 ms.
    draft = f".ra-{os.getpid()}-{time.monotonic_ns()}.tmp"
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, how, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if old:
                os.fchmod(handle, stat.S_IMODE(old.st_mode))
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.fchown(handle, old.st_uid, old.st_gid)
            else:
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(handle, 0o666 & ~mask)
            os.fsync(handle)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
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
    stat.S_IFLNK: "a link that was put there meanwhile",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
