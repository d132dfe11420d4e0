"""What happened, as messages that a source can hold? The timeline in items, each projected by default or by you."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from ra.context import projection as default
from ra.context.timed import TimestampedMessage
from ra.context.tokens import Estimator
from ra.context.units import Unit
from ra.context.view import View
from ra.core.errors import UsageError
from ra.core.facts import Configured, EntryRemoved, TimelineEvent
from ra.core.messages import Message
from ra.core.value import Value

Kind = Literal["inbox", "run", "context_inserted", "context_removed", "checkpoint"]


class TimelineItem(Value, frozen=True):
    """Something that happened at a position, and the messages that stand for it unless a projection says otherwise.

    - `inbox`: what somebody said to the agent
    - `run`: what the agent said and did until the next of those, results of its tools included
    - `context_inserted`, `context_removed`: a live entry, and the end of one; `id` names it
    - `checkpoint`: what stands in for messages that a compaction or rotation hides
    """

    at: int
    kind: Kind
    messages: tuple[Message, ...] = ()
    times: tuple[int, ...] = ()  # the position of each message
    id: str = ""


Projection = Callable[[TimelineItem], Sequence[Message] | None]


def timeline_messages(
    events: Iterable[TimelineEvent],
    since: int | None = None,
    projection: Projection | None = None,
    *,
    estimator: Estimator | None = None,
) -> list[TimestampedMessage]:
    """The conversation after position `since`, as the model would see it by default.

    A projection that returns None leaves an item to the default; an empty list drops it. Raises UsageError.
    """
    messages: list[TimestampedMessage] = []
    for item in timeline_items(events, since, estimator=estimator):
        own = projection(item) if projection else None
        if own is None:
            pairs = zip(item.messages, item.times, strict=True)
            messages += [TimestampedMessage(message, at) for message, at in pairs]
        else:
            messages += [TimestampedMessage(message, item.at) for message in _checked(own, item)]
    return messages


def timeline_items(
    events: Iterable[TimelineEvent], since: int | None = None, *, estimator: Estimator | None = None
) -> list[TimelineItem]:
    """Everything after position `since`, oldest first. An assistant's message and its results are never parted."""
    _check_position(since)
    view = View(estimator or Estimator())
    rest: list[TimelineItem] = []
    for event in events:
        match event.fact:
            case Configured():
                continue  # what a strategy composed is made from the timeline, and no part of it
            case EntryRemoved(id):
                rest.append(TimelineItem(event.at, "context_removed", id=id))
            case _:
                pass
        view.apply(event)
    rest += [
        TimelineItem(live.inserted_at, "context_inserted", (default.standing(live),), (live.inserted_at,), live.id)
        for live in view.entries.values()
    ]
    said = _said(view)
    items = _merged(said, sorted(rest, key=lambda item: item.at))
    return _runs(item for item in items if since is None or item.at > since)


def _check_position(since: object) -> None:
    if since is not None and (isinstance(since, bool) or not isinstance(since, int)):
        raise UsageError(f"timeline_messages: since is {since!r}; use a timeline position or None.")


def _said(view: View) -> list[TimelineItem]:
    """The visible conversation, a unit an item. What opens a segment was written later: its time is of what follows."""
    items: list[TimelineItem] = []
    time: int | None = None
    for unit in reversed(view.units):
        kind = _kind(unit)
        if kind is not None:
            time = unit.at if time is None else min(time, unit.at)
            messages = view.shown(unit)
            items.append(TimelineItem(unit.at, kind, messages, (time,) * len(messages)))
    return items[::-1]


def _kind(unit: Unit) -> Kind | None:
    match unit.kind:
        case "said":
            return "run" if unit.item.message.role == "assistant" else "inbox"
        case "marker" | "handover":
            return "checkpoint"
        case "entry" | "notice":  # entries are taken from what is live, and notices are other sources
            return None


def _merged(said: Sequence[TimelineItem], rest: Sequence[TimelineItem]) -> list[TimelineItem]:
    """Both by position, the conversation in its own order."""
    items: list[TimelineItem] = []
    waiting = list(rest)
    for item in said:
        place = item.times[0] if item.times else item.at
        while waiting and waiting[0].at < place:
            items.append(waiting.pop(0))
        items.append(item)
    return items + waiting


def _runs(items: Iterable[TimelineItem]) -> list[TimelineItem]:
    """What the agent said and did in one go is one item."""
    joined: list[TimelineItem] = []
    for item in items:
        if item.kind == "run" and joined and joined[-1].kind == "run":
            last = joined.pop()
            item = TimelineItem(last.at, "run", last.messages + item.messages, last.times + item.times)
        joined.append(item)
    return joined


def _checked(messages: object, item: TimelineItem) -> Sequence[Message]:
    if isinstance(messages, list | tuple) and all(isinstance(message, Message) for message in messages):
        return messages
    raise UsageError(
        f"timeline_messages: projection returned {messages!r} for the {item.kind} at {item.at}; "
        "return a list of Messages, or None for the default."
    )
