"""When does what happen? One prompt, from the user's words to the answer: model call, tools, model call, answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.limits import Limits
from ra.agent.run import Emit
from ra.agent.turn import Turn
from ra.core import errors
from ra.core.events import Outcome, Rotated, RunEnded, ToolEnded, ToolStarted, Warned
from ra.core.facts import Fact, Failed, Interrupted, Said
from ra.core.facts import Rotated as RotatedFact
from ra.core.messages import Message, ToolCall, ToolResult, result
from ra.core.model import Reply
from ra.core.ports import Asker
from ra.tools.toolbox import Done, Toolbox

SAME_CALLS = 3  # so many identical calls in a row end the run

Compose = Callable[[Message], Awaitable[Sequence[Fact]]]
"""What the run's requests stand on: Configured and Noticed facts, as the strategy has it. Called once per run."""


class Loop:
    """The agent of one session. `run` is one prompt; everything that must outlive it is in the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        turn: Turn,
        toolbox: Toolbox,
        hooked: Hooked,
        compose: Compose,
        limits: Limits,
        parallel: bool,
        touched: Callable[[ToolCall], Iterable[Fact]] = lambda _: (),
        rotate: Callable[[], RotatedFact | None] = lambda: None,
        finished: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.journal = journal
        self.turn = turn
        self.toolbox = toolbox
        self.hooked = hooked
        self.compose = compose
        self.limits = limits
        self.ask: Asker | None = None  # set by the face for each run
        self.parallel = parallel
        self.touched = touched
        self.rotate = rotate
        self.finished = finished
        self.clock = clock

    async def run(self, message: Message, emit: Emit) -> None:
        """Work until there is an answer or a reason to stop; the last event is RunEnded, whatever happens."""
        spent_before = self.turn.spent
        self.turn.begin(emit)
        self.journal.warn = lambda text: emit(Warned(text))
        started = self.clock()
        answer, error = "", ""
        deadline = asyncio.timeout(self.limits.seconds or None)
        outcome: Outcome
        try:
            async with deadline:
                reply = await self._answer(message, emit, started)
            answer = reply.message.text
            outcome = "refused" if reply.stop == "refused" else "answered" if answer.strip() else "empty"
            await self.hooked.after_loop_complete(reply)
        except asyncio.CancelledError:
            outcome, error = "interrupted", "Interrupted."
            self._close_calls("interrupted by the user; it may or may not have run")
            self.journal.record(*self.turn.partial(), Interrupted("user"))
        except TimeoutError:
            if not deadline.expired():
                raise
            outcome, error = "limit", f"Stopped by maxDuration: {self.limits.seconds:g} s are over."
            self._close_calls("stopped by maxDuration; it may or may not have run")
            self.journal.record(*self.turn.partial(), Interrupted("maxDuration"))
        except errors.Stopped as stop:
            outcome, error = "limit", str(stop)
            self._close_calls(f"not run: {stop}")
            self.journal.record(Interrupted(str(stop)))
        except errors.RaError as failure:
            outcome, error = "failed", str(failure)
            self._close_calls(f"not run: {failure}")
            self.journal.record(Failed(type(failure).__name__, str(failure)))
            for warning in await self.hooked.on_error(failure):
                emit(Warned(warning))
        self.finished()
        spent = self.turn.spent
        if self.journal.torn_off and outcome == "answered":
            outcome, error = "failed", "The answer is complete, but the session could not be saved."
        emit(
            RunEnded(
                outcome=outcome,
                answer=answer or self.turn.last_text,
                session=self.journal.session,
                model=self.turn.model,
                usage=spent.usage - spent_before.usage,
                dollars=spent.dollars_since(spent_before),
                iterations=self.turn.iteration,
                seconds=self.clock() - started,
                compactions=self.turn.compactions,
                error=error,
            )
        )

    async def _answer(self, message: Message, emit: Emit, started: float) -> Reply:
        message = await self.hooked.before_loop_begin(message)
        if rotated := self.rotate():  # before the message is written: it must not count as a sign of life
            self.journal.record(rotated)
            emit(Rotated(rotated))
        self.journal.record(Said(message))
        self.journal.record(*await self.compose(message))
        before = self.turn.spent
        repeated: list[tuple[str, bytes]] = []
        while True:
            spent = self.turn.spent
            self.limits.check(
                iteration=self.turn.iteration + 1,
                usage=spent.usage - before.usage,
                dollars=spent.dollars - before.dollars,
                seconds=self.clock() - started,
            )
            reply = await self.turn.take()
            calls = reply.message.calls
            if not calls:
                return reply
            for call in calls:
                repeated = [*repeated, (call.name, msgspec.json.encode(call.args))][-SAME_CALLS:]
            if len(repeated) == SAME_CALLS and len(set(repeated)) == 1 and not calls[0].broken:
                raise errors.Stopped(f"Stopped: the model made the same call to {calls[0].name} {SAME_CALLS} times.")
            await self._run_tools(calls, emit)
            await self.hooked.after_loop_iteration()

    async def _run_tools(self, calls: Sequence[ToolCall], emit: Emit) -> None:
        """Each call gets exactly one result, recorded before the next begins; neighbours that only read run at once."""
        for batch in self._batches(calls):
            tasks = [asyncio.create_task(self._run_tool(call, emit)) for call in batch]
            try:
                await asyncio.gather(*tasks)
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

    def _batches(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        batches: list[list[ToolCall]] = []
        for call in calls:
            together = self.parallel and self.toolbox.reads_only(call)
            if together and batches and self.toolbox.reads_only(batches[-1][0]):
                batches[-1].append(call)
            else:
                batches.append([call])
        return batches

    async def _run_tool(self, call: ToolCall, emit: Emit) -> None:
        began = self.clock()
        emit(ToolStarted(call))
        allowed = await self.hooked.before_tool_execution(call)
        if isinstance(allowed, ToolResult):
            done = Done(allowed)
        else:
            done = await self.toolbox.run(allowed, ask=self.ask, emit=emit)
        answer = await self.hooked.after_tool_execution(call, done.result)
        self.journal.record(Said(Message("tool", (answer,))), *done.facts, *self.touched(call))
        self.turn.count(done.facts)
        emit(ToolEnded(call, answer, self.clock() - began))

    def _close_calls(self, text: str) -> None:
        """Give calls that have no result one, so that no provider ever refuses this session."""
        for call in self.turn.engine.open_calls():
            self.journal.record(Said(result(call, text, is_error=True)))
