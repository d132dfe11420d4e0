"""How do the tool calls of an answer run? Each gets exactly one result, recorded before anything goes on."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.turn import Turn
from ra.core.asking import Asker
from ra.core.errors import Stopped
from ra.core.events import ToolEnded, ToolStarted
from ra.core.facts import Fact, Said
from ra.core.functions import Emit
from ra.core.messages import Message, ToolCall, ToolResult, result
from ra.tools.toolbox import Done, Toolbox

SAME_CALLS = 3  # so many identical calls in a row end the run


class Calls:
    """Tool calls of one session. `ask` is how the face of this run asks its user."""

    def __init__(
        self,
        *,
        journal: Journal,
        turn: Turn,
        toolbox: Toolbox,
        hooked: Hooked,
        parallel: bool,
        touched: Callable[[ToolCall], Iterable[Fact]] = lambda _: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.toolbox = toolbox
        self.ask: Asker | None = None
        self._journal = journal
        self._turn = turn
        self._hooked = hooked
        self._parallel = parallel
        self._touched = touched
        self._clock = clock
        self._last: list[tuple[str, bytes]] = []

    def begin(self) -> None:
        """A new run: what the model called before does not count as repeated."""
        self._last = []

    async def run(self, calls: Sequence[ToolCall], emit: Emit) -> None:
        """Neighbours that only read run at once, others one after the other. Raises Stopped, HookFailed."""
        self._check(calls)
        for batch in self._batches(calls):
            tasks = [asyncio.create_task(self._run(call, emit)) for call in batch]
            try:
                await asyncio.gather(*tasks)
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

    def close(self, text: str) -> None:
        """Give calls that have no result one, so that no provider ever refuses this session."""
        for call in self._turn.engine.view.open_calls():
            self._journal.record(Said(result(call, text, is_error=True)))

    def _check(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._last = [*self._last, (call.name, msgspec.json.encode(call.args))][-SAME_CALLS:]
        if len(self._last) == SAME_CALLS and len(set(self._last)) == 1 and not calls[0].broken:
            raise Stopped(f"Stopped: the model made the same call to {calls[0].name} {SAME_CALLS} times.")

    def _batches(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        batches: list[list[ToolCall]] = []
        for call in calls:
            together = self._parallel and self.toolbox.reads_only(call)
            if together and batches and self.toolbox.reads_only(batches[-1][0]):
                batches[-1].append(call)
            else:
                batches.append([call])
        return batches

    async def _run(self, call: ToolCall, emit: Emit) -> None:
        began = self._clock()
        emit(ToolStarted(call))
        allowed = await self._hooked.before_tool_execution(call)
        if isinstance(allowed, ToolResult):
            done = Done(allowed)
        else:
            done = await self.toolbox.run(allowed, ask=self.ask, emit=emit)
        answer = await self._hooked.after_tool_execution(call, done.result)
        self._journal.record(Said(Message("tool", (answer,))), *done.facts, *self._touched(call))
        self._turn.count(done.facts)
        emit(ToolEnded(call, answer, self._clock() - began))
