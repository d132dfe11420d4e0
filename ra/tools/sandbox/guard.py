"""What could a command change although it must not, and how is that undone? For what no mount can protect."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from ra.tools.paths import shown

MAX_BYTES = 4_000_000
SET_ASIDE = ".set-aside"
_T = TypeVar("_T")


class _Mark(NamedTuple):
    """Stands for what is not kept: a file that is too large, a pipe, a device. No program can set `changed_ns`."""

    size: int
    inode: int
    changed_ns: int


class _Was(NamedTuple):
    """A file, a link or a folder as it stood before. `content` is None for what was not there."""

    mode: int
    content: "bytes | dict[str, _Was] | _Mark | None"


_NOTHING = _Was(0, None)


class Guard:
    """Remembers paths before a command, and the folders of the project that lead to them; puts them back after it."""

    def __init__(self, paths: Iterable[str], root: str) -> None:
        paths = list(paths)
        above = sorted({folder for path in paths for folder in parents(path, root)})
        self._folders = {folder: os.lstat(folder) for folder in above if _is_folder(folder)}
        self._was = {path: _look(path) for path in [*filter(os.path.islink, above), *paths]}

    def restore(self) -> list[str]:
        """One line for each path that had been changed."""
        moved = [_tried(_led_back, *item) for item in self._folders.items() if _is_replaced(item[0])]
        changed = [_tried(_undone, *item) for item in self._was.items() if _look(item[0]) != item[1]]
        return [line for lines in (*moved, *changed) for line in lines]


def _tried(work: Callable[[str, _T], list[str]], path: str, was: _T) -> list[str]:
    """One path that cannot be put back (a full disk) must not keep the others from it."""
    try:
        return work(path, was)
    except OSError as error:
        return [f"{shown(path)} is protected, was changed and cannot be put back: {error}. Tell the user."]


def _undone(path: str, was: _Was) -> list[str]:
    lost = [f"{shown(one)} was changed and is too large to be put back. Tell the user." for one in _put_back(path, was)]
    return [f"{shown(path)} is protected and was put back; ask the user to change it.", *lost]


def parents(path: str, root: str) -> list[str]:
    """The folders between a path and the project, nearest first, without the project itself."""
    found = []
    while (path := os.path.dirname(path)) != root and len(path) > len(root):
        found.append(path)
    return found


def set_aside(path: str) -> str:
    """Take a protected name that a command made out of effect, without losing what it holds."""
    aside = path + SET_ASIDE
    _remove(aside)
    os.rename(path, aside)
    return f"{shown(path)} is a protected name; what was written is in {shown(aside)}. Ask the user before it is used."


def _led_back(folder: str, was: os.stat_result) -> list[str]:
    """Whoever replaces a folder has all that lies in it: `.git` as a file or a link brings hooks of its own."""
    target = os.path.realpath(folder)
    if _is_folder(target) and os.path.samestat(os.lstat(target), was):
        os.unlink(folder)
        os.rename(target, folder)
        return [f"{shown(folder)} is protected and was moved back from {shown(target)}; ask the user to move it."]
    return [set_aside(folder)]


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_replaced(path: str) -> bool:
    return os.path.lexists(path) and not _is_folder(path)


def _look(path: str) -> _Was:
    try:
        status = os.lstat(path)
        if stat.S_ISSOCK(status.st_mode):
            return _NOTHING  # a placeholder, which stands for nothing
        if stat.S_ISLNK(status.st_mode):
            return _Was(stat.S_IFLNK, os.fsencode(os.readlink(path)))
        if stat.S_ISDIR(status.st_mode):
            return _Was(status.st_mode, {name: _look(os.path.join(path, name)) for name in sorted(os.listdir(path))})
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return _Was(status.st_mode, _Mark(status.st_size, status.st_ino, status.st_ctime_ns))
        with open(path, "rb") as file:
            return _Was(status.st_mode, file.read())
    except OSError:
        return _NOTHING


def _put_back(path: str, was: _Was) -> Iterator[str]:
    """Touch only what differs, since not everything could be made again; gives the paths that cannot."""
    _open_up(os.path.dirname(path))
    if isinstance(was.content, dict):
        if not _is_folder(path):
            _remove(path)
            os.mkdir(path)
        _open_up(path)
        for name in sorted({*was.content, *os.listdir(path)}):
            inner = os.path.join(path, name)
            if name not in was.content or _look(inner) != was.content[name]:
                yield from _put_back(inner, was.content.get(name, _NOTHING))
        os.chmod(path, stat.S_IMODE(was.mode))
    elif isinstance(was.content, _Mark):
        if os.path.lexists(path):
            set_aside(path)
        yield path
    else:
        _remove(path)
        if was.content is not None:
            _make(path, was.mode, was.content)


def _make(path: str, mode: int, content: bytes) -> None:
    if mode == stat.S_IFLNK:
        os.symlink(os.fsdecode(content), path)
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, stat.S_IMODE(mode))
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(path, stat.S_IMODE(mode))


def _open_up(folder: str) -> None:
    """A folder that we can work in: a command may have removed it, or closed it to us as well."""
    os.makedirs(folder, exist_ok=True)
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder, mode | stat.S_IRWXU)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        _open_up(path)
        for name in os.listdir(path):
            _remove(os.path.join(path, name))
        os.rmdir(path)
