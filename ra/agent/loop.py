"""When does what happen? One prompt, from the user's words to the answer: model call, tools, model call, answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from ra.agent.calls import Calls
from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.limits import Limits
from ra.agent.turn import Turn
from ra.core import errors
from ra.core.events import Outcome, Rotated, RunEnded, Warned
from ra.core.facts import Fact, Failed, Interrupted, Said
from ra.core.facts import Rotated as RotatedFact
from ra.core.functions import Emit
from ra.core.messages import Message
from ra.core.model import Reply

Compose = Callable[[Message], Awaitable[Sequence[Fact]]]
"""What the run's requests stand on: Configured and Noticed facts, as the strategy has it. Called once per run."""


class Loop:
    """The agent of one session. `run` is one prompt; everything that must outlive it is in the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        turn: Turn,
        calls: Calls,
        hooked: Hooked,
        compose: Compose,
        limits: Limits,
        rotate: Callable[[], RotatedFact | None] = lambda: None,
        finished: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.journal = journal
        self.turn = turn
        self.calls = calls
        self.hooked = hooked
        self.compose = compose
        self.limits = limits
        self.rotate = rotate
        self.finished = finished
        self.clock = clock

    async def run(self, message: Message, emit: Emit) -> None:
        """Work until there is an answer or a reason to stop; the last event is RunEnded, whatever happens."""
        spent_before = self.turn.spent
        self.turn.begin(emit)
        self.calls.begin()
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
            self.calls.close("interrupted by the user; it may or may not have run")
            self.journal.record(*self.turn.partial(), Interrupted("user"))
        except TimeoutError:
            if not deadline.expired():
                raise
            outcome, error = "limit", f"Stopped by maxDuration: {self.limits.seconds:g} s are over."
            self.calls.close("stopped by maxDuration; it may or may not have run")
            self.journal.record(*self.turn.partial(), Interrupted("maxDuration"))
        except errors.Stopped as stop:
            outcome, error = "limit", str(stop)
            self.calls.close(f"not run: {stop}")
            self.journal.record(*self.turn.given_up(error), Interrupted(error))
        except errors.RaError as failure:
            outcome, error = "failed", str(failure)
            self.calls.close(f"not run: {failure}")
            self.journal.record(*self.turn.given_up(error), Failed(type(failure).__name__, error))
            for warning in await self.hooked.on_error(failure):
                emit(Warned(warning))
        self.finished()
        spent = self.turn.spent
        if self.journal.torn_off and outcome == "answered":
            error = "The answer is complete, but the session could not be saved."
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
        while True:
            spent = self.turn.spent
            self.limits.check(
                iteration=self.turn.iteration + 1,
                usage=spent.usage - before.usage,
                dollars=spent.dollars - before.dollars,
                seconds=self.clock() - started,
                expected=(self.turn.engine.measure(exact=True) or 0) if self.limits.tokens else 0,
            )
            reply = await self.turn.take()
            if not reply.message.calls:
                return reply
            await self.calls.run(reply.message.calls, emit)
            await self.hooked.after_loop_iteration()
