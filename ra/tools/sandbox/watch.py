"""Watches which folders changed since the last check, through the kernel's inotify, so that only those are read."""

import ctypes
import os
import struct
import sys
import weakref

MOST_FOLDERS = 20_000
_CREATE, _DELETE, _MOVED_FROM, _MOVED_TO = 0x100, 0x200, 0x40, 0x80
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_IS_FOLDER, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _ONLY_FOLDERS | _NO_LINKS
_HEAD = struct.Struct("iIII")


class Changes:
    """`folders`: entries were added or removed in them. `replaced`: folders that are gone, moved or new."""

    def __init__(self) -> None:
        self.folders: set[str] = set()
        self.replaced: set[str] = set()


class Watch:
    """After a lost event, or with too many folders, it reports that it knows nothing any more."""

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}
        self._descriptor = -1
        if sys.platform.startswith("linux"):  # pragma: no branch - macOS has another kernel
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.works = self._descriptor >= 0
        if self.works:
            weakref.finalize(self, os.close, self._descriptor)

    def add(self, folder: str) -> None:
        """Call it before reading the folder: later changes are reported."""
        if not self.works:
            return
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
        if number < 0 or len(self._paths) >= MOST_FOLDERS:
            self.works = os.path.isdir(folder) is False and len(self._paths) < MOST_FOLDERS
            return
        self._paths[number] = folder

    def changes(self) -> Changes | None:
        """The changes since the last call; None if they are unknown."""
        if not self.works:
            return None
        changes = Changes()
        while events := self._read():
            place = 0
            while place < len(events):
                number, mask, _, length = _HEAD.unpack_from(events, place)
                name = os.fsdecode(events[place + _HEAD.size : place + _HEAD.size + length].rstrip(b"\0"))
                place += _HEAD.size + length
                if mask & _OVERFLOW:
                    self.works = False
                    return None
                folder = self._paths.get(number)
                if mask & _IGNORED:
                    self._paths.pop(number, None)
                elif folder is not None:
                    changes.folders.add(folder)
                    if mask & _IS_FOLDER:
                        changes.replaced.add(os.path.join(folder, name))
        return changes

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return b""
