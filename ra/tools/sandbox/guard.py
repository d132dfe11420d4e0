"""What could a command change although it must not, and how is that undone? For what no mount can protect.

Everything is done by descriptors of folders: a command may have put a link in a folder's place, and what it leads to is
not ours to mend.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from typing import NamedTuple

from ra.tools.files import held
from ra.tools.paths import shown

MAX_BYTES = 4_000_000
SET_ASIDE = ".set-aside"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Was(NamedTuple):
    """A file, a link or a folder as it stood before. `content` is None for what was not there.

    Of what is too large, or no file, only a `trace` is kept: enough to see a change, not to undo it.
    """

    mode: int
    content: bytes | dict[str, "_Was"] | None
    trace: str = ""


class Guard:
    """Remembers paths before a command and puts them back after it."""

    def __init__(self, paths: list[str]) -> None:
        self._was = {path: _look_at(path) for path in map(_without_links, paths)}

    def restore(self) -> list[str]:
        """One line for each path that had been changed."""
        changed = [path for path, was in self._was.items() if _look_at(path) != was]
        for path in changed:
            _restore(path, self._was[path])
        return [_told(path, self._was[path]) for path in changed]


def _told(path: str, was: _Was) -> str:
    if was.trace:
        return f"{shown(path)} is protected; what was written is in {shown(path + SET_ASIDE)}. Tell the user."
    return f"{shown(path)} is protected and was put back; ask the user to change it."


def set_aside(path: str) -> str:
    """Take a protected name that a command made out of effect, without losing what it holds."""
    folder, name = os.path.split(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), held(folder) as handle:
        _put_aside(name, handle)
    aside = shown(path + SET_ASIDE)
    return f"{shown(path)} is a protected name; what was written is in {aside}. Ask the user before it is used."


def _without_links(path: str) -> str:
    """Where a path leads now, its last part as it is: a link there is guarded itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _look_at(path: str) -> _Was:
    folder, name = os.path.split(path)
    try:
        with held(folder) as handle:
            return _look(name, handle)
    except OSError:  # its folder is gone, or a link now
        return _Was(0, None)


def _look(name: str, folder: int) -> _Was:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISSOCK(status.st_mode):
            return _Was(0, None)  # a placeholder, which stands for nothing
        if stat.S_ISLNK(status.st_mode):
            return _Was(stat.S_IFLNK, os.fsencode(os.readlink(name, dir_fd=folder)))
        if stat.S_ISDIR(status.st_mode):
            with _opened(name, folder) as handle:
                return _Was(status.st_mode, {inner: _look(inner, handle) for inner in sorted(os.listdir(handle))})
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return _Was(status.st_mode, b"", f"{status.st_size} {status.st_mtime_ns} {status.st_ino}")
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            return _Was(status.st_mode, file.read())
    except OSError:
        return _Was(0, None)


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _restore(path: str, was: _Was) -> None:
    folder, name = os.path.split(path)
    if was.content is None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), held(folder) as handle:
            _remove(name, handle)
        return
    _clear_way(folder)
    with held(folder, make=True) as handle:
        _put_back(name, was, handle)


def _clear_way(folder: str) -> None:
    """Set aside what stands where one of the folders was: a link, or a file."""
    parts = [part for part in folder.split(os.sep) if part]
    for depth in range(len(parts)):
        above = os.sep + os.sep.join(parts[:depth])
        try:
            with held(above) as handle:
                status = os.stat(parts[depth], dir_fd=handle, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    _put_aside(parts[depth], handle)
                    return  # nothing is below it any more
        except FileNotFoundError:
            return


def _put_back(name: str, was: _Was, folder: int) -> None:
    if was.trace:
        with contextlib.suppress(FileNotFoundError):
            _put_aside(name, folder)  # so that at least nobody takes it for what it was
        return
    _remove(name, folder)
    if was.content is None:
        return
    if isinstance(was.content, dict):
        os.mkdir(name, dir_fd=folder)
        with _opened(name, folder) as handle:
            for inner, content in was.content.items():
                _put_back(inner, content, handle)
            os.fchmod(handle, stat.S_IMODE(was.mode))
    elif was.mode == stat.S_IFLNK:
        os.symlink(os.fsdecode(was.content), name, dir_fd=folder)
    elif stat.S_ISREG(was.mode):
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, how, stat.S_IMODE(was.mode), dir_fd=folder), "wb") as file:
            file.write(was.content)
            os.fchmod(file.fileno(), stat.S_IMODE(was.mode))


def _put_aside(name: str, folder: int) -> None:
    _remove(name + SET_ASIDE, folder)
    os.rename(name, name + SET_ASIDE, src_dir_fd=folder, dst_dir_fd=folder)


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
