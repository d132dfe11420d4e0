"""Writes the index that stands in for hidden messages when no model is asked: what happened, with references."""

from collections.abc import Collection, Iterable, Sequence

from ra.context.compaction.findings import GroupTrace, Note, trace
from ra.context.compaction.names import Sightings, identifiers, spoken, written
from ra.context.tokens import Estimator
from ra.context.view import Group, Position
from ra.core.messages import Message

HEADED = 2_000  # tokens of an index, at most, that the headings share; a larger one holds more names
STACKED = 500  # the same, of an index that stands behind others
FULL = 0.95  # of the allowance for indexes: then the next one does not stand behind them, all become one

_NAMES = "Names, and where they were seen last:"

# What each heading may take of it; what one leaves goes to the names, which come last.
_HEADINGS = (
    ("changed", "Files changed", 0.15),
    ("read", "Files read", 0.15),
    ("command", "Commands", 0.20),
    ("error", "Errors", 0.10),
)


class Digest:
    """Writes indexes. What was read off a group once is remembered, for the next index covers it again."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._traces: dict[Position, GroupTrace] = {}
        self._row: list[Position] = []  # of the groups whose names were read
        self._sightings = Sightings(self._cost)

    def stand_in(
        self,
        groups: Sequence[Group],
        ref: str,
        room: int,
        *,
        visible: Iterable[Message],
        outdated: Collection[str] = (),
        behind_others: bool = False,
    ) -> str:
        """What stands in the gap of these groups, in at most `room` tokens.

        A name in one of the `visible` messages needs no index; it gets one when that is hidden in its turn.
        """
        head = (
            f"[Compacted: {sum(len(group.items) for group in groups)} messages are hidden here. Nothing is lost: "
            f'recall("#N") reads position N word for word, recall("{ref}") all of it, '
            'recall("some words") searches. What happened there:]'
        )
        skipped = frozenset(outdated).union(*map(spoken, visible))
        headed = STACKED if behind_others else HEADED
        index = self.index(groups, room - self._estimator.text(head), skipped=skipped, headed=headed)
        return f"{head}\n{index}".rstrip()

    def index(self, groups: Sequence[Group], room: int, *, skipped: Collection[str] = (), headed: int = HEADED) -> str:
        """At most `room` tokens about these groups: what happened, in `headed` of them, and names not `skipped`."""
        traces = [self.trace(group) for group in groups]
        notes = [note for single in traces for note in single.notes]
        lines: list[str] = []
        for kind, heading, share in _HEADINGS:
            latest = _latest(note for note in notes if note.kind == kind)
            entries = self._newest(latest, int(min(room, headed) * share) - self._estimator.text(heading) - 3)
            if entries:
                lines += [f"{heading}:", *entries]
        headings = "\n".join(lines)
        frame = f"{headings}\n{_NAMES}\n".lstrip()
        listed = self.names(groups, room - self._estimator.text(frame), skipped={*identifiers(headings), *skipped})
        return frame + listed if listed else headings

    def names(self, groups: Sequence[Group], room: int, *, skipped: Collection[str] = ()) -> str:
        """The names in these groups that are most likely to be used again, by place, in at most `room` tokens."""
        sightings = self._sightings_of(groups)
        best = sightings.within(room, sightings.best(skipped))
        for_names = room
        while for_names > 0:
            listing = written(sightings.within(for_names, best), sightings)
            excess = self._estimator.text(listing) - room
            if excess <= 0:
                return listing
            for_names -= excess
        return ""

    def _sightings_of(self, groups: Sequence[Group]) -> Sightings:
        """Of a row that begins as the last one did only the rest is read; one that begins later has its own."""
        row = [group.place for group in groups]
        pairs = zip(self._row, row, strict=False)
        shared = next((index for index, (old, new) in enumerate(pairs) if old != new), min(len(self._row), len(row)))
        sightings = self._sightings
        if row[:1] > self._row[:1] or not sightings.cut(shared):
            sightings, shared = Sightings(self._cost), 0
        for group in groups[shared:]:
            sightings.add(group.last_at, self.trace(group).names)
        if row[:1] <= self._row[:1] or not self._row:
            self._row, self._sightings = row, sightings
        return sightings

    def unused(self, groups: Iterable[Group], names: Collection[str]) -> set[str]:
        """Those of the names that no tool of these groups had to do with."""
        used = (self.trace(group).names for group in groups if group.results) if names else ()
        return set(names).difference(*used)

    def _cost(self, name: str) -> int:
        return self._estimator.text(f" {name}")

    def trace(self, group: Group) -> GroupTrace:
        if group.place not in self._traces:
            self._traces[group.place] = trace(group)
        return self._traces[group.place]

    def _newest(self, notes: Sequence[Note], room: int) -> list[str]:
        """The newest notes that fit, in their order."""
        entries: list[str] = []
        for note in reversed(notes):
            entry = f"- {note.text} #{note.at}"
            room -= self._estimator.text(entry) + 1
            if room < 0:
                break
            entries.append(entry)
        return entries[::-1]


def _latest(notes: Iterable[Note]) -> list[Note]:
    """One note for each text, where it was found last, in order of place."""
    latest = {note.text: note for note in notes}
    return sorted(latest.values(), key=lambda note: note.at)
