"""The messages of a conversation as its user counts them: which are in the window, and what changing that costs."""

from collections.abc import Iterable
from typing import Literal, assert_never

from ra.context.engine import Engine
from ra.context.report import first_difference
from ra.context.view import OMITTED
from ra.core.errors import UsageError
from ra.core.facts import Checkpointed, Clip, Kept, Rewound, Said, TimelineEvent
from ra.core.functions import Price
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Usage
from ra.core.value import Value, encode

OMIT = "omit"  # the name of such a compaction
BY_USER = "omitted by the user"

State = Literal["shown", "shortened", "hidden"]


class SessionMessage(Value, frozen=True):
    """A message of the conversation. `number` counts messages from 1; `at` is its place in the timeline, for recall."""

    number: int
    at: int
    time: float
    role: str
    text: str  # all of it
    tokens: int  # that it takes in the next request; of a hidden one, that it would take
    state: State
    kept: bool = False  # no compaction hides it
    is_prompt: bool = False


class WindowChange(Value, frozen=True):
    """What a change of the window does: its fact, the sizes, and what the next call's input costs before and after.

    `first` is the next call, which writes the cache anew from the change on; "" where no price is known.
    """

    fact: Checkpointed | Kept | Rewound
    before: int
    after: int
    now: str = ""
    first: str = ""
    later: str = ""


def messages(engine: Engine, events: Iterable[TimelineEvent]) -> list[SessionMessage]:
    """All that was said and is part of the conversation, oldest first; hidden messages too."""
    view, estimator = engine.view, engine.estimator
    groups = {item.place[0]: (group, "hidden") for group in view.hidden for item in group.items}
    groups |= {item.place[0]: (group, "shown") for group in view.groups for item in group.items}
    listed, number = [], 0
    for event in events:
        if not isinstance(event.fact, Said):
            continue
        number += 1
        if event.at not in groups:
            continue
        group, state = groups[event.at]
        item = next(item for item in group.items if item.place[0] == event.at)
        visible = view.clipped(item) if state == "shown" else item.message
        short = state == "shown" and visible is not item.message
        listed.append(
            SessionMessage(
                number,
                event.at,
                event.time,
                event.fact.message.role,
                _text(event.fact.message),
                estimator.scaled(estimator.message(visible)),
                "shortened" if short else "hidden" if state == "hidden" else "shown",
                kept=event.at in view.kept,
                is_prompt=group.is_prompt,
            )
        )
    return listed


def omission(engine: Engine, message: SessionMessage) -> Checkpointed:
    """The fact that takes a message out. A result goes alone, an answer with the results of its calls."""
    view = engine.view
    group = next((group for group in view.groups if message.at in (item.place[0] for item in group.items)), None)
    if group is None:
        number = message.number
        raise UsageError(f"Message {number} is already out of the window; /keep {number} brings it back.")
    if group in view.prompts():
        raise UsageError(
            f"Message {message.number} is the {'first' if group.place == view.first else 'last'} thing you asked, "
            "which always stays; /rewind goes back to before it."
        )
    if message.role == "tool":
        items = [item for item in group.items if item.place[0] == message.at]
        clips = [Clip(item.place[0], item.place[1] + n, 0) for item in items for n in range(len(item.message.blocks))]
        return Checkpointed(OMIT, BY_USER, clips=tuple(clips))
    size = engine.estimator.scaled(view.group_tokens(group))
    places = f"#{group.at}" if group.at == group.last_at else f"#{group.at}-{group.last_at}"
    marker = f"{OMITTED}a message of about {size:,} tokens out of view here: {places}. Recall reads it back.]"
    return Checkpointed(OMIT, BY_USER, hidden=((group.at, group.last_at),), marker=marker)


def changed(engine: Engine, fact: Checkpointed | Kept | Rewound, price: Price) -> WindowChange:
    """What this fact would do to the next request, and to its price while the cache is warm."""
    view = engine.view
    before = engine.measure(exact=True) or 0
    changed_view = view.after(fact)
    rate = before / (view.tokens() or 1)
    after = round(changed_view.tokens() * rate)
    difference = first_difference(view.request(), changed_view.request(), engine.estimator)
    unchanged = min(after, max(0, before - (difference.rebilled if difference else 0)))
    model = view.request().model
    prices = (
        price(model, Usage(cache_read=before)),
        price(model, Usage(cache_read=unchanged, cache_write=after - unchanged)),
        price(model, Usage(cache_read=after)),
    )
    now, first, later = ("" if amount is None else str(amount) for amount in prices)
    return WindowChange(fact, before, after, now, first, later)


def _text(message: Message) -> str:
    """What a person reads of a message: no thinking, and a word for what is no text."""
    return "\n".join(text for block in message.blocks if (text := _readable(block)))


def _readable(block: Block) -> str:
    match block:
        case Text(text):
            return text
        case ToolCall(name=name, args=args):
            return f"[call {name} {encode(args).decode()}]"
        case ToolResult(name=name, content=content):
            return "\n".join([f"[result of {name}]", *map(_readable, content)])
        case Thinking():
            return ""
        case Image(media_type=kind) | Document(media_type=kind):
            return f"[{kind}]"
        case _:
            assert_never(block)
