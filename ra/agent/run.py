"""How does a face follow a run? As a stream of events that always ends with RunEnded, and that can be interrupted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from ra.core.events import Event, RunEnded
from ra.core.functions import Emit


class Run:
    """`async for event in run`: the work goes on in a task of its own, so that tools can report while they run."""

    def __init__(self, work: Callable[[Emit], Awaitable[None]]) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self.ended: RunEnded | None = None

    def interrupt(self) -> None:
        """End the run soon. It records what there is and still ends with RunEnded."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        self._task = asyncio.create_task(self._main())
        if self._cancelled:
            self._task.cancel()
        try:
            while (event := await self._queue.get()) is not None:
                yield event
        finally:
            if not self._task.done():
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task.result()  # a bug crashes, here and not in silence

    async def _main(self) -> None:
        try:
            await self._work(self._emit)
        finally:
            self._queue.put_nowait(None)

    def _emit(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self.ended = event
        self._queue.put_nowait(event)
