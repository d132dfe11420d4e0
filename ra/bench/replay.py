"""Replays the calls of a session, one after the other, against a simulated prompt cache."""

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple, Protocol

from ra.bench.measures import Sight, TraceNames
from ra.bench.trace import RecordedCall, Trace
from ra.context.render import SHOWN
from ra.core.facts import TimelineEvent
from ra.core.messages import Message
from ra.core.model import Marks, Section, ToolSpec, Usage
from ra.core.value import Value, encode, same_head
from ra.costs.prices import MILLION, PriceRow
from ra.costs.promptcache import CachePiece, CacheRules, PromptCache


class Sent(NamedTuple):
    """A strategy's request: the messages, the positions of its marks, and its own calls before it."""

    messages: Sequence[Message]
    marks: Sequence[int]
    rewritten: bool = False
    asides: Sequence["Aside"] = ()
    fixed: Sequence[ToolSpec | Section] = ()  # what precedes the messages; the trace's base if unknown
    fixed_marks: Marks = Marks()
    paid: Decimal = Decimal(0)  # the cost of other calls before it
    unmarked: bool = False  # nothing is marked, including what precedes the messages


REREAD_OUTPUT = 80  # tokens of an answer that requests to read something again


class Aside(NamedTuple):
    """A call that is not a turn (a summary, a plan): what it read of the conversation, what it added, what it wrote."""

    messages: Sequence[Message]
    added: int
    output: int
    row: PriceRow | None = None  # of another model, which reads only what is added


class ReplayStrategy(Protocol):
    """Decides what each call of a trace sees."""

    name: str

    def hear(self, event: TimelineEvent) -> None:
        """Handles a fact of the recorded conversation."""
        ...

    def send(self, call: RecordedCall) -> Sent:
        """The request that replaces this call."""
        ...

    def billed(self, call: RecordedCall, usage: Usage, dollars: Decimal) -> None:
        """Reports the cost of the request."""
        ...

    def close(self) -> None: ...


class Point(Value, frozen=True):
    """One call of a replay: its time, the size of its request, the cost of all calls so far.

    `cached` tokens of the request were read from the cache. `rewritten`: the strategy changed what it had sent. `lost`:
    the cache was lost for a reason outside the conversation.
    """

    time: float
    window: int
    cost: float
    cached: int = 0
    rewritten: bool = False
    lost: bool = False
    billed: bool = True  # the recording has a bill


class StrategyResult(Value, frozen=True):
    """A strategy on a trace.

    `recall` is the share of the names used again that were visible at that time; `lines` and `words` are the same for
    lines of 25 characters and more, and for sentences that the user typed. Each also without what only an index shows.
    `with_rereads` is the cost if each call whose lines were gone had read them again first.
    """

    strategy: str
    cost: float
    hit_rate: float
    peak: int
    rewrites: int
    recall: float
    lost: int = 0  # caches that were lost for reasons outside the conversation
    points: tuple[Point, ...] = ()
    lines: float = 1.0
    words: float = 1.0
    recall_without_index: float = 1.0
    lines_without_index: float = 1.0
    words_without_index: float = 1.0
    with_rereads: float = 0.0
    rereads: int = 0


class Market(NamedTuple):
    """A model's prices and its provider's cache rules."""

    row: PriceRow
    rules: CacheRules


