"""Turns the timeline into items and messages for a source, by the default projection or the user's function."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from ra.context import render as default
from ra.context.tokens import Estimator
from ra.context.view import Group, View
from ra.core.errors import UsageError
from ra.core.facts import Configured, EntryRemoved, TimelineEvent
from ra.core.messages import Message, plain_message
from ra.core.value import Value

Kind = Literal["inbox", "run", "context_inserted", "context_removed", "checkpoint"]


class TimestampedMessage(Value, frozen=True):
    """A message with its time in seconds since 1970, so that several sources can be merged by the clock."""

    message: Message
    at: float | None = None


class TimelineItem(Value, frozen=True):
    """An event at a position, and the messages that represent it by default.

    - `inbox`: a message to the agent
    - `run`: everything the agent said and did until the next one, tool results included
    - `context_inserted`, `context_removed`: an entry was set or removed; `id` names it
    - `checkpoint`: the stand-in for messages that a compaction or rotation hides
    """

    at: int
    kind: Kind
    messages: tuple[Message, ...] = ()
    times: tuple[float, ...] = ()  # when each message came, in seconds since 1970
    id: str = ""

    @property
    def time(self) -> float | None:
        """The time at which it began."""
        return self.times[0] if self.times else None


Projection = Callable[[TimelineItem], Sequence[Message | Mapping[str, Any]] | None]


def timeline_messages(
    events: Iterable[TimelineEvent],
    since: int | None = None,
    projection: Projection | None = None,
    *,
    estimator: Estimator | None = None,
) -> list[TimestampedMessage]:
    """The conversation after position `since`, as the model sees it by default.

    A projection that returns None means the default for an item; an empty list drops the item. Raises UsageError.
    """
    messages: list[TimestampedMessage] = []
    for item in timeline_items(events, since, estimator=estimator):
        projected = projection(item) if projection else None
        if projected is None:
            pairs = zip(item.messages, item.times, strict=True)
            messages += [TimestampedMessage(message, at) for message, at in pairs]
        else:
            messages += [TimestampedMessage(message, item.time) for message in _checked(projected, item)]
    return messages


def timeline_items(
    events: Iterable[TimelineEvent], since: int | None = None, *, estimator: Estimator | None = None
) -> list[TimelineItem]:
    """Everything after position `since`, oldest first. An answer and the results of its calls stay together."""
    _check_position(since)
    view = View(estimator or Estimator())
    aside: list[TimelineItem] = []
    clock: dict[int, float] = {}
    for event in events:
        clock[event.at] = event.time
        match event.fact:
            case Configured():
                continue  # a strategy's base is made from the timeline, not part of it
            case EntryRemoved(id):
                aside.append(TimelineItem(event.at, "context_removed", id=id))
            case _:
                pass
        view.apply(event)
    aside += [
        TimelineItem(
            live.inserted_at, "context_inserted", (default.standing(live),), (clock[live.inserted_at],), live.id
        )
        for live in view.entries.values()
    ]
    conversation = _said(view, clock)
    items = _merged(conversation, sorted(aside, key=lambda item: item.at))
    return _runs(item for item in items if since is None or item.at > since)


def _check_position(since: object) -> None:
    if since is not None and (isinstance(since, bool) or not isinstance(since, int)):
        raise UsageError(f"timeline_messages: since is {since!r}; use a timeline position or None.")


def _said(view: View, clock: Mapping[int, float]) -> list[tuple[int, TimelineItem]]:
    """The visible conversation, one item per group, each with its position in the timeline.

    The opening of a segment was written later; it gets the position and time of the next group.
    """
    items: list[tuple[int, TimelineItem]] = []
    place: int | None = None
    for group in reversed(view.groups):
        kind = _kind(group)
        if kind is not None:
            place = group.at if place is None else min(place, group.at)
            messages = view.shown(group)
            items.append((place, TimelineItem(group.at, kind, messages, (clock[place],) * len(messages))))
    return items[::-1]


def _kind(group: Group) -> Kind | None:
    match group.kind:
        case "said":
            return "run" if group.item.message.role == "assistant" else "inbox"
        case "marker" | "handover":
            return "checkpoint"
        case "entry" | "notice":  # entries are taken from what is live, and notices are other sources
            return None


def _merged(conversation: Sequence[tuple[int, TimelineItem]], aside: Sequence[TimelineItem]) -> list[TimelineItem]:
    """Both lists merged by position; the conversation keeps its order."""
    items: list[TimelineItem] = []
    waiting = list(aside)
    for place, item in conversation:
        while waiting and waiting[0].at < place:
            items.append(waiting.pop(0))
        items.append(item)
    return items + waiting


def _runs(items: Iterable[TimelineItem]) -> list[TimelineItem]:
    """Consecutive groups of the agent, joined into one item."""
    joined: list[TimelineItem] = []
    for item in items:
        if item.kind == "run" and joined and joined[-1].kind == "run":
            last = joined.pop()
            item = TimelineItem(last.at, "run", last.messages + item.messages, last.times + item.times)
        joined.append(item)
    return joined


def _checked(messages: object, item: TimelineItem) -> Sequence[Message]:
    try:
        if isinstance(messages, list | tuple):
            return [message if isinstance(message, Message) else plain_message(message) for message in messages]
        reason = ""
    except TypeError as error:
        reason = f" ({error})"
    raise UsageError(
        f"timeline_messages: projection returned {messages!r} for the {item.kind} at {item.at}; "
        f"return a list of messages, or None for the default{reason}."
    )
