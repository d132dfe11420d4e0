"""Decides when a conversation continues in a new segment, and what that segment starts with."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ra.context import render
from ra.context.fit import fair
from ra.context.settings import SessionSettings
from ra.context.size import quotes_room
from ra.context.tokens import Estimator
from ra.context.view import Group, View
from ra.core.facts import Configured, Rotated, Said, Spent, TimelineEvent
from ra.core.model import Usage

if TYPE_CHECKING:
    from ra.context.compaction.quotes import Quotes

Reason = Literal["stale", "tier-2", "max-turns"]

STALE_MINUTES = 45.0
TIER_TWO_TOKENS = 180_000
MAX_TURNS = 15
QUOTE = 400  # tokens of one message that the user typed: a new segment is small
INDEX = 1_500  # tokens of the old segment's digest: half of what a compaction may have, since turns stand beside it


class RotationLimits(msgspec.Struct, frozen=True):
    """When to rotate. None turns a limit off."""

    stale_s: float | None = None
    tokens: int | None = None
    turns: int | None = None


def limits(settings: SessionSettings, strategy: str) -> RotationLimits:
    """All three limits under `layered`, none under `planner`, which starts fresh anyway; else those that are set."""
    if strategy == "planner":
        return RotationLimits()
    usual = strategy == "layered"
    minutes = settings.stale_minutes or (STALE_MINUTES if usual else None)
    return RotationLimits(
        None if minutes is None else minutes * 60,
        settings.tier_two_threshold_tokens or (TIER_TWO_TOKENS if usual else None),
        settings.max_turns_per_session or (MAX_TURNS if usual else None),
    )


class Segment:
    """A fold of what the limits look at. Times are the timeline's, so a restart or midnight changes nothing.

    Only messages of the user and the model count as activity, not what a tool or a resume records.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.heard: float | None = None
        self.last = Usage()
        self.opened_at = 0  # the position of the rotation that began it

    def apply(self, event: TimelineEvent) -> None:
        match event.fact:
            case Said(message):
                prompt = message.role == "user" and not message.name
                self.turns += prompt
                if prompt or message.role == "assistant":
                    self.heard = event.time
            case Spent(purpose="turn", usage=usage):
                self.last = usage
                self.heard = event.time
            case Configured(strategy="planner"):
                self.turns, self.last = 1, Usage()  # the conversation restarts with the turn that was just planned
            case Rotated():
                self.turns, self.last, self.opened_at = 0, Usage(), event.at
            case _:
                pass


def due(segment: Segment, limits: RotationLimits, *, now: float) -> Reason | None:
    """Why the next message opens a new segment, or None. Must be called before that message is recorded."""
    if not segment.turns or segment.heard is None:
        return None
    if limits.stale_s is not None and now - segment.heard > limits.stale_s:
        return "stale"
    if limits.tokens is not None and segment.last.total_input >= limits.tokens:
        return "tier-2"
    if limits.turns is not None and segment.turns >= limits.turns:
        return "max-turns"
    return None


def rotate(
    view: View, reason: Reason, segment: Segment, *, history: int, estimator: Estimator, window: int | None = None
) -> Rotated:
    """The fact that begins a new segment: a digest of the old one, and its newest turns within `history` tokens.

    What the user typed has its own budget, as in a compaction.

    Turns are repeated whole. The conversation of the next older turn, which is too large for that, is written into
    the hand-over without its tool calls, so that the newest turn is always present.
    """
    from ra.context.compaction.quotes import Quotes  # only when a segment ends

    room = estimator.plain(history)
    keep_from, size = _whole_turns(view, room)
    older = [group for group in view.groups if group.at < keep_from and group.kind == "said"]
    hidden = [group for group in view.hidden if group.at not in view.omitted]
    dropped = sorted((*hidden, *older), key=lambda group: group.place)
    if not dropped:
        return Rotated(reason, _carried_on(view, estimator), keep_from)
    last_words = _said(older, room - size, estimator, newest=not size)
    said = Quotes(estimator)
    outdated = said.replaced_names(view)
    quotes = _quotes(said, view, keep_from, quotes_room(window, estimator.factor))
    return Rotated(reason, _handover(dropped, last_words, quotes, outdated, segment, estimator), keep_from)


def _whole_turns(view: View, room: int) -> tuple[int, int]:
    """The position from which on the newest turns fit whole, and their size."""
    keep_from, size = view.at + 1, 0
    for prompt in reversed([group for group in view.groups if group.is_prompt]):
        if prompt.at < keep_from:
            turn = [group for group in view.groups if group.at >= prompt.at and group.kind in ("said", "notice")]
            tokens = sum(map(view.group_tokens, turn))
            if tokens > room:
                break
            keep_from, size = prompt.at, tokens
    return keep_from, size


def _quotes(said: "Quotes", view: View, keep_from: int, room: int) -> str:
    """What the user typed in this session, without what is repeated whole or was replaced."""
    prompts = [group for group in view.prompted if group.at not in view.omitted]
    # A repeated turn may have a hidden part, and gaps where an earlier segment ended.
    replayed = {group.place for group in view.groups if group.at >= keep_from}
    places = (group.place for group in prompts if group.place not in replayed)
    return said.write(places, room, longest=QUOTE).text


def _carried_on(view: View, estimator: Estimator) -> str:
    """The hand-over that the old segment began with, for the next one; "" in the first segment."""
    from ra.context.compaction.quotes import Quotes  # only when a segment ends

    handover = next((group.item.message.text for group in view.groups if group.kind == "handover"), "")
    return handover and (Quotes(estimator).mended_handover(view) or handover)


def _handover(
    dropped: Sequence[Group],
    last_words: str,
    quotes: str,
    outdated: Collection[str],
    segment: Segment,
    estimator: Estimator,
) -> str:
    from ra.context.compaction.digest import Digest  # only when a segment ends

    first, last = dropped[0].at, max(group.last_at for group in dropped)
    head = (
        f"[A new segment of this conversation begins here. What came before (#{first}-{last}) is not replayed; "
        'nothing is lost: recall("#N") reads position N word for word, recall("some words") searches.]'
    )
    earlier = f'Earlier segments: recall("#{segment.opened_at}").' if segment.opened_at else ""
    digest = Digest(estimator)
    index = digest.index(dropped, INDEX, skipped=digest.unused(dropped, outdated))
    return "\n".join(part for part in (head, earlier, index, last_words, quotes) if part)


def _said(older: Sequence[Group], room: int, estimator: Estimator, *, newest: bool) -> str:
    """The conversation before the repeated turns: the newest whole messages that fit, without tools.

    With `newest`, no turn is repeated: then the last prompt and answer are always there, if need be shortened.
    """
    spoken = [(group, text) for group in older if (text := render.text_of(group.item.message).strip())]
    lines = [f"{group.item.message.role}: {text}" for group, text in spoken]
    prompts = [index for index, (group, _) in enumerate(spoken) if group.is_prompt]
    sure = sorted({*prompts[-1:], len(lines) - 1}) if newest and lines else []
    picked: dict[int, str] = {}
    for index, share in zip(sure, fair([estimator.text(lines[index]) for index in sure], room), strict=True):
        marker = f' [… recall("#{spoken[index][0].at}") reads the rest …] '
        picked[index] = estimator.clip(lines[index], share, marker=marker)
    room -= sum(map(estimator.text, picked.values()))
    for index in range(len(lines) - 1, -1, -1):
        if index not in picked:
            room -= estimator.text(lines[index]) + 1
            if room < 0:
                break
            picked[index] = lines[index]
    return "\n".join(["What was said last:", *(picked[index] for index in sorted(picked))]) if picked else ""
