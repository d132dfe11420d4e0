"""Protects what no mount can: finds what a command added or changed without permission, and undoes it.

Works on descriptors of folders only: a command may have replaced a folder with a link, whose target is not ours to
change.
"""

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from ra.system.files import hold_folder, open_regular
from ra.tools.policy.paths import shown

MAX_BYTES = 4_000_000
SET_ASIDE = ".set-aside"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_T = TypeVar("_T")


class _Mark(NamedTuple):
    """Represents contents that are not kept: of a large file, a pipe, a device. No program can set `changed_ns`."""

    size: int
    inode: int
    changed_ns: int


class _Was(NamedTuple):
    """The earlier state of a file, a link or a folder. `content` is None if there was none."""

    mode: int
    content: "bytes | dict[str, _Was] | _Mark | None"


_NOTHING = _Was(0, None)


class Guard:
    """Remembers paths before a command, and the folders of the project above them; restores them after it."""

    def __init__(self, paths: Iterable[str], root: str) -> None:
        paths = list(paths)
        above = sorted({folder for path in paths for folder in parents(path, root)})
        self._root = root
        self._folders = {folder: os.lstat(folder) for folder in above if _is_folder(folder)}
        self._was = {path: _look_at(path) for path in map(_without_links, [*filter(os.path.islink, above), *paths])}

    def restore(self) -> list[str]:
        """One line for each path that had been changed."""
        moved = [_tried(_led_back, *item) for item in self._folders.items() if _is_replaced(item[0])]
        changed = [_tried(self._undone, *item) for item in self._was.items() if _look_at(item[0]) != item[1]]
        return [line for lines in (*moved, *changed) for line in lines]

    def _undone(self, path: str, was: _Was) -> list[str]:
        folder, name = os.path.split(path)
        if was.content is None and not os.path.isdir(folder):
            return []  # it did not exist, and is gone with its folder
        with _way(folder, self._root) as handle:
            lost = list(_put_back(path, name, was, handle))
        notes = [f"{shown(path)} is protected and was put back; ask the user to change it."] if lost != [path] else []
        return [*notes, *(f"{shown(one)} is protected and too large to be put back{_aside(one)}" for one in lost)]


def _aside(path: str) -> str:
    aside = path + SET_ASIDE
    return f"; what was written is in {shown(aside)}. Tell the user." if os.path.lexists(aside) else ". Tell the user."


def _tried(work: Callable[[str, _T], list[str]], path: str, was: _T) -> list[str]:
    """A path that cannot be restored (a full disk) must not prevent the restoration of the others."""
    try:
        return work(path, was)
    except OSError as error:
        return [f"{shown(path)} is protected, was changed and cannot be put back: {error}. Tell the user."]


def parents(path: str, root: str) -> list[str]:
    """The folders between a path and the project, nearest first, without the project itself."""
    folders = []
    while (path := os.path.dirname(path)) != root and len(path) > len(root):
        folders.append(path)
    return folders


def set_aside(path: str) -> str:
    """Disables a protected name that a command created, without losing its contents."""
    folder, name = os.path.split(path)
    aside = path + SET_ASIDE
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), hold_folder(folder) as handle:
        new_name = free_name(name, handle)
        os.rename(name, new_name, src_dir_fd=handle, dst_dir_fd=handle)
        aside = os.path.join(folder, new_name)
    return f"{shown(path)} is a protected name; what was written is in {shown(aside)}. Ask the user before it is used."


def _led_back(folder: str, was: os.stat_result) -> list[str]:
    """Replacing a folder replaces all of its contents: `.git` as a file or a link brings hooks of its own."""
    target = os.path.realpath(folder)
    if _is_folder(target) and os.path.samestat(os.lstat(target), was):
        (above, name), (there, moved) = os.path.split(folder), os.path.split(target)
        with hold_folder(above) as here, hold_folder(there) as elsewhere:
            os.unlink(name, dir_fd=here)
            os.rename(moved, name, src_dir_fd=elsewhere, dst_dir_fd=here)
            if os.path.samestat(os.stat(name, dir_fd=here, follow_symlinks=False), was):  # not replaced meanwhile
                return [
                    f"{shown(folder)} is protected and was moved back from {shown(target)}; ask the user to move it."
                ]
    return [set_aside(folder)]


