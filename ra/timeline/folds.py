"""What follows from what happened? Pure folds over events, each of which can go on from where it ended."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

from ra.core.facts import Configured, Edited, Entry, EntryRemoved, EntrySet, Fact, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message, ToolCall, ToolResult, result
from ra.core.model import Usage
from ra.core.text import one_line
from ra.core.value import Value

INTERRUPTED = "interrupted; it may or may not have run"
TITLE = 60  # characters
ANSWER = "answer"  # the output, as a source; and what a call was spent on that called no tool
REQUEST = "request"  # the input of a call whose parts are not known

# How the rates of a call relate, nearly alike for all providers. It only divides a bill that is known.
_RATES = (100, 500, 10, 125)  # input, output, cache read, cache write


def repair(events: Iterable[TimelineEvent]) -> tuple[Fact, ...]:
    """What to record on resume, so that every tool call has its one result: nothing is run a second time.

    What a cut stream had begun to call never counts: it was not sent back and did not run.
    """
    open_calls: list[ToolCall] = []
    for event in events:
        match event.fact:
            case Said(message):
                _answer(open_calls, message)
            case Edited(messages=messages) | Configured(base=tuple() as messages):
                open_calls.clear()
                for message in messages:
                    _answer(open_calls, message)
            case _:
                pass
    return tuple(Said(result(call, INTERRUPTED, is_error=True)) for call in open_calls)


def _answer(open_calls: list[ToolCall], message: Message) -> None:
    # Ids may come again in a later turn: a result belongs to the oldest call of its id that has none.
    for block in message.blocks:
        if isinstance(block, ToolResult):
            answered = next((call for call in open_calls if call.id == block.call_id), None)
            if answered is not None:
                open_calls.remove(answered)
    open_calls.extend(message.calls)


def entries(events: Iterable[TimelineEvent], start: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """The live entries, in the order of their positions. `start` is what an earlier fold returned."""
    live = dict(start or {})
    for event in events:
        match event.fact:
            case EntrySet() as fact:
                live.pop(fact.id, None)  # a replacement moves to its new place
                live[fact.id] = Entry(fact.id, fact.name, fact.content, event.at, fact.attrs)
            case EntryRemoved(id):
                live.pop(id, None)
            case _:
                pass
    return live


class Share(Value, frozen=True):
    """A part of what was spent: model calls, tokens, and dollars as far as prices were known."""

    calls: int = 0
    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)

    def __add__(self, other: "Share") -> "Share":
        return Share(self.calls + other.calls, self.usage + other.usage, self.dollars + other.dollars)


class Spend(Value, frozen=True):
    """Everything that was spent. `priced` counts the calls with a known price; `dollars` is the sum of those.

    `by_source` divides the input of each call among the parts of its request, cached prefix first, and its price
    with it. `by_tool` gives a call's price to the tools that its answer called, evenly.
    """

    calls: int = 0
    priced: int = 0
    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)
    by_model: dict[str, Share] = {}
    by_purpose: dict[str, Share] = {}
    by_source: dict[str, Share] = {}
    by_tool: dict[str, Share] = {}
    by_day: dict[str, Share] = {}
    asked: tuple[str, ...] = ()  # the tools that the last answer called: the bill that follows is for them


def day_of(moment: float) -> str:
    """The day in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def spend(
    events: Iterable[TimelineEvent], start: Spend | None = None, *, day: Callable[[float], str] = day_of
) -> Spend:
    """What was spent. `start` is what an earlier fold returned, `day` names the day of a moment."""
    so_far = start or Spend()
    calls, priced, usage, dollars, asked = so_far.calls, so_far.priced, so_far.usage, so_far.dollars, so_far.asked
    model, purpose, source, tool, days = (
        dict(shares) for shares in (so_far.by_model, so_far.by_purpose, so_far.by_source, so_far.by_tool, so_far.by_day)
    )
    for event in events:
        match event.fact:
            case Said(message) if message.role == "assistant":
                asked = tuple(call.name for call in message.calls)
            case Spent() as fact:
                paid = Decimal(fact.dollars or 0)
                calls, priced, usage, dollars = (
                    calls + 1,
                    priced + bool(fact.dollars),
                    usage + fact.usage,
                    dollars + paid,
                )
                whole = Share(1, fact.usage, paid)
                _add(model, fact.model, whole)
                _add(purpose, fact.purpose, whole)
                _add(days, day(event.time), whole)
                for name, share in _by_source(fact, paid):
                    _add(source, name, share)
                for name, share in _by_tool(fact, paid, asked):
                    _add(tool, name, share)
            case _:
                pass
    return Spend(calls, priced, usage, dollars, model, purpose, source, tool, days, asked)


