"""Opens, reads and writes files safely: regular files only, links not followed, atomic writes, private data.

Callers pass resolved paths. Somebody could put a link there meanwhile, so the last component is never followed if it
is a link. While one of our commands may be running, `open_without_links` also opens each folder of the path separately.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ra.core.text import shown
from ra.system.secret_names import is_secret

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": PDF,
}
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, because opening a pipe without a writer would wait for ever.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link that was put there meanwhile",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """The path leads to a directory, a pipe, a socket or a device; reading it could block or never end."""

    def __init__(self, path: str, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        super().__init__(errno.EINVAL, f"it is {self.kind}", path)


def media_type(head: bytes) -> str:
    """The media type of an image or PDF, from its first bytes; "" for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _MAGIC.items() if head.startswith(magic)), "")


def similar_names(folder: str, name: str, *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Names in a folder that may have been meant; empty when the folder cannot be listed."""
    from difflib import get_close_matches  # only for a wrong path
    from itertools import islice

    if len(name) > 255:
        return []
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, 5000)]
    except (OSError, ValueError):
        return []
    by_folded = {file_name.casefold(): file_name for file_name in names}
    return [by_folded[match] for match in get_close_matches(name.casefold(), by_folded, n=most, cutoff=cutoff)]


# Reading


def open_regular(path: str | os.PathLike[str], *, folder: int | None = None) -> BufferedReader:
    """Opens a file for reading, relative to the open `folder` if given. Raises OSError, such as NotRegular."""
    descriptor = os.open(path, _READ, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotRegular(os.fspath(path), mode)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def open_resolved(path: str | os.PathLike[str]) -> BufferedReader:
    """Opens the file that a path leads to, following links. Raises OSError and ValueError."""
    return open_regular(os.path.realpath(path))


def owned_bytes(
    path: str | os.PathLike[str], *, bounds: str | os.PathLike[str] | None, max_bytes: int, uid: int | None = None
) -> bytes:
    """The content of a regular file within `bounds` that belongs to the user or root. Links are followed.

    With `bounds`, a file that may hold secrets is refused: a project's link could lead to any file.
    Raises OSError, and ValueError with the reason.
    """
    real = os.path.realpath(path)
    if bounds is not None and not f"{real}/".startswith(os.path.realpath(bounds).rstrip("/") + "/"):
        raise ValueError(f"it leads out of {shown(os.fspath(bounds))} to {shown(real)}")
    if bounds is not None and is_secret(os.path.relpath(real, os.path.realpath(bounds))):
        raise ValueError(f"it leads to {shown(real)}, which may hold secrets")
    with open_regular(real) as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (os.geteuid() if uid is None else uid, 0):
            raise OSError(errno.EPERM, f"it belongs to another user (uid {status.st_uid})")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"its {max(status.st_size, len(content)):,} bytes are more than {max_bytes:,}")
    return content


def owned_text(
    path: str | os.PathLike[str], *, bounds: str | os.PathLike[str] | None, max_bytes: int, uid: int | None = None
) -> str:
    """The content as text; bytes that are not UTF-8 are replaced. Raises as `owned_bytes` does."""
    content = owned_bytes(path, bounds=bounds, max_bytes=max_bytes, uid=uid)
    if b"\0" in content:
        raise ValueError("it is not text")
    return content.decode("utf-8-sig", "replace")


def open_without_links(path: str) -> BufferedReader:
    """Opens a file for reading and follows no link in any folder of its path. Raises OSError."""
    folder, name = os.path.split(path)
    with hold_folder(folder) as handle:
        return open_regular(name or ".", folder=handle)


def make_private(directory: Path) -> None:
    """Creates the missing folders of a path for the user alone. Existing ones keep the mode that their owner chose."""
    if not directory.is_dir():
        make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would let others read the parents


@contextlib.contextmanager
def hold_folder(folder: str, *, make: bool = False) -> Iterator[int]:
    """A folder as a descriptor, which stays valid when the path is replaced. Raises OSError."""
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
def stable_path(folder: str) -> Iterator[str]:
    """A path that keeps leading to this folder, for programs that take paths; the plain path where there is no /proc.

    Raises OSError.
    """
    with hold_folder(folder) as handle:
        name = f"/proc/self/fd/{handle}"
        yield name if os.path.isdir(name) else folder


# Writing


def replace_file(path: str, data: bytes) -> None:
    """Writes a user's file atomically: a new file takes the old one's place, with its mode and owner.

    Creates missing folders. Raises OSError.
    """
    folder, name = os.path.split(path)
    with hold_folder(folder, make=True) as handle:
        status_before = _status(name, handle)
        if status_before and not stat.S_ISREG(status_before.st_mode):
            raise NotRegular(path, status_before.st_mode)
        if status_before and not os.access(name, os.W_OK, dir_fd=handle):
            raise PermissionError(errno.EACCES, "is read-only", path)
        if status_before:
            mode, owner = stat.S_IMODE(status_before.st_mode), (status_before.st_uid, status_before.st_gid)
        else:
            mask = os.umask(0)
            os.umask(mask)
            mode, owner = 0o666 & ~mask, None
        _swap_in(handle, name, data, mode, owner)


def write_private(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o600) -> None:
    """Writes one of our files atomically, readable for the user alone; a folder that is created is private, too.

    Raises OSError.
    """
    folder, name = os.path.split(os.fspath(path))
    make_private(Path(folder or "."))
    handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _swap_in(handle, name, data, mode, None)
    finally:
        os.close(handle)


def create_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Creates a file for the user alone. Raises FileExistsError when it exists: the first of two writers wins."""
    with os.fdopen(os.open(path, _CREATE, 0o600), "wb") as file:
        file.write(data)


def append_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Appends to one of our files, which only the user can read. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
        file.write(data)


def open_lock(path: str | os.PathLike[str]) -> int:
    """The descriptor of a lock file. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def remove_file(path: str) -> None:
    """Removes a file without following links. Raises OSError."""
    folder, name = os.path.split(path)
    with hold_folder(folder) as handle:
        os.unlink(name, dir_fd=handle)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _swap_in(folder: int, name: str, data: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    """Writes a draft next to the file and renames it: after a crash, the file has either the old or the new content."""
    # Without `tempfile`, whose import costs every start 4 ms.
    draft = f".ra-{os.getpid()}-{time.monotonic_ns()}.tmp"
    descriptor = os.open(draft, _CREATE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            if owner:
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.fchown(descriptor, *owner)
            os.fsync(descriptor)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