def _without_links(path: str) -> str:
    """The target of a path, apart from its last part: a link there is guarded itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_folder(name: str, folder: int | None = None) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_replaced(path: str) -> bool:
    return os.path.lexists(path) and not _is_folder(path)


# --- inspection ---


def _look_at(path: str) -> _Was:
    folder, name = os.path.split(path)
    try:
        with hold_folder(folder) as handle:
            return _look(name, handle)
    except OSError:  # its folder is gone, unreadable, or a link now
        return _NOTHING


def _look(name: str, folder: int) -> _Was:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISSOCK(status.st_mode):
            return _NOTHING  # a placeholder of the sandbox
        if stat.S_ISLNK(status.st_mode):
            return _Was(stat.S_IFLNK, os.fsencode(os.readlink(name, dir_fd=folder)))
        if stat.S_ISDIR(status.st_mode):
            with _opened(name, folder) as handle:
                return _Was(status.st_mode, {inner: _look(inner, handle) for inner in sorted(os.listdir(handle))})
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return _Was(status.st_mode, _Mark(status.st_size, status.st_ino, status.st_ctime_ns))
        with open_regular(name, folder=folder) as file:
            return _Was(status.st_mode, file.read())
    except OSError:
        return _NOTHING


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


# --- restoration ---


@contextlib.contextmanager
def _way(folder: str, root: str) -> Iterator[int]:
    """Opens a folder by descriptor.

    Below the project, creates a missing folder, unlocks an unreadable one, and sets aside a link or a file in its
    place.
    """
    below = os.path.relpath(folder, root) if os.path.commonpath((folder, root)) == root else "."
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(hold_folder(root if below != "." else folder))
        for part in below.split(os.sep) if below != "." else ():
            if not _is_folder(part, handle):
                with contextlib.suppress(FileNotFoundError):
                    _put_aside(part, handle)
                os.mkdir(part, dir_fd=handle)
            _open_up(part, handle)
            handle = stack.enter_context(_opened(part, handle))
        yield handle


def _put_back(path: str, name: str, was: _Was, folder: int) -> Iterator[str]:
    """Touches only differences, since not everything could be restored; yields the paths that cannot."""
    if isinstance(was.content, dict):
        if not _is_folder(name, folder):
            _remove(name, folder)
            os.mkdir(name, dir_fd=folder)
        _open_up(name, folder)
        with _opened(name, folder) as handle:
            for inner in sorted({*was.content, *os.listdir(handle)}):
                if inner not in was.content or _look(inner, handle) != was.content[inner]:
                    below = os.path.join(path, inner)
                    yield from _put_back(below, inner, was.content.get(inner, _NOTHING), handle)
            os.fchmod(handle, stat.S_IMODE(was.mode))
    elif isinstance(was.content, _Mark):
        with contextlib.suppress(FileNotFoundError):
            _put_aside(name, folder)  # so that at least nobody mistakes it for the original
        yield path
    else:
        _remove(name, folder)
        if was.content is not None:
            _make(name, was.mode, was.content, folder)


def _make(name: str, mode: int, content: bytes, folder: int) -> None:
    if mode == stat.S_IFLNK:
        os.symlink(os.fsdecode(content), name, dir_fd=folder)
        return
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, how, stat.S_IMODE(mode), dir_fd=folder), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), stat.S_IMODE(mode))


def _open_up(name: str, folder: int) -> None:
    """Makes a folder accessible to ra, which a command may have prevented."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{handle}", mode | stat.S_IRWXU)  # fchmod rejects unreadable files
    finally:
        os.close(handle)


def _put_aside(name: str, folder: int) -> None:
    """Raises FileNotFoundError. Keeps whatever was set aside before."""
    os.stat(name, dir_fd=folder, follow_symlinks=False)
    os.rename(name, free_name(name, folder), src_dir_fd=folder, dst_dir_fd=folder)


def free_name(name: str, folder: int) -> str:
    """An unused name to move something aside to: earlier ones stay."""
    names = (f"{name}{SET_ASIDE}{number or ''}" for number in itertools.count())
    return next(candidate for candidate in names if not exists(candidate, folder))


def exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not _is_folder(name, folder):
            os.unlink(name, dir_fd=folder)
            return
        _open_up(name, folder)
        with _opened(name, folder) as handle:
            for inner in os.listdir(handle):
                _remove(inner, handle)
        os.rmdir(name, dir_fd=folder)
