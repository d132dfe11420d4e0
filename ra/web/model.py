"""Builds the page's view of a session, with the code of `ra cost` and `ra bench`, so that all figures agree."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Literal, NamedTuple

from ra.bench import runs
from ra.bench.comparisons import Recorded
from ra.bench.measures import TraceNames
from ra.bench.replay import replay
from ra.bench.requests import Content, Requests
from ra.bench.trace import RecordedCall, Trace
from ra.context.tokens import Estimator
from ra.core.facts import (
    Cut,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Section, ToolSpec, Usage
from ra.core.text import clean, one_line
from ra.costs import ledger
from ra.costs.prices import PriceRow, Prices
from ra.costs.promptcache import rules_for
from ra.timeline import folds
from ra.web.marks import marks_of
from ra.web.shares import Shares
from ra.web.values import CallColumns, Overview, Rate, RequestPiece, SpendLine

SLACK = 1024  # tokens; providers cache in blocks
LABEL = 90  # characters of a piece's label
AGENTS = {
    "ra-timeline": "ra",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "pi": "pi",
    "openai-messages": "OpenAI messages",
}


class SessionSource(NamedTuple):
    """A session to show: its events, and what is known from outside them."""

    id: str
    events: Sequence[TimelineEvent]
    model: str
    source_format: str
    name: str = ""
    project: str = ""
    file: str = ""
    stored: bool = False
    forked_at: int = 0  # earlier events were paid by another session
    window: int | None = None
    notes: Sequence[str] = ()


class Paid(NamedTuple):
    """The ledger's costs: the bill of each answer, and the running total."""

    events: list[TimelineEvent]  # with a price added to every bill that had none
    dollars: dict[int, float]  # by the index of the answer
    spent: dict[int, float]
    total: float


