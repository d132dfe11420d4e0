"""Is a cut worth its price before the window is full? The question that `auto` asks, and who answers it."""

import math
from typing import Protocol

from ra.context.compaction.digest import MOST, standing
from ra.context.compaction.room import Hide, Room
from ra.context.compaction.zones import split
from ra.context.view import View
from ra.core.facts import TimelineEvent

INDEXED = 8  # tokens of conversation for one of its index, about; it is written only when it may be wanted


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


def wanted(economy: Economy, view: View, space: Room, total: int, hide: Hide) -> str:
    """Why a request of `total` tokens should be cut now, or nothing. `hide` makes the cut, to see what it leaves."""
    zones = split(view, space.recent)
    zone = zones.compactable
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
    behind = total - before - inside
    if not economy.wants(before=before, zone=inside, behind=behind, stand_in=stand_in):
        return ""
    # Text that is full of names has a larger index than others: what the cut costs is known when it is written.
    made = hide(view, zones, space)
    if made is None:
        return ""
    index = view.after(made).tokens() - view.tokens() + cut
    return economy.wants(before=before, zone=inside, behind=behind, stand_in=math.ceil(index * space.rate))
