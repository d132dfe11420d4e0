"""Is a cut worth its price before the window is full? The question that `auto` asks, and who answers it."""

import math
from typing import Protocol

from ra.context.compaction.digest import MOST, standing
from ra.context.compaction.room import Room
from ra.context.compaction.zones import split
from ra.context.view import View
from ra.core.facts import TimelineEvent

INDEXED = 8  # tokens of conversation for one of its index, about; it is written only when it is wanted


class Economy(Protocol):
    """Decides by price when `auto` compacts, and how much a cut leaves. In the model's tokens."""

    def observe(self, event: TimelineEvent) -> None: ...

    def sizes(self, window: int | None, *, forced: bool = False) -> tuple[int, int]:
        """Of the newest groups that stay, and of the index that stands in for the others; forced: at the threshold."""
        ...

    @property
    def warm(self) -> bool:
        """Is the last request still in the provider's cache?"""
        ...

    def wants(self, *, before: int, zone: int, behind: int, stand_in: int) -> str:
        """Why the request should be cut now, "" when it should not: its size before, in and behind what can be cut."""
        ...


def wanted(economy: Economy, view: View, space: Room, total: int) -> str:
    """Why a request of `total` tokens should be cut now, or nothing."""
    zone = split(view, space.recent).compactable
    if not zone or space.index <= MOST:  # there is no room for a better index than that of a full window
        return ""
    zone = zone[len(standing(view, zone, space.index)) if space.stack else 0 :]
    old = sum(view.unit_tokens(unit) for unit in zone if unit.kind == "marker")
    cut = sum(map(view.unit_tokens, zone))
    if cut == old:
        return ""
    start = view.tokens() - view.tokens_since(view.units.index(zone[0]))
    index = min(space.index, old + (cut - old) // INDEXED)
    before, inside, stand_in = (math.ceil(size * space.rate) for size in (start, cut, index))
    return economy.wants(before=before, zone=inside, behind=total - before - inside, stand_in=stand_in)
