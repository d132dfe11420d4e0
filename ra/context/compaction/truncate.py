"""How is room made without a model and without touching the cached prefix? Hide the fewest groups, from the back."""

from ra.context.compaction.room import Room
from ra.context.compaction.zones import Gap, Zones, gap
from ra.context.units import Unit
from ra.context.view import View
from ra.core.facts import Checkpointed

MARKER = 80  # tokens of the marker, at most


def hide(view: View, zones: Zones, room: Room) -> Checkpointed | None:
    return truncate(view, zones, room.goal)


def truncate(view: View, zones: Zones, goal: int, *, terse: bool = False) -> Checkpointed | None:
    """Hide as little of the compactable zone as brings the request down to `goal` tokens; None when there is none."""
    excess = view.tokens() + MARKER - goal
    chosen: list[Unit] = []
    for unit in reversed(zones.compactable):
        if excess <= 0:
            break
        chosen.append(unit)
        excess -= view.unit_tokens(unit)
    if all(unit.kind == "marker" for unit in chosen):
        return None
    hole = gap(view, chosen[::-1])
    words = f'[recall("{hole.ref}") reads what is hidden here]' if terse else marker(view, hole)
    return Checkpointed("truncate", "", hidden=hole.hidden, clips=hole.clips, marker=words)


def marker(view: View, hole: Gap) -> str:
    """Tells the model what is missing and how to get it back. No time, nothing random: it stands in the prefix."""
    messages = sum(len(unit.items) for unit in hole.units)
    tokens = sum(map(view.unit_tokens, hole.units))
    return (
        f"[Compacted: {messages} messages, about {tokens} tokens, are hidden here. Nothing is lost: "
        f'recall("{hole.ref}") reads them word for word, recall("some words") searches.]'
    )