class Billing:
    """The provider's side: requests in, usage and prices out. Every model has a cache of its own."""

    def __init__(self, trace: Trace, memory: TraceNames, market: Callable[[str], Market]) -> None:
        self._trace = trace
        self._known = memory.pieces
        self._market = market
        self._caches: dict[str, PromptCache] = {}
        # What another session had put into the cache before the first request, according to its bill.
        first = trace.calls[0].usage if trace.calls else None
        self._warm = first.cache_read if first else 0
        warm_base = min(self._warm, trace.base)
        sizes = [size for size in (warm_base, trace.base - warm_base) if size] or [0]
        self._base = [CachePiece(size, number) for number, size in enumerate(sizes)]
        self._fixed: dict[int, tuple[ToolSpec | Section, CachePiece]] = {}
        # Of the last request: its leading pieces, its messages, all its pieces, and the end of each message.
        self._last: tuple[Sequence[CachePiece], Sequence[Message], list[CachePiece], list[int]] = ((), (), [], [])

    def bill(self, sent: Sent, call: RecordedCall, *, as_billed: bool = False) -> tuple[Usage, Decimal, bool]:
        """One request, its price, and whether its cache was lost for a reason outside the conversation.

        With `as_billed`, the cache contains what the recorded bill shows.
        """
        market, cache = self._place(call)
        aside = sent.paid + sum((self._aside(one, call) for one in sent.asides), Decimal(0))
        pieces, marks = self._request(sent)
        lost = False
        if self._warm:
            cache.revive(pieces, up_to=self._warm, now=call.time)
            self._warm = 0
        if as_billed and call.usage:
            missing = cache.look(pieces, now=call.time, marks=marks).cache_read - call.usage.cache_read
            # A provider may forget for reasons that no transcript shows, and may remember longer than it promises.
            slack = max(1024, call.usage.total_input // 10)
            lost = missing > slack
            if lost:
                cache.forget(pieces, beyond=call.usage.cache_read + slack // 4)
            elif -missing > slack:
                cache.revive(pieces, up_to=call.usage.cache_read + slack // 4, now=call.time)
        input = cache.send(pieces, now=call.time, marks=marks)
        usage = Usage(input.input, call.output, input.cache_read, input.cache_write)
        return usage, aside + market.row.price(usage), lost

    def again(self, call: RecordedCall, usage: Usage, tokens: int) -> Decimal:
        """The cost of reading `tokens` again before this call: one more call, and carrying its request."""
        row = self._market(call.model).row
        reread = Usage(output=REREAD_OUTPUT, cache_read=usage.total_input, cache_write=tokens)
        return row.price(reread)

    def carrying(self, call: RecordedCall, usage: Usage, tokens: int) -> Decimal:
        """The cost of `tokens` more in this request, if they were sent before."""
        rates = self._market(call.model).row.at(usage.total_input + tokens)
        return tokens * rates.cache_read / MILLION

    def _request(self, sent: Sent) -> tuple[list[CachePiece], list[int]]:
        """The pieces of a request, and which of them are marked."""
        head, marks = self._head(sent)
        pieces, ends = self._pieces(head, sent.messages)
        if sent.unmarked:
            return pieces, []
        return pieces, [*marks, *(ends[index] for index in sent.marks)]

    def _head(self, sent: Sent) -> tuple[list[CachePiece], list[int]]:
        if not sent.fixed:
            return self._base, [len(self._base) - 1]
        head = []
        for part in sent.fixed:
            cached = self._fixed.get(id(part))
            if cached is None:
                piece = CachePiece(self._trace.fixed_size(part), hash(encode(part)))
                cached = self._fixed[id(part)] = (part, piece)
            head.append(cached[1])
        tools = sum(isinstance(part, ToolSpec) for part in sent.fixed)
        marked = sent.fixed_marks
        return head, [*([tools - 1] if marked.tools and tools else []), *(tools + index for index in marked.sections)]

    def _place(self, call: RecordedCall) -> tuple[Market, PromptCache]:
        market = self._market(call.model)
        if call.model not in self._caches:
            self._caches[call.model] = PromptCache(market.rules)
        return market, self._caches[call.model]

    def _aside(self, aside: Aside, call: RecordedCall) -> Decimal:
        if aside.row is not None:
            return aside.row.price(Usage(aside.added, aside.output))
        market, cache = self._place(call)
        pieces, ends = self._pieces(self._base, aside.messages)
        read = cache.look(pieces, now=call.time, marks=ends[-1:])
        return market.row.price(Usage(read.input + read.cache_write + aside.added, aside.output, read.cache_read))

    def _pieces(self, head: Sequence[CachePiece], messages: Sequence[Message]) -> tuple[list[CachePiece], list[int]]:
        """A piece for each block, and the index of the last piece of each message."""
        last_head, last_messages, last_pieces, last_ends = self._last
        shared = same_head(last_messages, messages) if list(head) == list(last_head) else 0
        ends = last_ends[:shared]
        pieces = last_pieces[: ends[-1] + 1] if shared else list(head)
        for message in messages[shared:]:
            cached = self._known.get(id(message))
            if cached is None:
                cached = self._known[id(message)] = (message, self._blocks(message))
            pieces += cached[1]
            ends.append(len(pieces) - 1)
        self._last = (head, messages, pieces, ends)
        return pieces, ends

    def _blocks(self, message: Message) -> list[CachePiece]:
        total = self._trace.size(message)
        if len(message.blocks) < 2:
            return [CachePiece(total, hash((message.role, encode(message.blocks))))]
        sizes = [self._trace.estimator.message(Message(message.role, (block,))) for block in message.blocks]
        pieces, position, shared = [], 0, 0
        for block, size in zip(message.blocks, sizes, strict=True):
            position += size
            tokens = round(total * position / sum(sizes)) - shared
            shared += tokens
            pieces.append(CachePiece(tokens, hash((message.role, encode((block,))))))
        return pieces


def replay(
    trace: Trace,
    memory: TraceNames,
    strategy: ReplayStrategy,
    market: Callable[[str], Market],
    *,
    as_billed: bool = False,
) -> StrategyResult:
    """The whole trace under one strategy. The assistant's actions are fixed; only what it saw differs.

    With `as_billed`, the cache contains before each call what the recorded bill shows.
    """
    billing = Billing(trace, memory, market)
    sight = Sight(memory)
    tally = _Tally()
    points: list[Point] = []
    event_count = 0
    again: set[int] = set()  # messages that were read again since the last rewrite
    again_tokens = 0
    shown_tokens = round(SHOWN * trace.factor)
    for call, need in zip(trace.calls, memory.needs, strict=True):
        for event in trace.events[event_count : call.place]:
            strategy.hear(event)
        event_count = call.place
        sent = strategy.send(call)
        usage, dollars, lost = billing.bill(sent, call, as_billed=as_billed)
        strategy.billed(call, usage, dollars)
        sight.look(sent.messages)
        if sent.rewritten:
            memory.forget(sent.messages)
            again, again_tokens = set(), 0
        missing = [source for source in sight.gone(need) if id(source) not in again]
        extra = billing.carrying(call, usage, again_tokens)
        if missing:
            tokens = sum(min(trace.size(source), shown_tokens) for source in missing)
            extra += billing.again(call, usage, tokens)
            again |= set(map(id, missing))
            again_tokens += tokens
        tally.add(usage, dollars, extra, len(missing))
        seen, plain = sight.sees(need), sight.sees_without_index(need)
        tally.see(len(need.names), seen.names, plain.names, "names")
        tally.see(len(need.lines), seen.lines, plain.lines, "lines")
        tally.see(need.sentences, seen.sentences, plain.sentences, "words")
        tally.rewrites += sent.rewritten
        tally.lost += lost
        points.append(
            Point(
                call.time,
                usage.total_input,
                float(tally.cost),
                usage.cache_read,
                sent.rewritten,
                lost,
                call.usage is not None,
            )
        )
    strategy.close()
    memory.forget()
    return tally.result(strategy.name, tuple(points))


class _Tally:
    """Sums over the calls of a replay."""

    def __init__(self) -> None:
        self.cost = self.again = Decimal(0)
        self.read = self.total = self.peak = self.rewrites = self.lost = self.rereads = 0
        self.needed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.plain: Counter[str] = Counter()

    def add(self, usage: Usage, dollars: Decimal, again: Decimal, rereads: int) -> None:
        self.cost += dollars
        self.again += again
        self.rereads += rereads
        self.read += usage.cache_read
        self.total += usage.total_input
        self.peak = max(self.peak, usage.total_input)

    def see(self, needed: int, seen: int, without_index: int, kind: str) -> None:
        self.needed[kind] += needed
        self.seen[kind] += seen
        self.plain[kind] += without_index

    def result(self, name: str, points: tuple[Point, ...]) -> StrategyResult:
        def share(part: Counter[str], kind: str) -> float:
            return round(part[kind] / self.needed[kind], 4) if self.needed[kind] else 1.0

        return StrategyResult(
            name,
            float(round(self.cost, 6)),
            round(self.read / self.total, 4) if self.total else 0.0,
            self.peak,
            self.rewrites,
            share(self.seen, "names"),
            self.lost,
            points,
            share(self.seen, "lines"),
            share(self.seen, "words"),
            share(self.plain, "names"),
            share(self.plain, "lines"),
            share(self.plain, "words"),
            float(round(self.cost + self.again, 6)),
            self.rereads,
        )