def title(events: Iterable[TimelineEvent]) -> str:
    """The first line that the user typed, shortened."""
    for event in events:
        match event.fact:
            case Said(message) if _is_prompt(message) and message.text.strip():
                return one_line(message.text.strip().splitlines()[0], TITLE)
            case _:
                pass
    return ""


def model(events: Iterable[TimelineEvent]) -> str:
    """Who spoke last."""
    last = ""
    for event in events:
        match event.fact:
            case Spent(purpose="turn") | Configured():
                last = event.fact.model
            case _:
                pass
    return last


def last_time(events: Iterable[TimelineEvent], start: float | None = None) -> float | None:
    """When something happened last; None if never."""
    for event in events:
        start = event.time
    return start


def turns(events: Iterable[TimelineEvent], start: int = 0) -> int:
    """How many prompts the user has sent in the current segment: a rotation begins a new count."""
    for event in events:
        match event.fact:
            case Said(message) if _is_prompt(message):
                start += 1
            case Rotated():
                start = 0
            case _:
                pass
    return start


def _add(shares: dict[str, Share], name: str, share: Share) -> None:
    shares[name] = shares.get(name, Share()) + share


def _by_source(fact: Spent, paid: Decimal) -> Iterator[tuple[str, Share]]:
    # The estimate of the parts is stretched to the tokens that were billed; the cache holds a prefix of them.
    parts = fact.parts if any(fact.parts.values()) else {REQUEST: 1}
    whole, billed = sum(parts.values()), fact.usage
    seen, usages = 0, []
    for name, tokens in parts.items():
        start, seen = seen, seen + tokens
        usage = _slice(billed, start * billed.total_input // whole, seen * billed.total_input // whole)
        usages.append((name, usage))
    usages.append((ANSWER, Usage(output=billed.output)))
    weight = sum(_weight(usage) for _, usage in usages)
    for name, usage in usages:
        yield name, Share(1, usage, paid * _weight(usage) / weight if weight else paid / len(usages))


def _slice(usage: Usage, start: int, end: int) -> Usage:
    """The tokens `start` to `end` of an input: what was read from the cache comes first, what was new comes last."""

    def within(low: int, size: int) -> int:
        return max(0, min(end, low + size) - max(start, low))

    read, write = usage.cache_read, usage.cache_write
    return Usage(cache_read=within(0, read), cache_write=within(read, write), input=within(read + write, usage.input))


def _weight(usage: Usage) -> int:
    return sum(tokens * rate for tokens, rate in zip(_amounts(usage), _RATES, strict=True))


def _by_tool(fact: Spent, paid: Decimal, asked: tuple[str, ...]) -> Iterator[tuple[str, Share]]:
    names = (asked or (ANSWER,)) if fact.purpose == "turn" else (fact.purpose,)
    count = len(names)
    for place, name in enumerate(names):
        even = [amount * (place + 1) // count - amount * place // count for amount in _amounts(fact.usage)]
        yield name, Share(1, Usage(*even), paid / count)


def _amounts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input, usage.output, usage.cache_read, usage.cache_write


def _is_prompt(message: Message) -> bool:
    # A name marks context that is no conversation.
    return message.role == "user" and not message.name
