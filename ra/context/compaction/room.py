"""How much may a request hold, and how should that be divided when it has to shrink?"""

import math
from collections.abc import Callable

import msgspec

from ra.context.compaction.digest import MOST
from ra.context.compaction.zones import Zones
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator, scaled
from ra.context.view import View
from ra.context.window import input_budget, target
from ra.core.facts import Checkpointed

STEPS = 8  # an economical cut leaves at least so many groups: what the model works on right now,
LARGEST_STEPS = 4  # unless they are larger than so many times what it would leave
MERGED = 0.70  # of the room for indexes, when several become one: the next ones find some
NAMED = 4  # parts that an error names
SUMMARY = 0.10  # of the window, for all that stands under the first prompt


class Room(msgspec.Struct, frozen=True):
    """Sizes in o200k_base; `rate` tokens of the model are one of those.

    `most` has to hold if the request `must` shrink at all, `goal` is what a compaction aims at, `recent` stays as it is
    at the end. What stands in for the rest has at most `summary` tokens under the first prompt, or `index` in the gap:
    one index, or with `stack` several, of which one with `merged` tokens is made when they are too many.
    """

    must: bool
    most: int
    goal: int
    recent: int
    summary: int
    index: int
    merged: int
    rate: float
    stack: bool = False

    def scaled(self, view: View) -> int:
        """The size of a view in the model's tokens."""
        return scaled(view.tokens(), self.rate)


Hide = Callable[[View, Zones, Room], Checkpointed | None]
"""What a module that is a compaction holds: hides groups of the compactable zone; None when there are none."""


def room(
    view: View,
    total: int,
    *,
    settings: CompactionSettings,
    limit: int | None,
    max_output: int,
    refit: int | None = None,
    cut: tuple[int, int] | None = None,
    eager: bool = False,
    stack: bool = False,
) -> Room:
    """What a request that is now `total` tokens may come down to in a window of `limit`.

    `refit` is another bound from above; `cut` says what an economical cut leaves, recent groups and indexes; an eager
    compaction was asked for and comes down to half, however much would fit; with `stack` indexes may stand one behind
    the other.
    """
    window = limit or total
    rate = total / max(1, view.tokens())
    budget = input_budget(limit, max_output) if limit else total
    most = min(budget, refit or total)
    aim = target(window, threshold=settings.threshold, max_tokens=settings.max_tokens) or most
    goal = min(aim, most)
    recent, index = cut or (int(window * settings.recent), int(MOST * rate))
    if cut:
        steps = [unit for unit in view.units if unit.kind == "said"][-STEPS:]
        working = min(int(sum(map(view.unit_tokens, steps)) * rate), LARGEST_STEPS * recent)
        recent, index = max(recent, min(working, int(window * settings.recent))), max(index, int(MOST * rate))
    if eager:
        goal, recent = min(goal, total // 2), min(recent, int(total * settings.recent))
    # What is left beside the system part and the prompts bounds all that a small window can hold.
    fixed = view.fixed_tokens() + sum(map(view.unit_tokens, view.pinned()))
    free = max(0, int(goal / rate) - fixed)
    # An economical cut is made long before the window is full: that the request is small now is no reason to forget.
    held = max(0, int(min(budget, aim, refit or budget) / rate) - fixed) if cut and limit else free
    index = min(int(index / rate), held // (2 if cut else 3))
    return Room(
        must=total > most,
        most=int(most / rate),
        goal=int(goal / rate),
        recent=min(int(recent / rate), free // 2),
        summary=min(int(window * SUMMARY / rate), free // 2),
        index=index,
        merged=max(int(index * MERGED), min(index, MOST)) if cut else index,
        rate=rate,
        stack=stack,
    )


def too_small(view: View, space: Room, estimator: Estimator) -> str:
    """The sentence for a request that cannot be made to fit: what fills it, largest first, and what to do about it."""
    sizes = sorted(((scaled(estimator.section(one), space.rate), one.name) for one in view.sections), reverse=True)
    tools = scaled(estimator.tools(view.request().tools), space.rate)
    named = ", ".join(f"{name} {size}" for size, name in sizes[:NAMED])
    total = sum(size for size, _ in sizes)
    return (
        f"The system part ({total} tokens: {named}) and the tool definitions ({tools}) leave too little room for the "
        f"conversation: a request may have {math.floor(space.most * space.rate)} tokens. Use fewer tools (--no-tools, "
        "agent.tools), a shorter system prompt, fewer instruction files (agent.context.patterns), fewer entries "
        "(ra entry rm ID), or a model with a larger window (agent.compaction.contextWindow)."
    )
