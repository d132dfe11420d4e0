"""What stands in for hidden messages when no model is asked? An index of what happened, with references."""

from collections.abc import Collection, Iterable, Sequence

from ra.context.compaction import names
from ra.context.compaction.findings import Note, Trace, trace
from ra.context.compaction.zones import Zones, gap
from ra.context.tokens import Estimator
from ra.context.units import Place, Unit
from ra.context.view import View
from ra.core.facts import Checkpointed

MOST = 3_000  # tokens of an index
HEADED = 2_000  # tokens of an index, at most, that the headings share; a larger one holds more names
STACKED = 500  # the same, of an index that stands behind others
FULL = 0.95  # of the room for indexes: then the next one does not stand behind them, all become one

_NAMES = "Names, and where they were seen last:"

# What each heading may take of it; what one leaves goes to the names, which come last.
_HEADINGS = (
    ("user", "The user said", 0.20),
    ("changed", "Files changed", 0.15),
    ("read", "Files read", 0.15),
    ("command", "Commands", 0.20),
    ("error", "Errors", 0.10),
)


class Digest:
    """Writes indexes. What was read off a group once is remembered, for the next index covers it again."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._traces: dict[Place, Trace] = {}

    def compact(
        self, view: View, zones: Zones, most: int = MOST, *, merged: int | None = None, stack: bool = False
    ) -> Checkpointed | None:
        """Hide the whole compactable zone behind an index of at most so many tokens; None when it is empty.

        With `stack` the indexes that stand there stay, byte for byte, and the new one, of what was hidden since, comes
        behind them: `most` is for all of them. When that is full they become one, of `merged` tokens.
        """
        old = standing(view, zones.compactable, most) if stack else ()
        chosen = zones.compactable[len(old) :]
        if all(unit.kind == "marker" for unit in chosen):
            return None
        room, headed = most - sum(map(view.unit_tokens, old)), STACKED if old else HEADED
        if merged is not None and any(unit.kind == "marker" for unit in chosen):
            room = merged
        hole = gap(view, chosen, apart=bool(old))
        head = (
            f"[Compacted: {sum(len(unit.items) for unit in hole.units)} messages are hidden here. Nothing is lost: "
            f'recall("#N") reads position N word for word, recall("{hole.ref}") all of it, '
            'recall("some words") searches. What happened there:]'
        )
        # A name that is still in front of the model needs no index; it gets one when that is hidden in its turn.
        gone = {unit.place for unit in chosen}
        shown = (message for unit in view.units if unit.place not in gone for message in view.shown(unit))
        known = frozenset[str]().union(*map(names.spoken, shown))
        index = self.index(hole.units, room - self._estimator.text(head), known=known, headed=headed)
        return Checkpointed("digest", "", hidden=hole.hidden, clips=hole.clips, marker=f"{head}\n{index}".rstrip())

    def index(self, units: Sequence[Unit], room: int, *, known: Collection[str] = (), headed: int = HEADED) -> str:
        """At most `room` tokens about these groups: what happened, in `headed` of them, and names not `known`."""
        traces = [self.trace(unit) for unit in units]
        notes = [note for one in traces for note in one.notes]
        lines: list[str] = []
        for kind, heading, share in _HEADINGS:
            latest = _latest(note for note in notes if note.kind == kind)
            chosen = self._newest(latest, int(min(room, headed) * share) - self._estimator.text(heading) - 3)
            if chosen:
                lines += [f"{heading}:", *chosen]
        told = "\n".join(lines)
        seen = names.fold((unit.last_at, one.names) for unit, one in zip(units, traces, strict=True))
        for name in (*names.identifiers(told), *known):
            seen.pop(name, None)
        left = room - self._estimator.text(told)
        while left > 0:
            chosen = names.choose(seen, left, self._cost)
            written = "\n".join([told, _NAMES, names.written(chosen, seen)] if chosen else [told]).strip()
            excess = self._estimator.text(written) - room
            if excess <= 0:
                return written
            left -= excess
        return told

    def _cost(self, name: str) -> int:
        return self._estimator.text(f" {name}")

    def trace(self, unit: Unit) -> Trace:
        known = self._traces.get(unit.place)
        if known is None:
            known = self._traces[unit.place] = trace(unit)
        return known

    def _newest(self, notes: Sequence[Note], room: int) -> list[str]:
        """The newest notes that fit, in their order."""
        chosen: list[str] = []
        for note in reversed(notes):
            written = f"- {note.text} #{note.at}"
            room -= self._estimator.text(written) + 1
            if room < 0:
                break
            chosen.append(written)
        return chosen[::-1]


def standing(view: View, zone: Sequence[Unit], most: int) -> Sequence[Unit]:
    """The indexes that a zone begins with, if another can stand behind them; none when they have to be merged."""
    count = sum(unit.kind == "marker" for unit in zone)
    head = zone[:count]
    full = sum(map(view.unit_tokens, head)) > most * FULL
    return () if full or any(unit.kind != "marker" for unit in head) else head


def _latest(notes: Iterable[Note]) -> list[Note]:
    """One note for each text, where it was found last, in order of place."""
    latest = {note.text: note for note in notes}
    return sorted(latest.values(), key=lambda note: note.at)
