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
from ra.core.functions import Emit, Price
from ra.core.messages import Message, Text
from ra.core.model import Level, Reply, Request, Usage
from ra.core.ports import Provider

BREATH_S = 0.003  # a stream that comes faster than it is read must not hold up a face's keyboard for longer
MAX_REFITS = 3  # each overflow teaches something; a server that keeps refusing is not asked for ever


class Tally(msgspec.Struct, frozen=True):
    """What was spent so far. `priced` is False once a call had no known price."""

    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)
    priced: bool = True

    def plus(self, usage: Usage, dollars: Decimal | None) -> "Tally":
        return Tally(self.usage + usage, self.dollars + (dollars or 0), self.priced and dollars is not None)

    def dollars_since(self, before: "Tally") -> str:
        return str(self.dollars - before.dollars) if self.priced else ""


class _Underway(msgspec.Struct):
    """A call on its way: what it has said and told so far. Whatever ends it, this much was paid for."""

    request: Request
    began: float
    text: str = ""
    usage: Usage = Usage()
    heard: bool = False  # something of the present attempt's answer has come
    message: Message | None = None  # the whole answer, once it is there


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
        self._underway: _Underway | None = None
        self._told_of_estimate = False
        self._sizes = Sizes()

    @property
    def model(self) -> str:
        return self.engine.configured.model if self.engine.configured else ""

    def begin(self, emit: Emit) -> None:
        self.emit = emit
        self.iteration = self.compactions = 0
        self.last_text = ""
        self._underway = None
        self._told_of_estimate = False

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
        """What the model had said when it was interrupted, and its bill: the next prompt sees it."""
        call, self._underway = self._underway, None
        if call is None or not (call.heard or call.text.strip()):
            return ()
        self.last_text = call.text or self.last_text
        if not call.text.strip():
            return (self._bill(None, call),)
        said = Said(Message("assistant", (Text(f"{call.text}\n[interrupted]"),), model=self.model))
        return (said, self._bill(said.message, call))

    def given_up(self, reason: str) -> tuple[Fact, ...]:
        """What had come of an answer that failed or was stopped under way, and its bill: never sent again."""
        call, self._underway = self._underway, None
        if call is None or not call.heard:
            return ()
        said = call.message or Message("assistant", (Text(call.text),) if call.text else (), model=self.model)
        return (Cut(said, reason), self._bill(said, call))

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
        breathed = time.monotonic()
        call = self._underway = _Underway(request, breathed)
        reply: Reply | None = None
        async for delta in self.provider.stream(request):
            if time.monotonic() - breathed > BREATH_S:
                await asyncio.sleep(0)
                breathed = time.monotonic()
            match delta:
                case Reply():
                    reply = delta
                    call.message, call.usage, call.heard = reply.message, reply.usage, True
                case Usage():
                    call.usage, call.heard = delta, True
                case Broken(message, usage, reason):
                    call.usage = usage
                    self._record(Cut(message, reason), call)
                    call.usage, call.heard = Usage(), False
                case TextDelta() | ThinkingDelta() | CallDelta() | Retrying():
                    await self._relay(delta)
                case _:
                    assert_never(delta)
        if reply is None:
            raise BadStream(f"{self.provider.name} ended its stream without an answer.")
        self.last_text = reply.message.text or self.last_text
        reply = await self.hooked.after_model_response(reply)
        self._underway = None
        self._record(Said(reply.message), call)
        if assembly.tokens is not None:  # it was counted anyway: what the provider counted calibrates
            self.engine.observe_usage(reply.usage)
        if reply.stop == "length":
            self.emit(Warned(f"The answer was cut at {request.max_output} output tokens; ask to go on for the rest."))
        return reply

    async def _relay(self, delta: TextDelta | ThinkingDelta | CallDelta | Retrying) -> None:
        if (call := self._underway) is not None:
            match delta:
                case TextDelta(text):
                    call.text += text
                case Retrying(restart=True):
                    call.text = ""
            call.heard = call.heard or not isinstance(delta, Retrying)
        for warning in await self.hooked.on_stream_chunk(delta):
            self.emit(Warned(warning))
        self.emit(delta)

    def charge(self, model: str, usage: Usage, seconds: float, *, purpose: Literal["planner", "agent"]) -> None:
        """Put a call beside the conversation into the ledger, and into what this run has spent."""
        dollars = self.price(model, usage)
        self.spent = self.spent.plus(usage, dollars)
        amount = "" if dollars is None else str(dollars)
        self.journal.record(Spent(model, usage, amount, purpose=purpose, seconds=round(seconds, 3)))

    def _record(self, answer: Said | Cut, call: _Underway) -> None:
        """An answer and its bill, in one: a crash leaves both or neither."""
        self.journal.record(answer, self._bill(answer.message, call))

    def _bill(self, answer: Message | None, call: _Underway) -> Spent:
        request = call.request
        estimated = call.usage == Usage()
        usage = self._estimate(answer, request) if estimated else call.usage
        dollars = self.price(request.model, usage)
        self.spent = self.spent.plus(usage, dollars)
        spent = Spent(
            request.model,
            usage,
            "" if dollars is None else str(dollars),
            parts=self._sizes.of(request),
            seconds=round(time.monotonic() - call.began, 3),
            estimated=estimated,
        )
        self.emit(TurnEnded(self.iteration, request.model, usage, spent.dollars))
        return spent

    def _estimate(self, answer: Message | None, request: Request) -> Usage:
        """What a call cost whose provider told nothing: it was paid for nevertheless, and limits must see it."""
        if not self._told_of_estimate:
            self._told_of_estimate = True
            self.emit(Warned(f"{self.provider.name} did not tell what the call used; tokens and cost are estimated."))
        count = self.engine.estimator
        output = count.scaled(count.message(answer)) if answer else 0
        return Usage(count.request(request), output)


async def whole(provider: Provider, request: Request) -> Reply:
    """An answer without its deltas, for side calls. The stream is closed however this ends: a call that is given up is
    hung up on."""
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                return item
    raise BadStream(f"{provider.name} ended its stream without an answer.")
