"""Sums up what was spent, by session, model, source, tool or day: a fold over the facts of any number of sessions."""

import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Literal

from msgspec.structs import replace

from ra.core.facts import Spent, TimelineEvent
from ra.core.model import Usage
from ra.core.value import Value
from ra.costs.prices import PriceRow

By = Literal["session", "model", "source", "tool", "day"]
BYS: tuple[By, ...] = ("session", "model", "source", "tool", "day")

ANSWERS = "answers"
"""The row for the model's output, when spending is listed by source or tool."""
OTHER = "other input"
TOOL = "tool:"
"""Prefix of a tool's results in Spent.parts."""

Rows = Callable[[str], PriceRow | None]


class Spend(Value, frozen=True):
    """What one session, model, source, tool or day has cost. `unpriced` counts the calls without a known price."""

    key: str
    calls: int
    usage: Usage
    dollars: Decimal
    unpriced: int = 0


def total(spends: Iterable[Spend], key: str = "total") -> Spend:
    calls, usage, dollars, unpriced = 0, Usage(), Decimal(0), 0
    for spend in spends:
        calls += spend.calls
        usage += spend.usage
        dollars += spend.dollars
        unpriced += spend.unpriced
    return Spend(key, calls, usage, dollars, unpriced)


def priced(events: Iterable[TimelineEvent], row: Callable[[str, float], PriceRow | None]) -> list[TimelineEvent]:
    """The events, with a price on every bill that had none. `row` returns a model's prices at a time."""

    def bill(event: TimelineEvent) -> TimelineEvent:
        if not isinstance(spent := event.fact, Spent) or spent.dollars:
            return event
        prices = row(spent.model, event.time)
        if prices is None:
            return event
        dollars = prices.price(spent.usage, long_lived=spent.long_lived)
        return TimelineEvent(event.at, event.time, replace(spent, dollars=f"{dollars:f}"))

    return [bill(event) for event in events]


def fold(
    sessions: Iterable[tuple[str, Iterable[TimelineEvent]]],
    *,
    by: By,
    rows: Rows,
    since: float | None = None,
) -> list[Spend]:
    """Spending grouped by `by`, most expensive first (days in order). `rows` returns a model's prices: Prices.row.

    By source or tool, each request is divided: the parts that the previous request had come first and take the cache
    reads; what was added takes the cache writes and the uncached input. A source is so charged for every request that
    carried it, and the rows add up to what was paid.
    """
    spends: dict[str, Spend] = {}
    for session, events in sessions:
        before: dict[str, dict[str, int]] = {}
        for event in events:
            if not isinstance(spent := event.fact, Spent):
                continue
            shares = _shares(spent.parts, before.get(spent.purpose, {}))
            before[spent.purpose] = spent.parts
            if since is not None and event.time < since:
                continue
            match by:
                case "source":
                    lines = _split(spent, shares, rows(spent.model))
                case "tool":
                    named = [(_tool(name), tokens) for name, tokens in shares]
                    lines = _split(spent, named, rows(spent.model))
                case _:
                    key = {"session": session, "model": spent.model, "day": _day(event.time)}[by]
                    lines = [(key, spent.usage, Decimal(spent.dollars or 0))]
            for key, usage, dollars in lines:
                line = Spend(key, 1, usage, dollars, int(not spent.dollars))
                spends[key] = total((spends[key], line), key) if key in spends else line
    if by == "day":
        return [spends[key] for key in sorted(spends)]
    return sorted(spends.values(), key=lambda spend: (-spend.dollars, -spend.usage.total_input, spend.key))


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _tool(part: str) -> str:
    return part.removeprefix(TOOL) if part.startswith(TOOL) else OTHER


def _shares(parts: dict[str, int], before: dict[str, int]) -> list[tuple[str, int]]:
    """The parts in the order of the request: first what the previous request had, then what was added."""
    carried = [(name, min(tokens, before.get(name, 0))) for name, tokens in parts.items()]
    grown = [(name, tokens - held) for (name, tokens), (_, held) in zip(parts.items(), carried, strict=True)]
    return [(name, tokens) for name, tokens in (*carried, *grown) if tokens]


def _split(spent: Spent, shares: list[tuple[str, int]], row: PriceRow | None) -> list[tuple[str, Usage, Decimal]]:
    """Tokens and dollars of one call, by part. The dollars add up to what was paid, to the last decimal."""
    usage = spent.usage
    paid = Decimal(spent.dollars or 0)
    answers = Usage(output=usage.output)
    if not shares:
        shares = [(OTHER, usage.total_input)]
    lines: dict[str, Usage] = {}
    for key, part in _cut(shares, usage):
        lines[key] = lines.get(key, Usage()) + part
    weights = [(key, part, _weight(part, row, usage)) for key, part in lines.items()]
    weights.append((ANSWERS, answers, _weight(answers, row, usage)))
    total_weight = sum((weight for _, _, weight in weights), Decimal(0))
    priced = [
        (key, part, paid * weight / total_weight if total_weight else Decimal(0)) for key, part, weight in weights
    ]
    rounding = paid - sum((dollars for _, _, dollars in priced), Decimal(0))
    key, part, dollars = priced[-1]
    priced[-1] = (key, part, dollars + rounding)
    return [line for line in priced if line[1] != Usage() or line[2]]


def _weight(part: Usage, row: PriceRow | None, whole_call: Usage) -> Decimal:
    if row is None:
        return Decimal(part.total_input + part.output)
    return PriceRow(row.model, row.at(whole_call.total_input)).price(part)


def _cut(shares: list[tuple[str, int]], usage: Usage) -> Iterator[tuple[str, Usage]]:
    """Divide the usage among the shares, in the order of the request: cache reads, cache writes, plain input."""
    total_size = sum(size for _, size in shares)
    scale = usage.total_input / total_size if total_size else 0.0
    edges = (usage.cache_read, usage.cache_read + usage.cache_write, usage.total_input)
    start, position = 0, 0.0
    for key, size in shares:
        position += size * scale
        end = round(position)
        spans = [max(0, min(end, high) - max(start, low)) for low, high in zip((0, *edges), edges, strict=False)]
        yield key, Usage(cache_read=spans[0], cache_write=spans[1], input=spans[2])
        start = end
