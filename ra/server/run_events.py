"""Writes the events of a run to the database: the first ones at once, further ones in batches."""

import asyncio
from collections.abc import Callable

from ra.core.errors import StoreError
from ra.core.events import Event
from ra.server import responses
from ra.server.queue import Job
from ra.server.run_table import RunTable
from ra.server.runs import MAX_EVENT_BYTES

FLUSH_S = 0.1
MAX_PENDING = 5_000  # events that wait for an unreachable database
FIRST_S = 0.02  # what a fast model says at once is written together with the answer


class EventBuffer:
    """Listens to a job and writes its events, at most ten times a second."""

    def __init__(self, table: RunTable, job: Job) -> None:
        self._table = table
        self._run = job.id
        self._pending: list[tuple[int, bytes]] = []
        self._sizes: list[int] = []
        self._size = 0
        self._dropped = 0
        self._flushing: asyncio.Task[None] | None = None
        self.count = 0
        self._stop_listening: Callable[[], None] | None = job.listen(self._hear)

    def _hear(self, event: Event) -> None:
        frame = responses.frames(event)
        if not frame:
            return
        self.count += 1
        self._pending.append((self.count, frame))
        self._sizes.append(len(frame))
        self._size += len(frame)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_soon())

    async def _flush_soon(self) -> None:
        await asyncio.sleep(FIRST_S)
        while self._pending:
            frames = self._pending[:]
            try:
                await self._table.add_events(self._run, frames, self._drop())
                del self._pending[: len(frames)]
            except StoreError:
                if len(self._pending) > MAX_PENDING:  # the answer will be stored all the same
                    self._pending.clear()
            await asyncio.sleep(FLUSH_S)
        self._flushing = None

    def _drop(self) -> int:
        """The number below which events are dropped because there are too many; 0 for none."""
        before = self._dropped
        while self._size > MAX_EVENT_BYTES and self._dropped < self.count - 1:
            self._size -= self._sizes[self._dropped]
            self._dropped += 1
        return self._dropped + 1 if self._dropped > before else 0

    async def finish(self) -> list[tuple[int, bytes]]:
        """Stops writing and returns the events that were not written yet."""
        self.close()
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
        frames, self._pending = self._pending, []
        return frames

    def close(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
