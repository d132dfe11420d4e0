"""A run as its caller sees it: a stream of events that always ends with RunEnded and can be interrupted."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol

import msgspec

from ra.context.compose.strategy import TaskOrigin
from ra.core.asking import Asker
from ra.core.events import Event, RunEnded
from ra.core.functions import Emit
from ra.core.messages import Message
from ra.session.budget import Budget
from ra.session.recipe import Recipe
from ra.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from ra.session.structured import AnswerFormat
    from ra.session.telemetry import RunTrace


class Prompt(msgspec.Struct, frozen=True):
    """A message, its sender, and what answers it. A sub-agent's prompt has the `budget` of its parent run."""

    message: Message
    task: TaskOrigin
    recipe: Recipe
    toolbox: Toolbox
    ask: Asker | None = None
    budget: Budget | None = None
    answer_format: "AnswerFormat | None" = None


class Answering(Protocol):
    """Answers a prompt: a loop, or the handler of an agent file."""

    async def answer(self, prompt: Prompt, emit: Emit) -> None:
        """Emit the events of the run; the last one is always RunEnded."""
        ...


class Run:
    """`async for event in run`. The work runs in its own task, so that tools can report while they run."""

    def __init__(self, answering: Answering, prompt: Prompt, trace: "RunTrace | None" = None) -> None:
        self._answering = answering
        self._trace = trace
        self._prompt = prompt
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self.ended: RunEnded | None = None

    def interrupt(self) -> None:
        """Cancel the run. It records the partial answer and still ends with RunEnded."""
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
        self._task.result()  # a bug raises here, rather than being swallowed

    async def _main(self) -> None:
        try:
            await self._answering.answer(self._prompt, self._emit)
        finally:
            self._queue.put_nowait(None)

    def _emit(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self.ended = event
        if self._trace is not None:
            self._trace.hear(event)
        self._queue.put_nowait(event)
