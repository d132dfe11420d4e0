"""What could a command change although it must not, and how is that undone? For what no mount can protect."""

import contextlib
import os
import shutil
import stat
from typing import NamedTuple

from ra.tools.paths import shown

MAX_BYTES = 4_000_000
SET_ASIDE = ".set-aside"


class _Was(NamedTuple):
    """A file, a link or a folder as it stood before. `content` is None for what was not there."""

    mode: int
    content: bytes | dict[str, "_Was"] | None


class Guard:
    """Remembers paths before a command and puts them back after it."""

    def __init__(self, paths: list[str]) -> None:
        self._was = {path: _look(path) for path in paths}

    def restore(self) -> list[str]:
        """One line for each path that had been changed."""
        changed = [path for path, was in self._was.items() if _look(path) != was]
        for path in changed:
            _put_back(path, self._was[path])
        return [f"{shown(path)} is protected and was put back; ask the user to change it." for path in changed]


def set_aside(path: str) -> str:
    """Take a protected name that a command made out of effect, without losing what it holds."""
    aside = path + SET_ASIDE
    _remove(aside)
    os.rename(path, aside)
    return f"{shown(path)} is a protected name; what was written is in {shown(aside)}. Ask the user before it is used."


def _look(path: str) -> _Was:
    try:
        status = os.lstat(path)
        if stat.S_ISSOCK(status.st_mode):
            return _Was(0, None)  # a placeholder, which stands for nothing
        if stat.S_ISLNK(status.st_mode):
            return _Was(stat.S_IFLNK, os.fsencode(os.readlink(path)))
        if stat.S_ISDIR(status.st_mode):
            return _Was(status.st_mode, {name: _look(os.path.join(path, name)) for name in sorted(os.listdir(path))})
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return _Was(status.st_mode, f"{status.st_size} {status.st_mtime_ns} {status.st_ino}".encode())
        with open(path, "rb") as file:
            return _Was(status.st_mode, file.read())
    except OSError:
        return _Was(0, None)


def _put_back(path: str, was: _Was) -> None:
    _remove(path)
    if was.content is None:
        return
    if isinstance(was.content, dict):
        os.mkdir(path)
        for name, inner in was.content.items():
            _put_back(os.path.join(path, name), inner)
        os.chmod(path, stat.S_IMODE(was.mode))
    elif was.mode == stat.S_IFLNK:
        os.symlink(os.fsdecode(was.content), path)
    elif stat.S_ISREG(was.mode):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, stat.S_IMODE(was.mode))
        with os.fdopen(handle, "wb") as file:
            file.write(was.content)
        os.chmod(path, stat.S_IMODE(was.mode))


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