class Recording:
    """A session and everything that the page asks about it. Expensive results are computed once."""

    def __init__(self, source: SessionSource, prices: Prices, estimator: Estimator | None = None) -> None:
        self.source = source
        self.prices = prices
        self.trace = Trace(
            source.name or source.id, source.model or runs.DEFAULT_MODEL, source.events, estimator or Estimator()
        )
        self.requests = Requests(self.trace, own=_sent_by_ra(source.events))
        self.long_lived = runs.lives_long(self.trace)
        self.paid = _paid(source, prices)
        self._prefix_used = _prefix_used(self.trace)
        self.usages = self._usages()
        self.rates = [self._rates(call, usage) for call, usage in zip(self.trace.calls, self.usages, strict=True)]
        self.uncached = self._uncached()
        self._names: TraceNames | None = None
        self._session: Overview | None = None

    @property
    def names(self) -> TraceNames:
        """The names in the trace, which all replays share."""
        if self._names is None:
            self._names = TraceNames(self.trace)
        return self._names

    def session(self) -> Overview:
        if self._session is None:
            self._session = self._build()
        return self._session

    def lifetime_s(self, call: RecordedCall) -> float:
        """The seconds for which the provider keeps a prefix after this call."""
        return rules_for(call.model, long_lived=self.long_lived).lifetime_s

    def _usages(self) -> list[Usage]:
        """The usage of each call as billed; without a bill, as the replay of `ra bench` estimates it."""
        if all(call.usage for call in self.trace.calls):
            return [call.usage for call in self.trace.calls if call.usage]
        replayed = _Billed(self.trace)
        if self.trace.calls:
            market = runs.market_of(self.trace, runs.Conditions(self.prices))
            replay(self.trace, TraceNames(self.trace), replayed, market, as_billed=True)
        return [call.usage or usage for call, usage in zip(self.trace.calls, replayed.usages, strict=True)]

    def _rates(self, call: RecordedCall, usage: Usage) -> Rate:
        row = price_row(self.prices, call, self.trace)
        if row is None:
            return Rate(0, 0, 0, 0)
        rates = row.at(usage.total_input)
        write = rates.cache_write_1h if call.long_lived else rates.cache_write
        return Rate(float(rates.input), float(rates.output), float(rates.cache_read), float(write))

    def reason(self, number: int) -> Literal["model", "pause", "lost"]:
        """Why the cache no longer held what the previous call had left in it."""
        before, call = self.trace.calls[number - 1], self.trace.calls[number]
        if call.model != before.model:
            return "model"
        return "pause" if self.idle_s(number) > self.lifetime_s(call) else "lost"

    def idle_s(self, number: int) -> float:
        """The seconds since the prefix was last used before this call, also by a small call that keeps the cache."""
        return self.trace.calls[number].time - self._prefix_used[number]

    def _uncached(self) -> dict[int, int]:
        """Calls that paid full price for a cached prefix of the previous request, and how many tokens of it.

        The previous bill says what was cached: what it read and wrote, or all of it where providers do not bill writes.
        """
        writes = any(usage.cache_write for usage in self.usages)
        tokens = [self.requests.tokens(number) for number in range(len(self.requests.contents))]
        uncached: dict[int, int] = {}
        ends: list[int] = []
        for number, (usage, sent) in enumerate(zip(self.usages, self.requests.sent, strict=True)):
            prefix = ends[min(sent.keep, len(ends)) - 1] if sent.keep and ends else 0
            del ends[sent.keep :]
            for piece in sent.added:
                ends.append((ends[-1] if ends else 0) + tokens[piece])
            if not number or not ends or not ends[-1]:
                continue
            before = self.usages[number - 1]
            cached = before.cache_read + before.cache_write if writes else before.total_input
            missing = min(round(prefix * usage.total_input / ends[-1]), cached) - usage.cache_read
            cached_at_all = writes or any(usage.cache_read for usage in self.usages[:number])
            if cached_at_all and missing > max(SLACK, usage.total_input // 4):
                uncached[number] = missing
        return uncached

    def _build(self) -> Overview:
        trace, requests, source = self.trace, self.requests, self.source
        tokens = [requests.tokens(number) for number in range(len(requests.contents))]
        names = [requests.source(number) for number in range(len(requests.contents))]
        sources = list(dict.fromkeys(names))
        models = list(dict.fromkeys(call.model for call in trace.calls))
        rates = list(dict.fromkeys(self.rates))
        calls = self._calls(tokens, [sources.index(name) for name in names], len(sources), models, rates)
        pieces = self._pieces(tokens, [sources.index(name) for name in names], calls)
        return Overview(
            id=source.id,
            title=folds.title(source.events) or source.name or source.id,
            agent=AGENTS.get(source.source_format, source.source_format),
            project=source.project,
            model=trace.model,
            file=source.file,
            stored=source.stored,
            window=source.window or self._window(),
            billed=trace.measured,
            total=self.paid.total if trace.measured else (calls.spent[-1] if calls.spent else 0.0),
            unpriced=sum(isinstance(event.fact, Spent) and not event.fact.dollars for event in self.paid.events),
            sources=sources,
            models=models,
            rates=rates,
            calls=calls,
            pieces=pieces,
            marks=marks_of(trace, lost=self._lost(), pauses=self._pauses()),
            notes=list(source.notes),
        )

    def _window(self) -> int:
        day = self.trace.calls[0].time if self.trace.calls else None
        row = self.prices.row(self.trace.model, at=day) or self.prices.row(runs.DEFAULT_MODEL)
        assert row is not None
        return runs.catalog_window(self.trace.model, row)

    def _calls(
        self, tokens: list[int], source: list[int], count: int, models: list[str], rates: list[Rate]
    ) -> CallColumns:
        calls = CallColumns(*([] for _ in CallColumns.__struct_fields__))
        pieces: list[int] = []
        sums = [0] * count
        estimated = 0.0
        for number, (call, usage, sent) in enumerate(
            zip(self.trace.calls, self.usages, self.requests.sent, strict=True)
        ):
            for piece in pieces[sent.keep :]:
                sums[source[piece]] -= tokens[piece]
            del pieces[sent.keep :]
            for piece in sent.added:
                pieces.append(piece)
                sums[source[piece]] += tokens[piece]
            rate = self.rates[number]
            dollars = self.paid.dollars.get(call.place)
            if dollars is None or call.usage is None:
                dollars = list_price(usage, rate)
            estimated += dollars
            answer = self.trace.events[call.place]
            calls.at.append(answer.at)
            calls.time.append(call.time)
            calls.seconds.append(round(max(0.0, answer.time - call.time), 3))
            calls.model.append(models.index(call.model))
            calls.input.append(usage.input)
            calls.output.append(usage.output)
            calls.read.append(usage.cache_read)
            calls.write.append(usage.cache_write)
            calls.dollars.append(dollars)
            calls.spent.append(self.paid.spent.get(call.place, 0.0) if self.trace.measured else estimated)
            calls.rate.append(rates.index(rate))
            calls.keep.append(sent.keep)
            calls.added.append(sent.added)
            calls.reply.append(sent.reply)
            calls.stack.append(_scaled(sums, usage.total_input))
            calls.fresh.append(_fresh(pieces, tokens, source, sums, usage))
        if self.trace.measured:  # includes bills before the first answer, and calls without a bill
            for number in range(1, len(calls.spent)):
                calls.spent[number] = max(calls.spent[number], calls.spent[number - 1])
        return calls

    def _pieces(self, tokens: list[int], source: list[int], calls: CallColumns) -> list[RequestPiece]:
        first, last, requests = ([-1] * len(tokens), [-1] * len(tokens), [0] * len(tokens))
        entered = [0] * len(tokens)
        shares = Shares(tokens)
        pieces: list[int] = []
        for number, sent in enumerate(self.requests.sent):
            for piece in pieces[sent.keep :]:
                requests[piece] += number - entered[piece]
                last[piece] = number - 1
            del pieces[sent.keep :]
            for piece in sent.added:
                pieces.append(piece)
                entered[piece] = number
                first[piece] = number if first[piece] < 0 else first[piece]
            usage, rate = self.usages[number], self.rates[number]
            listed = list_price(usage, rate)
            factor = calls.dollars[number] / listed if listed else 1.0
            shares.bill(
                sent, read=usage.cache_read, write=usage.cache_write, total=usage.total_input, rate=rate, factor=factor
            )
        for piece in pieces:
            requests[piece] += len(self.requests.sent) - entered[piece]
            last[piece] = len(self.requests.sent) - 1
        dollars = shares.close()
        return [
            RequestPiece(
                at=self.requests.positions[number],
                role=self.requests.role(number),
                source=source[number],
                tokens=tokens[number],
                label=label(content),
                first=first[number],
                last=last[number],
                requests=requests[number],
                dollars=round(dollars[number], 8),
            )
            for number, content in enumerate(self.requests.contents)
        ]

    @property
    def divided(self) -> bool:
        """Whether a bill lacks the sizes of its request's parts, so that `lines` divides it by the request."""
        bills = (event.fact for event in self.paid.events if event.at > self.source.forked_at)
        return any(isinstance(bill, Spent) and bill.purpose == "turn" and not bill.parts for bill in bills)

    def lines(self) -> dict[ledger.By, list[SpendLine]]:
        """Spending as `ra cost --by` shows it. A bill without the sizes of its parts is divided by its request's."""
        session = self.session()
        parts = {
            call.place: {name: size for name, size in zip(session.sources, sizes, strict=True) if size}
            for call, sizes in zip(self.trace.calls, session.calls.stack, strict=True)
        }
        bills: list[TimelineEvent] = []
        answer = -1
        for index, event in enumerate(self.paid.events):
            match event.fact:
                case Said(message) | Cut(message) if message.role == "assistant":
                    answer = index
                case Spent(purpose="turn") as spent if event.at > self.source.forked_at and not spent.parts:
                    divided = Spent(
                        spent.model,
                        spent.usage,
                        spent.dollars,
                        parts=parts.get(answer, {}),
                        long_lived=spent.long_lived,
                    )
                    bills.append(TimelineEvent(event.at, event.time, divided))
                case Spent() if event.at > self.source.forked_at:
                    bills.append(event)
                case _:
                    pass
        by: dict[ledger.By, list[SpendLine]] = {}
        kinds: tuple[ledger.By, ...] = ("source", "tool", "model")
        for kind in kinds:
            spends = ledger.fold([(self.source.id, bills)], by=kind, rows=self.prices.row)
            by[kind] = [
                SpendLine(spend.key, spend.calls, spend.usage.total_input, spend.usage.output, float(spend.dollars))
                for spend in spends
            ]
        return by

    def _lost(self) -> list[int]:
        """Calls whose cached prefix was lost for a reason outside the conversation."""
        return [number for number in self.uncached if self.reason(number) == "lost"]

    def _pauses(self) -> dict[int, float]:
        """Calls after the prefix had expired, with the seconds since it was last used."""
        idle = {number: self.idle_s(number) for number in range(1, len(self.trace.calls))}
        return {number: idle_s for number, idle_s in idle.items() if idle_s > self.lifetime_s(self.trace.calls[number])}


class _Billed(Recorded):
    """The recorded requests, with the replay's bill for each call."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.usages: list[Usage] = []

    def billed(self, call: RecordedCall, usage: Usage, dollars: Decimal) -> None:
        self.usages.append(usage)


def price_row(prices: Prices, call: RecordedCall, trace: Trace) -> PriceRow | None:
    """The prices of a call on its day; an estimate of an unknown model uses those of the default model."""
    row = prices.row(call.model, at=call.time)
    return row if row or trace.measured else prices.row(runs.DEFAULT_MODEL, at=call.time)


def list_price(usage: Usage, rate: Rate) -> float:
    return (
        usage.input * rate.input
        + usage.output * rate.output
        + usage.cache_read * rate.read
        + usage.cache_write * rate.write
    ) / 1e6


def _sent_by_ra(events: Sequence[TimelineEvent]) -> bool:
    """Whether ra itself sent the requests: only its bills contain the sizes of a request's parts."""
    return any(isinstance(event.fact, Spent) and event.fact.parts for event in events)


def _paid(source: SessionSource, prices: Prices) -> Paid:
    events = ledger.priced(source.events, lambda model, at: prices.row(model, at=at))
    dollars: dict[int, float] = {}
    spent: dict[int, float] = {}
    total, answer = Decimal(0), -1
    for index, event in enumerate(events):
        match event.fact:
            case Said(message) | Cut(message) if message.role == "assistant":
                answer = index
            case Spent() as bill if event.at > source.forked_at:
                paid = Decimal(bill.dollars or 0)
                total += paid
                if bill.purpose == "turn" and answer >= 0 and answer not in dollars:
                    dollars[answer] = float(paid)
                    spent[answer] = float(total)
            case _:
                pass
    return Paid(events, dollars, spent, float(total))


def _scaled(sums: Sequence[float], total: int) -> list[int]:
    """The sizes by source, scaled so that they add up to the provider's count."""
    counted = sum(sums)
    scaled, position, shared = [], 0.0, 0
    for size in sums:
        position += size
        end = round(total * position / counted) if counted else 0
        scaled.append(end - shared)
        shared = end
    return scaled


def _fresh(pieces: list[int], tokens: list[int], source: list[int], sums: list[int], usage: Usage) -> list[int]:
    """The uncached tokens by source. They are the end of the request, because a cache holds a prefix."""
    new_tokens = usage.input + usage.cache_write
    if not usage.cache_read:
        return _scaled(sums, new_tokens)
    tokens_left = sum(sums) * new_tokens / usage.total_input
    raw = [0.0] * len(sums)
    for piece in reversed(pieces):
        if tokens_left <= 0:
            break
        share = min(tokens_left, tokens[piece])
        raw[source[piece]] += share
        tokens_left -= share
    return _scaled(raw, new_tokens)


def _prefix_used(trace: Trace) -> list[float]:
    """When each call's prefix was last used before it: by the previous call, or by a small call during the pause."""
    times = [call.time for call in trace.calls[:1]]
    for before, call in pairwise(trace.calls):
        bridges = [event.time for event in trace.events[before.place : call.place] if _keeps_cache(event, call.model)]
        times.append(max([before.time, *bridges]))
    return times


def _keeps_cache(event: TimelineEvent, model: str) -> bool:
    return isinstance(event.fact, Spent) and event.fact.purpose == "bridge" and event.fact.model == model


def label(content: Content) -> str:
    """One line that distinguishes a piece from the others."""
    match content:
        case ToolSpec(name=name, description=description):
            return one_line(f"{name}: {description}", LABEL)
        case Section(content=text):
            return one_line(clean(text[: 4 * LABEL]), LABEL)
        case Message():
            return one_line(clean(" ".join(_brief(content))), LABEL) or "(empty)"


def _brief(message: Message) -> list[str]:
    words = []
    for block in message.blocks:
        match block:
            case Text(text=text):
                words.append(text[: 4 * LABEL])
            case Thinking(text=text):
                words.append(f"(thinking) {text[: 4 * LABEL]}")
            case ToolCall(name=name, args=args):
                words.append(f"{name} {_arguments(args)}")
            case ToolResult(content=parts):
                words += [part.text[: 4 * LABEL] for part in parts if isinstance(part, Text)]
            case _:
                words.append(f"[{block.media_type}]")
    return words


def _arguments(args: dict[str, object]) -> str:
    texts = [value for value in args.values() if isinstance(value, str)]
    return texts[0][: 4 * LABEL] if texts else ", ".join(args)
