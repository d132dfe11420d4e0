"""Decides whether a cut is worth its price before the window is full; `auto` asks it."""

import math
from typing import Protocol

from ra.context.compaction.cut import Compactor, split
from ra.context.size import INDEX, Allowance
from ra.context.view import View
from ra.core.facts import Checkpointed, TimelineEvent

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


def wanted(
    economy: Economy, view: View, allowance: Allowance, total: int, compactor: Compactor
) -> tuple[str, Checkpointed | None]:
    """Why a request of `total` tokens should be cut now, and the cut; "" and nothing when it should not."""
    zones = split(view, allowance.recent)
    zone = zones.compactable
    if not zone or allowance.index <= INDEX:  # there is no room for a better index than that of a full window
        return "", None
    zone = zone[len(compactor.standing(view, zone, allowance)) :]
    standing_index = sum(view.group_tokens(group) for group in zone if group.kind == "marker")
    cut = sum(map(view.group_tokens, zone))
    if cut == standing_index:
        return "", None
    start = view.tokens() - view.tokens_since(view.groups.index(zone[0]))
    index = min(allowance.index, standing_index + (cut - standing_index) // INDEXED)
    before, inside, stand_in = (math.ceil(size * allowance.rate) for size in (start, cut, index))
    behind = total - before - inside
    if not economy.wants(before=before, zone=inside, behind=behind, stand_in=stand_in):
        return "", None
    # Text that is full of names has a larger index than others: what the cut costs is known when it is written.
    fact = compactor.hide(view, zones, allowance)
    if fact is None:
        return "", None
    index = view.after(fact).tokens() - view.tokens() + cut
    reason = economy.wants(before=before, zone=inside, behind=behind, stand_in=math.ceil(index * allowance.rate))
    return reason, fact if reason else None
