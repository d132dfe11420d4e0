"""What has been spent, and on what? A fold over the facts of any number of sessions."""

import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Literal

from ra.core.facts import Checkpointed, Edited, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message, ToolResult
from ra.core.model import Usage
from ra.core.value import Value, encode
from ra.costs.prices import PriceRow

By = Literal["session", "model", "source", "tool", "day"]
BYS: tuple[By, ...] = ("session", "model", "source", "tool", "day")

ANSWERS = "answers"
"""The row of what the model wrote, when spending is told by source or tool."""
CONVERSATION = "conversation"
"""The part of a request that is neither a section nor a tool definition: see Spent.parts."""
OTHER = "other input"

Rows = Callable[[str], PriceRow | None]


class Spend(Value, frozen=True):
    """What one session, model, source, tool or day has cost. `unpriced` counts calls whose price nobody knows."""

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


def fold(
    sessions: Iterable[tuple[str, Iterable[TimelineEvent]]],
    *,
    by: By,
    rows: Rows,
    since: float | None = None,
) -> list[Spend]:
    """Spending by `by`, dearest first (days in order). `rows` names a model's prices: Prices.row.

    By source and by tool, every request is taken apart: its parts stand in the order of Spent.parts, so the first of
    them were read from the cache, the next written to it, the last new. The sum of all rows is what was paid.
    """
    found: dict[str, Spend] = {}
    for session, events in sessions:
        for at, spent, shares in _calls(events, split_by=by if by in ("source", "tool") else None):
            if since is not None and at < since:
                continue
            if by == "session" or by == "model" or by == "day":
                key = {"session": session, "model": spent.model, "day": _day(at)}[by]
                lines = [(key, spent.usage, Decimal(spent.dollars or 0))]
            else:
                lines = _split(spent, shares, rows(spent.model))
            for key, usage, dollars in lines:
                line = Spend(key, 1, usage, dollars, int(not spent.dollars))
                found[key] = total((found[key], line), key) if key in found else line
    if by == "day":
        return [found[key] for key in sorted(found)]
    return sorted(found.values(), key=lambda spend: (-spend.dollars, -spend.usage.total_input, spend.key))


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _calls(
    events: Iterable[TimelineEvent], *, split_by: By | None
) -> Iterator[tuple[float, Spent, list[tuple[str, float]]]]:
    """Every paid call, with the ordered shares of its request by source or tool (relative sizes)."""
    talk = _Talk()
    for event in events:
        match event.fact:
            case Spent() as spent:
                shares: list[tuple[str, float]] = []
                if split_by is not None:
                    for name, tokens in spent.parts.items():
                        if split_by == "tool" and name == CONVERSATION:
                            shares += talk.shares(tokens)
                        else:
                            shares.append((name if split_by == "source" else OTHER, tokens))
                    if not spent.parts and split_by == "tool":
                        shares = talk.shares(spent.usage.total_input)
                yield event.time, spent, shares
                talk.settle()
            case Said(message):
                if split_by == "tool":
                    talk.hear(event.at, message)
            case Checkpointed(hidden=hidden):
                talk.hide(hidden)
            case Rotated(keep_from=keep_from):
                talk.hide(((0, keep_from - 1),))
            case Edited():
                talk.hide(((0, event.at),))
            case _:
                pass


class _Talk:
    """How much of the visible conversation each tool's results are, in bytes; what was sent before comes first."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[str, int]] = {}
        self._old: dict[str, int] = {}
        self._new: dict[str, int] = {}
        self._settled = 0

    def hear(self, at: int, message: Message) -> None:
        key = OTHER
        for block in message.blocks:
            if isinstance(block, ToolResult):
                key = block.name
        size = len(encode(message.blocks))
        self._pieces[at] = (key, size)
        self._new[key] = self._new.get(key, 0) + size

    def settle(self) -> None:
        for key, size in self._new.items():
            self._old[key] = self._old.get(key, 0) + size
        self._new = {}
        self._settled = max(self._pieces, default=0)

    def hide(self, ranges: Iterable[tuple[int, int]]) -> None:
        for first, last in ranges:
            for at in [at for at in self._pieces if first <= at <= last]:
                key, size = self._pieces.pop(at)
                where = self._old if at <= self._settled else self._new
                where[key] = where.get(key, 0) - size

    def shares(self, tokens: float) -> list[tuple[str, float]]:
        sizes = [*self._old.items(), *self._new.items()]
        whole = sum(size for _, size in sizes)
        if not whole:
            return [(OTHER, tokens)]
        return [(key, tokens * size / whole) for key, size in sizes if size]


def _split(spent: Spent, shares: list[tuple[str, float]], row: PriceRow | None) -> list[tuple[str, Usage, Decimal]]:
    """The lines of one call: tokens and dollars by part. Dollars add up to what was paid, to the last decimal."""
    usage = spent.usage
    paid = Decimal(spent.dollars or 0)
    written = Usage(output=usage.output)
    if not shares:
        shares = [(OTHER, float(usage.total_input))]
    lines: dict[str, Usage] = {}
    for key, part in _cut(shares, usage):
        lines[key] = lines.get(key, Usage()) + part
    weights = [(key, part, _weight(part, row, usage)) for key, part in lines.items()]
    weights.append((ANSWERS, written, _weight(written, row, usage)))
    whole = sum((weight for _, _, weight in weights), Decimal(0))
    priced = [(key, part, paid * weight / whole if whole else Decimal(0)) for key, part, weight in weights]
    rest = paid - sum((dollars for _, _, dollars in priced), Decimal(0))
    key, part, dollars = priced[-1]
    priced[-1] = (key, part, dollars + rest)
    return [line for line in priced if line[1] != Usage() or line[2]]


def _weight(part: Usage, row: PriceRow | None, whole: Usage) -> Decimal:
    if row is None:
        return Decimal(part.total_input + part.output)
    return PriceRow(row.model, row.at(whole.total_input)).price(part)


def _cut(shares: list[tuple[str, float]], usage: Usage) -> Iterator[tuple[str, Usage]]:
    """Lay the shares along the request: read first, then written, then plain input."""
    whole = sum(size for _, size in shares)
    scale = usage.total_input / whole if whole else 0.0
    edges = (usage.cache_read, usage.cache_read + usage.cache_write, usage.total_input)
    start, position = 0, 0.0
    for key, size in shares:
        position += size * scale
        end = round(position)
        spans = [max(0, min(end, high) - max(start, low)) for low, high in zip((0, *edges), edges, strict=False)]
        yield key, Usage(cache_read=spans[0], cache_write=spans[1], input=spans[2])
        start = end
