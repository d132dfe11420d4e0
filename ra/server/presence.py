"""Knows which servers use this data folder: each holds a lock for as long as it lives."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ra.core.errors import SessionInUse
from ra.timeline.sqlite_file import WriterLock

LOOK_S = 1.0  # how long the result of a look at the other servers is valid
_NAME = re.compile(r"[0-9a-f]{12}")


class Presence:
    """This server among those of the folder. The kernel releases a lock with its process, even after `kill -9`."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.id = os.urandom(6).hex()
        self._folder = folder / "servers"
        self._clock = clock
        self._lock = WriterLock(self._folder, self.id)
        self._looked: float | None = None
        self._alone = True

    def alive(self, server: str) -> bool:
        """Whether that server still runs. Removes what a dead server left behind."""
        if server == self.id:
            return True
        if not _NAME.fullmatch(server) or not (self._folder / f"{server}.lock").exists():
            return False
        try:
            WriterLock(self._folder, server).release()
        except SessionInUse:
            return True
        return False

    @property
    def alone(self) -> bool:
        """Whether no other server runs on this folder, at most a second ago."""
        now = self._clock()
        if self._looked is None or now >= self._looked + LOOK_S:
            self._looked = now
            other_servers = [path.stem for path in self._folder.glob("*.lock") if path.stem != self.id]
            living = [other for other in other_servers if self.alive(other)]
            self._alone = not living
        return self._alone

    def close(self) -> None:
        self._lock.release()
