"""What does the model see at this place of the timeline? A fold of facts, one at a time, into the next request."""

from collections.abc import Iterable
from copy import copy
from typing import assert_never

import msgspec

from ra.context import projection
from ra.context.tape import Tape
from ra.context.tokens import Estimator
from ra.context.units import Item, Place, Unit
from ra.core.facts import (
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
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Block, Message, Text, ToolCall, ToolResult, say
from ra.core.model import TIERS, Request, Section, ToolSpec

_CONTAINERS = (
    "entries", "units", "hidden", "_standing", "_settled", "_clips", "_short", "_open", "_tape", "_offsets",
)  # fmt: skip


class View:
    """The fold. Facts alone decide what it shows, so that a replay shows what the live run showed."""

    def __init__(self, estimator: Estimator) -> None:
        self.at = 0
        self.configured: Configured | None = None
        self.entries: dict[str, Entry] = {}
        self.units: list[Unit] = []  # visible, by place
        self.hidden: list[Unit] = []  # by compactions of this segment
        self.summary = ""
        self.first: Place | None = None  # of the prompt that opened the segment
        self._gap: Place | None = None  # of the newest marker
        self._standing: set[str] = set()  # entries that still stand where they entered
        self._settled: dict[str, Section] = {}  # notices that a compaction moved into the system part
        self._clips: dict[Place, int] = {}
        self._short: dict[Place, Message] = {}  # messages that are shown shortened
        self._open: set[str] = set()  # ids of calls without a result
        self._estimator = estimator
        self._tape = Tape(estimator)
        self._offsets: list[int] = []  # where the messages of each unit that is on the tape begin
        self._sections: tuple[Section, ...] | None = None
        self._tools: tuple[ToolSpec, ...] = ()

    # --- the fold ---

    def apply(self, event: TimelineEvent) -> None:
        self.at = event.at
        match event.fact:
            case Said(message):
                self._say(Item((event.at, 0), message))
            case Noticed(section):
                item = Item((event.at, 0), projection.notice(section))
                self.units.append(Unit("notice", item, section=section))
            case EntrySet(id, content, name, attrs):
                self._forget(id)
                self.entries[id] = live = Entry(id, name, content, event.at, attrs)
                self._standing.add(id)
                self.units.append(Unit("entry", Item((event.at, 0), projection.standing(live)), id=id))
            case EntryRemoved(id):
                self._forget(id)
            case Checkpointed() as checkpoint:
                self._compact(checkpoint)
            case Rotated() as rotation:
                self._rotate(rotation)
            case Edited(messages=messages):
                self._restart(messages)
            case Configured() as configured:
                self._configure(configured)
            case Cut() | Spent() | Failed() | Interrupted():
                pass
            case _:
                assert_never(event.fact)

    def after(self, *facts: Fact) -> "View":
        """This view as it will be when these facts are recorded."""
        twin = copy(self)
        for name in _CONTAINERS:
            setattr(twin, name, getattr(self, name).copy())
        for number, fact in enumerate(facts, self.at + 1):
            twin.apply(TimelineEvent(number, 0.0, fact))
        return twin

    # --- what it shows ---

    @property
    def sections(self) -> tuple[Section, ...]:
        """The system part, from the most stable tier to the least; entries close the pinned tier."""
        if self._sections is None:
            settled = [live for live in self.entries.values() if live.id not in self._standing]
            own = self.configured.sections if self.configured else ()
            entries = projection.entries(settled)
            every = (*own, *((entries,) if entries else ()), *self._settled.values())
            self._sections = tuple(sorted(every, key=lambda section: TIERS.index(section.tier)))
        return self._sections

    @property
    def messages(self) -> tuple[Message, ...]:
        self._grow()
        return self._tape.messages

    def request(self) -> Request:
        """The next request, without cache marks."""
        config = self.configured or Configured(provider="", model="", strategy="timeline")
        return Request(config.model, self.sections, self.messages, self._tools, config.effort, config.max_output)

    def prompts(self) -> tuple[Unit, ...]:
        """What the user asked first in this segment, and last: neither is ever hidden."""
        first = next((unit for unit in self.units if unit.place == self.first), None)
        newest = next((unit for unit in reversed(self.units) if unit.is_prompt), None)
        return tuple(unit for unit in (first, newest if newest is not first else None) if unit)

    def rules(self) -> tuple[Unit, ...]:
        """The newest of each name among what entered to stay, such as the instruction files of a subdirectory."""
        notices = {unit.section.name: unit for unit in self.units if unit.section}
        return tuple(unit for unit in notices.values() if unit.section and unit.section.tier != "volatile")

    def pinned(self) -> tuple[Unit, ...]:
        """Units that no compaction hides: the prompts, rules, and the newest context of each name that came with the
        last prompt."""
        prompts = self.prompts()
        newest = max((unit.place for unit in prompts), default=(0, 0))
        notices = {unit.section.name: unit for unit in self.units if unit.section and unit.place > newest}
        units = {unit.place: unit for unit in (*prompts, *self.rules(), *notices.values())}
        return tuple(units.values())

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls that have no result, oldest first."""
        waiting = [unit for unit in self.units if unit.open] if self._open else []
        return tuple(
            call
            for unit in waiting
            for call, item in zip(unit.item.message.calls, unit.results, strict=True)
            if item is None
        )

    def notices(self) -> dict[str, Section]:
        """The newest visible notice of each name."""
        standing = {unit.section.name: unit.section for unit in self.units if unit.section}
        return self._settled | standing

    def shown(self, unit: Unit) -> tuple[Message, ...]:
        """The messages of a unit as the model sees them, with a result for every call."""
        head = self.clipped(unit.item)
        if unit.place == self.first:
            head = projection.summarized(head, self.summary)
        answers = tuple(
            self.clipped(item) if item else projection.missing(call)
            for call, item in zip(unit.item.message.calls, unit.results, strict=True)
        )
        return (head, *answers) if head.blocks else answers

    def clipped(self, item: Item) -> Message:
        """A message as the model sees it, with what clips and the limit for tool results leave of it."""
        at, block = item.place
        keep = [self.allowed((at, block + number), part) for number, part in enumerate(item.message.blocks)]
        if all(allowed is None for allowed in keep):
            return item.message
        known = self._short.get(item.place)
        if known is None:
            known = projection.clipped(item.message, f"#{at}", keep, self._estimator)
            if known is not item.message:
                self._short[item.place] = known
        return known

    def allowed(self, place: Place, block: Block) -> int | None:
        """The tokens of a block that are shown, None when all are."""
        return self._clips.get(place, projection.SHOWN if isinstance(block, ToolResult) else None)

    # --- how large it is, in o200k_base ---

    def fixed_tokens(self) -> int:
        return sum(map(self._estimator.section, self.sections)) + self._estimator.tools(self._tools)

    def tokens(self) -> int:
        self._grow()
        return self.fixed_tokens() + self._tape.tokens()

    def tokens_since(self, unit: int) -> int:
        """Of the units from this one of `units` on."""
        self._grow()
        return self._tape.tokens(since=self._offsets[unit]) if unit < len(self._offsets) else 0

    def messages_since(self, unit: int) -> tuple[Message, ...]:
        self._grow()
        return self._tape.messages[self._offsets[unit] :] if unit < len(self._offsets) else ()

    def newest_gap(self) -> int | None:
        """The number of the message that stands in for what was hidden last."""
        self._grow()
        return next((self._offsets[index] for index, unit in enumerate(self.units) if unit.place == self._gap), None)

    def unit_tokens(self, unit: Unit) -> int:
        return self._estimator.messages(self.shown(unit))

    @property
    def counted(self) -> bool:
        """Was it counted before? Then only what is new costs anything."""
        return self._tape.counted > 0

    # --- the parts of the fold ---

    def _say(self, item: Item) -> None:
        message = item.message
        if message.role == "tool":
            at, block = item.place
            for number, part in enumerate(message.blocks):
                if isinstance(part, ToolResult):
                    whole = message if len(message.blocks) == 1 else msgspec.structs.replace(message, blocks=(part,))
                    self._answer(part.call_id, Item((at, block + number), whole))
            return
        unit = Unit("said", item, results=(None,) * len(message.calls))
        self._open.update(call.id for call in message.calls)
        self.units.append(unit)
        if self.first is None and unit.is_prompt:
            self.first = unit.place

    def _answer(self, call_id: str, item: Item) -> None:
        """Put a result in the place of its call; one that answers no call is not shown."""
        if call_id not in self._open:
            return
        for index in range(len(self.units) - 1, -1, -1):
            unit = self.units[index]
            waiting = [
                number
                for number, (call, known) in enumerate(zip(unit.item.message.calls, unit.results, strict=True))
                if known is None and call.id == call_id
            ]
            if waiting:
                results = (*unit.results[: waiting[0]], item, *unit.results[waiting[0] + 1 :])
                self.units[index] = msgspec.structs.replace(unit, results=results)
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
            self._keep(unit for unit in self.units if unit.id != id)

    def _configure(self, configured: Configured) -> None:
        self.configured = configured
        self._sections = None
        self._tools = tuple(sorted(configured.tools, key=lambda spec: spec.name))
        if configured.base is not None:
            self._settle_notices(self.units, ())
            self._restart(configured.base)

    def _restart(self, messages: Iterable[Message]) -> None:
        """Begin anew with these messages. Entries are no part of them: they live in the system part from here on."""
        self._settle_entries()
        self._keep(())
        self.hidden, self.first = [], None
        self._clips, self._short, self._open = {}, {}, set()
        under_prompt = Text(projection.under_prompt(self.summary))
        found, block = False, 0
        for message in messages:
            if message.name == projection.ENTRIES:
                continue
            blocks = tuple(part for part in message.blocks if part != under_prompt)
            if len(blocks) < len(message.blocks):
                found, message = True, msgspec.structs.replace(message, blocks=blocks)
            self._say(Item((self.at, block), message))
            block += len(message.blocks)
        self.summary = self.summary if found else ""

    def _rotate(self, rotation: Rotated) -> None:
        dropped = [unit for unit in self.units if unit.at < rotation.keep_from]
        kept = [unit for unit in self.units if unit.at >= rotation.keep_from and unit.kind in ("said", "notice")]
        self._settle_entries()
        self._settle_notices(dropped, kept)
        self.hidden, self.summary, self.first = [], "", None
        opening = Item((self.at, 0), say("user", rotation.handover, name=projection.HANDOVER))
        self._keep((*([Unit("handover", opening)] if rotation.handover else []), *kept))

    def _compact(self, checkpoint: Checkpointed) -> None:
        self._settle_entries()
        self._clip(checkpoint)
        covered = [unit for unit in self.units if self._covers(checkpoint, unit)]
        gone = {unit.place for unit in covered}
        kept = [unit for unit in self.units if unit.place not in gone]
        self._settle_notices(covered, kept)
        self.hidden = sorted(
            (*self.hidden, *(unit for unit in covered if unit.kind != "marker")), key=lambda unit: unit.place
        )
        if checkpoint.marker and covered:
            self._gap = place = _place_of_marker(covered[0])
            self._clips.pop(place, None)  # it was about the marker that stood here before
            self._short.pop(place, None)
            marker = Item(place, say("user", checkpoint.marker, name=projection.COMPACTED))
            kept.insert(self.units.index(covered[0]), Unit("marker", marker))
        self._keep(kept)

    def _clip(self, checkpoint: Checkpointed) -> None:
        """Shorten blocks and set the summary; what is on the tape from the first of them on is shown anew."""
        for clip in checkpoint.clips:
            place = (clip.at, clip.block)
            self._clips[place] = min(clip.keep, self._clips.get(place, clip.keep))
        positions = {clip.at for clip in checkpoint.clips}
        if checkpoint.summary:
            self.summary = checkpoint.summary
            positions |= {self.first[0]} if self.first else set()
        touched = (
            index for index, unit in enumerate(self.units) if any(item.place[0] in positions for item in unit.items)
        )
        self._changed(next(touched, len(self.units)))
        self._short = {place: short for place, short in self._short.items() if place[0] not in positions}

    def _covers(self, checkpoint: Checkpointed, unit: Unit) -> bool:
        """Is it hidden? By its position; or, among the many messages of one fact, by clips that leave nothing."""
        if unit.place == self.first or unit.kind in ("entry", "handover"):
            return False
        if any(start <= unit.at <= end for start, end in checkpoint.hidden):
            return True
        at, block = unit.place
        return all(self._clips.get((at, block + number)) == 0 for number in range(len(unit.item.message.blocks)))

    def _settle_entries(self) -> None:
        """Move entries from where they entered into the pinned part."""
        if self._standing:
            self._standing.clear()
            self._sections = None
            self._keep(unit for unit in self.units if unit.kind != "entry")

    def _settle_notices(self, dropped: Iterable[Unit], kept: Iterable[Unit]) -> None:
        """Rules that are hidden move into the system part, unless newer ones of that name stand; volatile ones go."""
        standing = {unit.section.name for unit in kept if unit.section}
        for unit in dropped:
            if unit.section and unit.section.tier != "volatile" and unit.section.name not in standing:
                self._settled[unit.section.name] = msgspec.structs.replace(unit.section, role="system")
                self._sections = None

    # --- the tape ---

    def _keep(self, units: Iterable[Unit]) -> None:
        """Show these units from now on; what comes before the first difference stays on the tape."""
        before, self.units = self.units, list(units)
        same = 0
        for old, new in zip(before, self.units, strict=False):
            if old is not new:
                break
            same += 1
        self._changed(same)

    def _changed(self, index: int) -> None:
        if index < len(self._offsets):
            self._tape.cut(self._offsets[index])
            del self._offsets[index:]

    def _grow(self) -> None:
        for unit in self.units[len(self._offsets) :]:
            self._offsets.append(len(self._tape))
            self._tape.extend(self.shown(unit))


def _place_of_marker(first: Unit) -> Place:
    """Where the first hidden unit was, but not its place: blocks below zero are nobody's."""
    at, block = first.place
    return (at, block if block < 0 else -1 - block)
