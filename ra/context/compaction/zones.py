"""What may a compaction hide? Everything between what is pinned and what is recent, in whole groups."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from ra.context.units import Place, Unit
from ra.context.view import View
from ra.core.facts import Clip


class Zones(msgspec.Struct, frozen=True):
    """The conversation in two of its three zones, oldest first; all that is in neither is pinned.

    Pinned are the first prompt, the newest prompt with the context that came with it (the model works on that),
    entries and a handover.
    """

    compactable: tuple[Unit, ...]
    recent: tuple[Unit, ...]

    @property
    def spent(self) -> bool:
        """Is there nothing to hide but what marks earlier gaps?"""
        return all(unit.kind == "marker" for unit in self.compactable)


def split(view: View, recent_room: int) -> Zones:
    """Recent are the newest whole groups that fit into `recent_room` tokens, and at least the last one."""
    units = view.units
    start, left = len(units), recent_room
    while start > 0:
        left -= view.unit_tokens(units[start - 1])
        if left < 0 and any(unit.kind == "said" for unit in units[start:]):
            break
        start -= 1
    return Zones(_hideable(units[:start], view.pinned()), tuple(units[start:]))


def everything(view: View) -> Zones:
    """The last resort: nothing is recent, and the prompts and rules stand alone."""
    return Zones(_hideable(view.units, (*view.prompts(), *view.rules())), ())


def _hideable(units: Iterable[Unit], pinned: Iterable[Unit]) -> tuple[Unit, ...]:
    places = {unit.place for unit in pinned}
    kinds = ("said", "notice", "marker")
    return tuple(unit for unit in units if unit.kind in kinds and unit.place not in places and not unit.open)


class Gap(msgspec.Struct, frozen=True):
    """What a checkpoint hides: positions, parts of positions, and the units that lie there now or did before."""

    hidden: tuple[tuple[int, int], ...]
    clips: tuple[Clip, ...]
    units: tuple[Unit, ...]

    @property
    def ref(self) -> str:
        """How to recall it."""
        start, end = self.units[0].at, max(unit.last_at for unit in self.units)
        return f"#{start}-{end}" if end > start else f"#{start}"


def gap(view: View, chosen: Sequence[Unit], *, apart: bool = False) -> Gap:
    """Hide the chosen units, and the gap right before them: two gaps that meet become one, unless they stay `apart`."""
    before = view.units.index(chosen[0]) - 1
    if not apart and before >= 0 and view.units[before].kind == "marker":
        chosen = (view.units[before], *chosen)
    hidden, clips = _address(view.units, {unit.place for unit in chosen})
    # A marker stands for all that was hidden behind it, also beyond a prompt that stayed.
    past = [unit for unit in view.hidden if chosen[0].place <= unit.place <= chosen[-1].place]
    units = sorted((*past, *(unit for unit in chosen if unit.kind != "marker")), key=lambda unit: unit.place)
    return Gap(hidden, clips, tuple(units))


def _address(units: Sequence[Unit], places: Collection[Place]) -> tuple[tuple[tuple[int, int], ...], tuple[Clip, ...]]:
    """As few ranges as possible. Messages that share one position (a hook assigned them) are named one by one."""
    crowd = Counter(unit.at for unit in units)
    runs: list[tuple[int, int]] = []
    clips: list[Clip] = []
    start: int | None = None
    for unit in units:
        if unit.place not in places:
            start = None
        elif crowd[unit.at] > 1:
            start = None
            clips += [Clip(unit.at, unit.place[1] + number, 0) for number in range(len(unit.item.message.blocks))]
        elif start is None:
            start = unit.at
            runs.append((start, unit.at))
        else:
            runs[-1] = (start, unit.at)
    return tuple(runs), tuple(clips)
