"""What would a session have cost? Its calls again, one after the other, against a simulated prompt cache."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple, Protocol

from ra.bench.identifiers import Sight, asked
from ra.bench.trace import Call, Trace
from ra.context.compaction.names import spoken
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message
from ra.core.model import Usage
from ra.core.value import Value, encode
from ra.costs.prices import PriceRow
from ra.costs.promptcache import CacheRules, Piece, PromptCache


class Sent(NamedTuple):
    """What a strategy sends: the messages, where its marks stand, and calls of its own that it made before."""

    messages: Sequence[Message]
    marks: Sequence[int]
    rewritten: bool = False
    asides: Sequence["Aside"] = ()


class Aside(NamedTuple):
    """A call that is no turn (a summary, a plan): what it read of the conversation, what it added, what it wrote."""

    messages: Sequence[Message]
    added: int
    output: int
    row: PriceRow | None = None  # of another model, which reads only what is added


class Strategy(Protocol):
    """Decides what each call of a trace sees."""

    name: str

    def hear(self, event: TimelineEvent) -> None:
        """A fact of the recorded conversation."""
        ...

    def send(self, call: Call) -> Sent:
        """The request in place of this call."""
        ...

    def billed(self, call: Call, usage: Usage, dollars: Decimal) -> None:
        """What the request cost."""
        ...

    def close(self) -> None: ...


class Point(Value, frozen=True):
    """One call of a replay: when it was, how large its request, what all calls so far have cost."""

    time: float
    window: int
    cost: float


class Row(Value, frozen=True):
    """A strategy on a trace. `recall` is the share of the names used again that were visible when they were."""

    strategy: str
    cost: float
    hit_rate: float
    peak: int
    rewrites: int
    recall: float
    lost: int = 0  # caches that were lost for reasons outside the conversation
    points: tuple[Point, ...] = ()


class Market(NamedTuple):
    """What a model costs and how its provider caches."""

    row: PriceRow
    rules: CacheRules


class Memory:
    """What all replays of a trace share: names and pieces by message, and the names that each call needs."""

    def __init__(self, trace: Trace) -> None:
        self.names: dict[int, tuple[Message, frozenset[str]]] = {}
        self.pieces: dict[int, tuple[Message, list[Piece]]] = {}
        self.needs: list[frozenset[str]] = []
        calls = {call.place: call for call in trace.calls}
        seen: set[str] = set()
        for place, event in enumerate(trace.events):
            if place in calls:
                self.needs.append(asked(calls[place].message) & seen)
            if isinstance(event.fact, Said):
                names = spoken(event.fact.message)
                self.names[id(event.fact.message)] = (event.fact.message, names)
                seen |= names


class Billing:
    """The provider's side: requests in, usage and prices out. Another model has another cache."""

    def __init__(self, trace: Trace, memory: Memory, market: Callable[[str], Market]) -> None:
        self._trace = trace
        self._known = memory.pieces
        self._market = market
        self._caches: dict[str, PromptCache] = {}
        self._base = Piece(trace.base, 0)

    def bill(self, sent: Sent, call: Call, *, broken: bool = False) -> tuple[Usage, Decimal]:
        """One request and its price. `broken`: something outside the conversation has spoilt the cache."""
        market, cache = self._place(call)
        if broken:
            cache.clear()
        aside = sum((self._aside(one, call) for one in sent.asides), Decimal(0))
        pieces, ends = self._pieces(sent.messages)
        marks = [0, *(ends[index] for index in sent.marks)]
        input = cache.send(pieces, now=call.time, marks=marks)
        usage = Usage(input.input, call.output, input.cache_read, input.cache_write)
        return usage, aside + market.row.price(usage)

    def expects(self, sent: Sent, call: Call) -> Usage:
        """How the request would be billed."""
        pieces, ends = self._pieces(sent.messages)
        marks = [0, *(ends[index] for index in sent.marks)]
        return self._place(call)[1].look(pieces, now=call.time, marks=marks)

    def _place(self, call: Call) -> tuple[Market, PromptCache]:
        market = self._market(call.model)
        if call.model not in self._caches:
            self._caches[call.model] = PromptCache(market.rules)
        return market, self._caches[call.model]

    def _aside(self, aside: Aside, call: Call) -> Decimal:
        if aside.row is not None:
            return aside.row.price(Usage(aside.added, aside.output))
        market, cache = self._place(call)
        pieces, ends = self._pieces(aside.messages)
        read = cache.look(pieces, now=call.time, marks=ends[-1:])
        return market.row.price(Usage(read.input + read.cache_write + aside.added, aside.output, read.cache_read))

    def _pieces(self, messages: Sequence[Message]) -> tuple[list[Piece], list[int]]:
        """A piece for each block, and the index of the last piece of each message."""
        pieces, ends = [self._base], []
        for message in messages:
            known = self._known.get(id(message))
            if known is None:
                known = self._known[id(message)] = (message, self._blocks(message))
            pieces += known[1]
            ends.append(len(pieces) - 1)
        return pieces, ends

    def _blocks(self, message: Message) -> list[Piece]:
        total = self._trace.size(message)
        if len(message.blocks) < 2:
            return [Piece(total, hash((message.role, encode(message.blocks))))]
        sizes = [self._trace.estimator.message(Message(message.role, (block,))) for block in message.blocks]
        pieces, seen, shared = [], 0, 0
        for block, size in zip(message.blocks, sizes, strict=True):
            seen += size
            tokens = round(total * seen / sum(sizes)) - shared
            shared += tokens
            pieces.append(Piece(tokens, hash((message.role, encode((block,))))))
        return pieces


def replay(
    trace: Trace, memory: Memory, strategy: Strategy, market: Callable[[str], Market], *, as_billed: bool = False
) -> Row:
    """The whole trace under one strategy. What the assistant did is held fixed; only what it saw differs.

    With `as_billed`, a cache that the recorded bill shows as lost is lost here too.
    """
    billing = Billing(trace, memory, market)
    sight = Sight(memory.names)
    cost, read, total, peak, rewrites, lost, needed, seen = Decimal(0), 0, 0, 0, 0, 0, 0, 0
    points: list[Point] = []
    heard = 0
    for call, names in zip(trace.calls, memory.needs, strict=True):
        for event in trace.events[heard : call.place]:
            strategy.hear(event)
        heard = call.place
        sent = strategy.send(call)
        broken = as_billed and _lost(billing.expects(sent, call), call)
        usage, dollars = billing.bill(sent, call, broken=broken)
        strategy.billed(call, usage, dollars)
        sight.look(sent.messages)
        cost += dollars
        read += usage.cache_read
        total += usage.total_input
        peak = max(peak, usage.total_input)
        rewrites += sent.rewritten
        lost += broken
        needed += len(names)
        seen += sight.sees(names)
        points.append(Point(call.time, usage.total_input, float(cost)))
    strategy.close()
    return Row(
        strategy.name,
        float(round(cost, 6)),
        round(read / total, 4) if total else 0.0,
        peak,
        rewrites,
        round(seen / needed, 4) if needed else 1.0,
        lost,
        tuple(points),
    )


def _lost(expected: Usage, call: Call) -> bool:
    """Was a prefix written anew that should have been in the cache? A transcript does not say why: a restart with
    another system prompt, another machine, a provider that forgot."""
    if call.usage is None:
        return False
    missing = expected.cache_read - call.usage.cache_read
    return missing > max(1024, call.usage.total_input // 4)
