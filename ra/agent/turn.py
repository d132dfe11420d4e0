"""How is the model called once? Assemble, send, record; after an overflow learn the window and assemble anew."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Literal, assert_never

import msgspec

from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.run import Emit
from ra.agent.thinking import effort, output_limit
from ra.context.compaction.room import too_small
from ra.context.engine import Assembly, Engine
from ra.context.sizes import Sizes
from ra.core.errors import BadStream, Overflowed
from ra.core.events import (
    Broken,
    CallDelta,
    Compacted,
    Retrying,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStarted,
    Warned,
)
from ra.core.facts import Checkpointed, Cut, Fact, Said, Spent
from ra.core.messages import Message, Text
from ra.core.model import Level, Reply, Request, Usage
from ra.core.ports import Provider

BREATH_S = 0.003  # a stream that comes faster than it is read must not hold up a face's keyboard for longer
MAX_REFITS = 3  # each overflow teaches something; a server that keeps refusing is not asked for ever

Price = Callable[[str, Usage], Decimal | None]


class Tally(msgspec.Struct, frozen=True):
    """What was spent so far. `priced` is False once a call had no known price."""

    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)
    priced: bool = True

    def plus(self, usage: Usage, dollars: Decimal | None) -> "Tally":
        return Tally(self.usage + usage, self.dollars + (dollars or 0), self.priced and dollars is not None)

    def dollars_since(self, before: "Tally") -> str:
        return str(self.dollars - before.dollars) if self.priced else ""


class Turn:
    """Model calls of one session. Counts what they cost, also when they fail."""

    def __init__(
        self,
        *,
        journal: Journal,
        engine: Engine,
        provider: Provider,
        price: Price,
        hooked: Hooked,
        level: Level = "off",
        cap: int | None = None,
        learn: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.journal = journal
        self.engine = engine
        self.provider = provider
        self.price = price
        self.hooked = hooked
        self.level = level
        self.cap = cap
        self.learn = learn
        self.spent = Tally()
        self.emit: Emit = lambda _: None
        self.iteration = self.compactions = 0
        self.last_text = ""
        self._streamed = ""
        self._sizes = Sizes()

    @property
    def model(self) -> str:
        return self.engine.configured.model if self.engine.configured else ""

    def begin(self, emit: Emit) -> None:
        self.emit = emit
        self.iteration = self.compactions = 0
        self.last_text = self._streamed = ""

    async def take(self) -> Reply:
        """One answer of the model, recorded and paid. Raises what the provider raises, and Stopped."""
        self.iteration += 1
        self._set_effort()
        force = ""
        for refit in range(MAX_REFITS + 1):
            assembly = await self._assemble(force)
            self.emit(TurnStarted(self.iteration, assembly.tokens, self.engine.window.limit))
            try:
                return await self._send(assembly)
            except Overflowed as error:
                # The one backward edge: what the server said is learned, and the request is made to fit.
                limit = self.engine.learn(error.limit, sent=error.sent)
                if limit is not None:
                    self.learn(limit)
                if refit == MAX_REFITS:
                    raise self._hopeless(error) from error
                force = "overflow"
        raise AssertionError("unreachable: the last refit returns or raises")

    def _hopeless(self, error: Overflowed) -> Overflowed:
        """No request, however short, was taken: then it is what stands before the conversation that is too large."""
        space = self.engine.room(self.engine.measure(exact=True) or 0)
        why = too_small(self.engine.view, space, self.engine.estimator)
        return Overflowed(f"{error} {why}", limit=error.limit, sent=error.sent)

    def count(self, facts: Sequence[Fact]) -> None:
        """Add what summaries and sub-agents cost: limits and the final bill include it."""
        for fact in facts:
            if isinstance(fact, Spent):
                self.spent = self.spent.plus(fact.usage, Decimal(fact.dollars) if fact.dollars else None)

    def partial(self) -> tuple[Fact, ...]:
        """What the model had said when it was interrupted: the next prompt sees it."""
        if not self._streamed.strip():
            return ()
        return (Said(Message("assistant", (Text(f"{self._streamed}\n[interrupted]"),), model=self.model)),)

    def _set_effort(self) -> None:
        """Effort is part of what requests stand on: when `adaptive` steps down, that is a fact."""
        current = self.engine.configured
        if current is None:
            return
        wanted = effort(
            self.level, iteration=self.iteration, cap=self.cap, provider=current.provider, info=self.engine.info
        )
        if wanted != current.effort:
            limit = output_limit(self.engine.info, wanted)
            # Without the base: it opened this run, and would now replace what the run has said since.
            self.journal.record(msgspec.structs.replace(current, effort=wanted, max_output=limit, base=None))

    async def _assemble(self, force: str) -> Assembly:
        if self.hooked.compact:
            self.hooked.compact, force = False, force or "asked by a hook"
        assembly = await self.engine.assemble(force=force)
        checkpoints = [fact for fact in assembly.facts if isinstance(fact, Checkpointed)]
        for fact in checkpoints:
            await self.hooked.before_compaction(fact.strategy, fact.reason, fact.before)
        self.journal.record(*assembly.facts)
        self.count(assembly.facts)
        for fact in checkpoints:
            self.compactions += 1
            self.emit(Compacted(fact))
            await self.hooked.after_compaction(fact)
        for warning in assembly.warnings:
            self.emit(Warned(warning))
        return assembly

    async def _send(self, assembly: Assembly) -> Reply:
        request = await self.hooked.before_model_call(assembly.request)
        self._streamed = ""
        began = breathed = time.monotonic()
        reply: Reply | None = None
        async for delta in self.provider.stream(request):
            if time.monotonic() - breathed > BREATH_S:
                await asyncio.sleep(0)
                breathed = time.monotonic()
            match delta:
                case Reply():
                    reply = delta
                case Broken(message, usage, reason):
                    self._record(Cut(message, reason), usage, request, time.monotonic() - began)
                case TextDelta() | ThinkingDelta() | CallDelta() | Retrying():
                    await self._relay(delta)
                case _:
                    assert_never(delta)
        if reply is None:
            raise BadStream(f"{self.provider.name} ended its stream without an answer.")
        self._streamed = ""
        self.last_text = reply.message.text or self.last_text
        reply = await self.hooked.after_model_response(reply)
        self._record(Said(reply.message), reply.usage, request, time.monotonic() - began)
        if assembly.tokens is not None:  # it was counted anyway: what the provider counted calibrates
            self.engine.observe_usage(reply.usage)
        if reply.stop == "length":
            self.emit(Warned(f"The answer was cut at {request.max_output} output tokens."))
        return reply

    async def _relay(self, delta: TextDelta | ThinkingDelta | CallDelta | Retrying) -> None:
        match delta:
            case TextDelta(text):
                self._streamed += text
            case Retrying(restart=True):
                self._streamed = ""
        for warning in await self.hooked.on_stream_chunk(delta):
            self.emit(Warned(warning))
        self.emit(delta)

    def charge(self, model: str, usage: Usage, seconds: float, *, purpose: Literal["planner", "agent"]) -> None:
        """Put a call beside the conversation into the ledger, and into what this run has spent."""
        dollars = self.price(model, usage)
        self.spent = self.spent.plus(usage, dollars)
        amount = "" if dollars is None else str(dollars)
        self.journal.record(Spent(model, usage, amount, purpose=purpose, seconds=round(seconds, 3)))

    def _record(self, answer: Said | Cut, usage: Usage, request: Request, seconds: float) -> None:
        """An answer and its bill, in one: a crash leaves both or neither."""
        dollars = self.price(request.model, usage)
        self.spent = self.spent.plus(usage, dollars)
        amount = "" if dollars is None else str(dollars)
        parts = self._sizes.of(request)
        self.journal.record(answer, Spent(request.model, usage, amount, parts=parts, seconds=round(seconds, 3)))
        self.emit(TurnEnded(self.iteration, request.model, usage, amount))


async def whole(provider: Provider, request: Request) -> Reply:
    """An answer without its deltas, for side calls. The stream is closed however this ends: a call that is given up is
    hung up on."""
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                return item
    raise BadStream(f"{provider.name} ended its stream without an answer.")
