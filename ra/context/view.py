"""Folds the facts of a timeline, one at a time, into what the model sees next."""

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from operator import attrgetter
from typing import Literal, assert_never

import msgspec

from ra.context import render
from ra.context.rewrites import Rewrites
from ra.context.tokens import Estimator, MessageList
from ra.core.facts import (
    CacheDecided,
    Checkpointed,
    Configured,
    Cut,
    Edited,
    Entry,
    EntryRemoved,
    EntrySet,
    Fact,
    Failed,
    Interrupted,
    Kept,
    Noticed,
    Rewound,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
    Titled,
)
from ra.core.messages import Block, Message, Text, ToolCall, ToolResult, say
from ra.core.model import TIERS, Request, Section, ToolSpec

Position = tuple[int, int]
"""A position in the timeline, and the number of a block in its fact, which may hold many messages."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """A message, and the position of its first block."""

    place: Position
    message: Message


class Group(msgspec.Struct, frozen=True, gc=False):
    """A group of the conversation, or one piece of context among it. Never split."""

    kind: Literal["said", "notice", "entry", "marker", "handover"]
    item: Item
    results: tuple[Item | None, ...] = ()  # one for each call, None while it is missing
    section: Section | None = None  # of a notice
    id: str = ""  # of an entry

    @property
    def place(self) -> Position:
        return self.item.place

    @property
    def at(self) -> int:
        return self.item.place[0]

    @property
    def items(self) -> tuple[Item, ...]:
        """The messages of the group, as recorded."""
        return (self.item, *(item for item in self.results if item))

    @property
    def last_at(self) -> int:
        return max(item.place[0] for item in self.items)

    @property
    def is_prompt(self) -> bool:
        """Whether the user typed it. A message with a name is context."""
        return self.kind == "said" and self.item.message.role == "user" and not self.item.message.name

    @property
    def open(self) -> bool:
        return None in self.results


_place = attrgetter("item.place")
_CONTAINERS = (
    "entries", "groups", "prompted", "kept", "omitted", "_standing", "_settled", "_clips", "_short", "_open", "_list",
    "_offsets", "rewrites",
)  # fmt: skip
_STATE = ("groups", "kept", "omitted", "_settled", "_clips")  # what a rewrite changes, and going back restores
_NAMED_STATE = ("hidden", "summary", "first", "_gap")  # the same of what is replaced as a whole

OMITTED = "[The user took "  # how the marker of an omission begins


class View:
    """The fold. It depends on facts alone, so a replay shows what the live run showed."""

    def __init__(self, estimator: Estimator) -> None:
        self.at = 0
        self.configured: Configured | None = None
        self.entries: dict[str, Entry] = {}
        self.groups: list[Group] = []  # visible, by place
        self.hidden: tuple[Group, ...] = ()  # by compactions of this segment, by place
        self.prompted: list[Group] = []  # everything that the user typed in this session, earlier segments included
        self.kept: set[int] = set()  # positions that the user wants in every request
        self.omitted: set[int] = set()  # positions that the user took out
        self.summary = ""
        self.first: Position | None = None  # of the prompt that opened the segment
        self._gap: Position | None = None  # of the newest marker
        self._standing: set[str] = set()  # entries that are still where they entered the conversation
        self._settled: dict[str, Section] = {}  # notices that a compaction moved into the system part
        self._clips: dict[Position, int] = {}
        self._short: dict[Position, Message] = {}  # messages that are shown shortened
        self._open: set[str] = set()  # ids of calls without a result
        self.rewrites = Rewrites()
        self._estimator = estimator
        self._list = MessageList(estimator)
        self._offsets: list[int] = []  # the index of each group's first message in the list
        self._sections: tuple[Section, ...] | None = None
        self._tools: tuple[ToolSpec, ...] = ()

    # --- the fold ---

    def apply(self, event: TimelineEvent) -> None:
        self.at = event.at
        match event.fact:
            case Said(message):
                group = self._say(Item((event.at, 0), message))
                if group and group.is_prompt:
                    self.prompted.append(group)
            case Spent() | Cut() | CacheDecided() | Titled() | Failed() | Interrupted():
                pass
            case Noticed(section):
                self.groups.append(Group("notice", Item((event.at, 0), render.notice(section)), section=section))
            case EntrySet(id, content, name, attrs):
                self._forget(id)
                self.entries[id] = live = Entry(id, name, content, event.at, attrs)
                self._standing.add(id)
                self.groups.append(Group("entry", Item((event.at, 0), render.standing(live)), id=id))
            case EntryRemoved(id):
                self._forget(id)
            case Checkpointed() as checkpoint:
                self._remember()
                self._compact(checkpoint)
            case Rotated() as rotation:
                self._remember()
                self._rotate(rotation)
            case Edited(messages=messages):
                self._remember()
                self._restart(messages)
            case Kept(at):
                self._remember()
                self._bring_back(at)
            case Rewound(to):
                self._rewind(to)
            case Configured() as configured:
                self._configure(configured)
            case _:
                assert_never(event.fact)

    def after(self, *facts: Fact) -> "View":
        """A copy of this view, as if these facts were recorded."""
        twin = copy(self)
        for name in _CONTAINERS:
            setattr(twin, name, getattr(self, name).copy())
        for number, fact in enumerate(facts, self.at + 1):
            twin.apply(TimelineEvent(number, 0.0, fact))
        return twin

    # --- what it shows ---

    @property
    def sections(self) -> tuple[Section, ...]:
        """The system part, from the most stable tier to the least stable. Entries end the pinned tier."""
        if self._sections is None:
            settled = [live for live in self.entries.values() if live.id not in self._standing]
            configured = self.configured.sections if self.configured else ()
            entries = render.entries(settled)
            every = (*configured, *((entries,) if entries else ()), *self._settled.values())
            self._sections = tuple(sorted(every, key=lambda section: TIERS.index(section.tier)))
        return self._sections

    @property
    def messages(self) -> tuple[Message, ...]:
        self._grow()
        return self._list.messages

    def request(self) -> Request:
        """The next request, without cache marks."""
        config = self.configured or Configured(provider="", model="", strategy="timeline")
        effort, output, schema = config.effort, config.max_output, config.answer_schema
        return Request(config.model, self.sections, self.messages, self._tools, effort, output, answer_schema=schema)

    def prompts(self) -> tuple[Group, ...]:
        """The first and the last prompt of this segment: neither is ever hidden."""
        first = next((group for group in self.groups if group.place == self.first), None)
        newest = next((group for group in reversed(self.groups) if group.is_prompt), None)
        return tuple(group for group in (first, newest if newest is not first else None) if group)

    def rules(self) -> tuple[Group, ...]:
        """The newest notice of each name that must stay, such as a subdirectory's instruction files."""
        notices = {group.section.name: group for group in self.groups if group.section}
        return tuple(group for group in notices.values() if group.section and group.section.tier != "volatile")

    def pinned(self) -> tuple[Group, ...]:
        """What is never hidden: prompts, rules, what the user keeps, the newest context since the last prompt."""
        prompts = self.prompts()
        newest = max((group.place for group in prompts), default=(0, 0))
        notices = {group.section.name: group for group in self.groups if group.section and group.place > newest}
        kept_groups = [
            group for group in self.groups if self.kept and any(item.place[0] in self.kept for item in group.items)
        ]
        groups = {group.place: group for group in (*prompts, *self.rules(), *notices.values(), *kept_groups)}
        return tuple(groups.values())

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls without a result, oldest first."""
        waiting = [group for group in self.groups if group.open] if self._open else []
        return tuple(
            call
            for group in waiting
            for call, item in zip(group.item.message.calls, group.results, strict=True)
            if item is None
        )

    def notices(self) -> dict[str, Section]:
        """The newest visible notice of each name."""
        return self._settled | {group.section.name: group.section for group in self.groups if group.section}

    def shown(self, group: Group) -> tuple[Message, ...]:
        """The messages of a group as the model sees them, with a result for every call."""
        head = self.clipped(group.item)
        if group.place == self.first:
            head = render.summarized(head, self.summary)
        answers = tuple(
            self.clipped(item) if item else render.missing(call)
            for call, item in zip(group.item.message.calls, group.results, strict=True)
        )
        return (head, *answers) if head.blocks else answers

    def clipped(self, item: Item) -> Message:
        """A message as the model sees it, shortened by clips and by the limit for tool results."""
        if not self._clips and render.is_small(item.message):
            return item.message
        at, block = item.place
        keep = [self.allowed((at, block + number), part) for number, part in enumerate(item.message.blocks)]
        if all(allowed is None for allowed in keep):
            return item.message
        short = self._short.get(item.place) or render.clipped(item.message, f"#{at}", keep, self._estimator)
        if short is not item.message:
            self._short[item.place] = short
        return short

    def allowed(self, place: Position, block: Block) -> int | None:
        """How many tokens of a block are shown; None means all."""
        return self._clips.get(place, render.SHOWN if isinstance(block, ToolResult) else None)

    # --- how large it is, in o200k_base ---

    def fixed_tokens(self) -> int:
        return sum(map(self._estimator.section, self.sections)) + self._estimator.tools(self._tools)

    def tokens(self) -> int:
        self._grow()
        return self.fixed_tokens() + self._list.tokens()

    def tokens_since(self, group: int) -> int:
        """The tokens of the groups from this index of `groups` on."""
        self._grow()
        return self._list.tokens(since=self._offsets[group]) if group < len(self._offsets) else 0

    def messages_since(self, group: int) -> tuple[Message, ...]:
        self._grow()
        return self._list.messages[self._offsets[group] :] if group < len(self._offsets) else ()

    def newest_gap(self) -> int | None:
        """The number of the newest gap's marker among the messages."""
        self._grow()
        return next((self._offsets[index] for index, group in enumerate(self.groups) if group.place == self._gap), None)

    def group_tokens(self, group: Group) -> int:
        return self._estimator.messages(self.shown(group))

    @property
    def counted(self) -> bool:
        """Whether the request was counted before, so that only new messages have to be counted."""
        return self._list.counted > 0

    # --- the parts of the fold ---

    def _say(self, item: Item) -> Group | None:
        message = item.message
        if message.role == "tool":
            at, block = item.place
            for number, part in enumerate(message.blocks):
                if isinstance(part, ToolResult):
                    single = message if len(message.blocks) == 1 else msgspec.structs.replace(message, blocks=(part,))
                    self._answer(part.call_id, Item((at, block + number), single))
            return None
        group = Group("said", item, results=(None,) * len(calls := message.calls))
        self._open.update([call.id for call in calls])
        self.groups.append(group)
        if self.first is None and group.is_prompt:
            self.first = group.place
        return group

    def _answer(self, call_id: str, item: Item) -> None:
        """Attach a result to its call. A result without a call is not shown."""
        if call_id not in self._open:
            return
        for index in range(len(self.groups) - 1, -1, -1):
            group = self.groups[index]
            if not group.open:
                continue
            calls, answers = group.item.message.calls, group.results
            waiting = [n for n, call in enumerate(calls) if call.id == call_id and answers[n] is None]
            if waiting:
                results = (*group.results[: waiting[0]], item, *group.results[waiting[0] + 1 :])
                self.groups[index] = msgspec.structs.replace(group, results=results)
                self._changed(index)
                if len(waiting) == 1:
                    self._open.discard(call_id)
                return

    def _forget(self, id: str) -> None:
        if self.entries.pop(id, None) is None:
            return
        self._sections = None
        if id in self._standing:
            self._standing.remove(id)
            self._keep(group for group in self.groups if group.id != id)

    def _configure(self, configured: Configured) -> None:
        self.configured = configured
        self._sections, self._tools = None, tuple(sorted(configured.tools, key=lambda spec: spec.name))
        if configured.base is not None:
            self._remember()
            self._settle_notices(self.groups, ())
            self._restart(configured.base)

    def _restart(self, messages: Iterable[Message]) -> None:
        """Start a new segment with these messages. Entries are not among them: they move into the system part."""
        self._settle_entries()
        self._keep(())
        self.hidden, self.first = (), None
        self._clips, self._short, self._open = {}, {}, set()
        under_prompt = Text(render.under_prompt(self.summary))
        summarized, block = False, 0
        for message in messages:
            if message.name == render.ENTRIES:
                continue
            blocks = tuple(part for part in message.blocks if part != under_prompt)
            if len(blocks) < len(message.blocks):
                summarized, message = True, msgspec.structs.replace(message, blocks=blocks)
            self._say(Item((self.at, block), message))
            block += len(message.blocks)
        self.summary = self.summary if summarized else ""

    def _rotate(self, rotation: Rotated) -> None:
        start = rotation.keep_from
        dropped = [group for group in self.groups if group.at < start]
        staying = [group for group in self.groups if group.at >= start and group.kind in ("said", "notice")]
        self._settle_entries()
        self._settle_notices(dropped, staying)
        self.hidden, self.summary, self.first = (), "", None
        handover = [_handover((self.at, 0), rotation.handover)] if rotation.handover else []
        self._keep((*handover, *staying))

    def _compact(self, checkpoint: Checkpointed) -> None:
        self._settle_entries()
        if checkpoint.clips or checkpoint.summary:
            self._clip(checkpoint)
        covered = [group for group in self.groups if self._covers(checkpoint, group)]
        places = {group.item.place for group in covered}
        staying = [group for group in self.groups if group.item.place not in places]
        self._settle_notices(covered, staying)
        self.omitted.update(group.at for group in covered if checkpoint.marker.startswith(OMITTED))
        gone = [group for group in covered if group.kind != "marker"]
        if gone:  # usually behind all earlier hidden groups, which may be many and are not sorted again
            first = bisect_left(self.hidden, min(map(_place, gone)), key=_place)
            self.hidden = self.hidden[:first] + tuple(sorted((*self.hidden[first:], *gone), key=_place))
        if checkpoint.marker and covered:
            self._gap = place = _place_of_marker(covered[0])
            self._clips.pop(place, None)  # the clip applied to the marker that was here before
            self._short.pop(place, None)
            marker = Item(place, say("user", checkpoint.marker, name=render.COMPACTED))
            staying.insert(self.groups.index(covered[0]), Group("marker", marker))
        if mended := checkpoint.handover:
            staying = [group if group.kind != "handover" else _handover(group.place, mended) for group in staying]
        self._keep(staying)

    # --- what the user brings back, and going back ---

    def _bring_back(self, at: int) -> None:
        """Show the message at a position in full. An omission's marker that replaced only this message goes."""
        self.kept, self.omitted = self.kept | {at}, self.omitted - {at}
        back = [group for group in self.hidden if any(item.place[0] == at for item in group.items)]
        self.hidden = tuple(group for group in self.hidden if group not in back)
        self._clips = {place: keep for place, keep in self._clips.items() if place[0] != at}
        self._short = {place: short for place, short in self._short.items() if place[0] != at}
        gaps = {_place_of_marker(group) for group in back}
        omitted = {group.place for group in self.groups if group.item.message.text.startswith(OMITTED)}
        groups = [group for group in self.groups if group.place not in gaps & omitted]
        for group in back:
            later = (n for n, other in enumerate(groups) if other.kind != "handover" and other.place > group.place)
            groups.insert(next(later, len(groups)), group)
        touched = (n for n, group in enumerate(groups) if any(item.place[0] == at for item in group.items))
        self._changed(min(next(touched, len(groups)), len(self._offsets)))
        self._keep(groups)

    def _remember(self) -> None:
        """Keep the state before a rewrite, for a rewind to an earlier position."""
        state = {name: getattr(self, name).copy() for name in _STATE}
        self.rewrites.remember(self.at, state | {name: getattr(self, name) for name in _NAMED_STATE})

    def _rewind(self, to: int) -> None:
        """Forget everything after a position, except entries, which are made to last."""
        self._settle_entries()
        self._changed(0)
        for name, value in self.rewrites.take_back(to).items():
            setattr(self, name, value.copy() if name in _STATE else value)
        self._short, self._sections = {}, None
        self.prompted = [group for group in self.prompted if group.at <= to]
        self.hidden = tuple(group for group in self.hidden if group.at <= to)
        self.kept = {at for at in self.kept if at <= to}
        self.first = self.first if self.first is None or self.first[0] <= to else None
        self._keep(group for group in self.groups if group.at <= to and group.kind != "entry")
        self._open = {call.id for group in self.groups if group.open for call in group.item.message.calls}

    def _clip(self, checkpoint: Checkpointed) -> None:
        """Shorten blocks and set the summary, and rebuild the message list from the first of them on."""
        for clip in checkpoint.clips:
            place = (clip.at, clip.block)
            self._clips[place] = min(clip.keep, self._clips.get(place, clip.keep))
        positions = {clip.at for clip in checkpoint.clips}
        if checkpoint.summary:
            self.summary = checkpoint.summary
            positions |= {self.first[0]} if self.first else set()
        touched = (n for n, group in enumerate(self.groups) if any(item.place[0] in positions for item in group.items))
        self._changed(next(touched, len(self.groups)))
        self._short = {place: short for place, short in self._short.items() if place[0] not in positions}

    def _covers(self, checkpoint: Checkpointed, group: Group) -> bool:
        """Whether the checkpoint hides the group: by position or, in a fact of many messages, by empty clips."""
        at, block = place = group.item.place
        if place == self.first or group.kind in ("entry", "handover"):
            return False
        # Loops, not any() and all(): a long session asks this a million times when it is resumed.
        for start, end in checkpoint.hidden:
            if start <= at <= end:
                return True
        for number in range(len(group.item.message.blocks)):  # noqa: SIM110 - as above
            if self._clips.get((at, block + number)) != 0:
                return False
        return True

    def _settle_entries(self) -> None:
        """Move entries from their places in the conversation into the pinned part."""
        if self._standing:
            self._standing.clear()
            self._sections = None
            self._keep(group for group in self.groups if group.kind != "entry")

    def _settle_notices(self, dropped: Iterable[Group], kept: Iterable[Group]) -> None:
        """Move hidden rules into the system part, unless a newer one of that name is visible; volatile ones go."""
        standing = {group.section.name for group in kept if group.section}
        for group in dropped:
            if group.section and group.section.tier != "volatile" and group.section.name not in standing:
                self._settled[group.section.name] = msgspec.structs.replace(group.section, role="system")
                self._sections = None

    # --- the message list ---

    def _keep(self, groups: Iterable[Group]) -> None:
        """Show these groups from now on. The message list stays as it is up to the first difference."""
        before, self.groups = self.groups, list(groups)
        pairs = zip(before, self.groups, strict=False)
        shorter = min(len(before), len(self.groups))
        self._changed(next((n for n, (old, new) in enumerate(pairs) if old is not new), shorter))

    def _changed(self, index: int) -> None:
        if index < len(self._offsets):
            self._list.cut(self._offsets[index])
            del self._offsets[index:]

    def _grow(self) -> None:
        for group in self.groups[len(self._offsets) :]:
            self._offsets.append(len(self._list))
            self._list.extend(self.shown(group))


def _handover(place: Position, text: str) -> Group:
    return Group("handover", Item(place, say("user", text, name=render.HANDOVER)))


def _place_of_marker(first: Group) -> Position:
    """The marker's position: that of the first hidden group, with a negative block, which nothing else has."""
    at, block = first.place
    return (at, block if block < 0 else -1 - block)
