"""What if hiding groups is not enough? Shorten more and more, the user's words last, until the request fits."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ra.context.compaction.truncate import truncate
from ra.context.compaction.zones import Zones, everything, split
from ra.context.projection import level, size
from ra.context.tokens import Estimator
from ra.context.units import Item, Place, Unit
from ra.context.view import View
from ra.core.facts import Checkpointed, Clip

FLOOR = 48  # tokens that are left of anything: both ends and a reference
BARE = 12  # where not even that fits: the reference alone

Size = tuple[Place, int]
Blocks = Callable[[View, Iterable[Unit], Estimator], Iterable[Size]]
Rung = Callable[[View], Checkpointed | None]


def descend(view: View, zones: Zones, goal: int, room: int, estimator: Estimator) -> list[Checkpointed]:
    """The rungs below a compaction, each taken at most once and only while the request is larger than `room`.

    A rung that is taken aims at `goal`, so that the next message does not lead here again. The first prompt stays word
    for word unless it alone is too large, or nothing else is left to give.
    """
    facts: list[Checkpointed] = []
    recent = {unit.place for unit in zones.recent}
    asked = {unit.place for unit in view.prompts()}

    def clip(now: View, blocks: Blocks, which: Callable[[Unit], bool], floor: int = FLOOR) -> Checkpointed | None:
        return _clip_to(now, list(blocks(now, filter(which, now.units), estimator)), goal, floor)

    def is_first(unit: Unit) -> bool:
        return unit.place == view.first

    rungs: tuple[Rung, ...] = (
        lambda now: clip(now, _outputs, lambda unit: unit.place not in recent),
        lambda now: clip(now, _outputs, lambda unit: True),
        lambda now: clip(now, _blocks, lambda unit: unit.place not in asked),
        lambda now: _shorten_summary(now, goal, estimator),
        lambda now: truncate(now, split(now, 0), goal),
        lambda now: clip(now, _blocks, lambda unit: unit.place in asked and not is_first(unit)),
        lambda now: clip(now, _blocks, is_first) if _alone_too_large(now, room) else None,
        lambda now: clip(now, _blocks, lambda unit: unit.place not in asked, BARE),
        lambda now: truncate(now, everything(now), goal, terse=True),
        lambda now: _bare(now, (unit for unit in now.units if not is_first(unit)), goal, estimator),
        lambda now: _bare(now, filter(is_first, now.units), goal, estimator),
    )
    for rung in rungs:
        if view.tokens() <= room:
            break
        fact = rung(view)
        after = view.after(fact) if fact is not None else view
        if fact is not None and after.tokens() < view.tokens():
            facts.append(fact)
            view = after
    return facts


def _alone_too_large(view: View, room: int) -> bool:
    """Would the first prompt not even fit if it were all that was said?"""
    first = [unit for unit in view.units if unit.place == view.first]
    return view.fixed_tokens() + sum(map(view.unit_tokens, first)) > room


def _shorten_summary(view: View, goal: int, estimator: Estimator) -> Checkpointed | None:
    """It was written for a larger window."""
    size = estimator.text(view.summary)
    keep = max(FLOOR, size - (view.tokens() - goal))
    return Checkpointed("ladder", "", summary=estimator.clip(view.summary, keep, "head")) if size > keep else None


def _clip_to(view: View, sizes: Sequence[Size], goal: int, floor: int) -> Checkpointed | None:
    """Cut the largest of these blocks, all to one mark, such that the request comes down to `goal` if it can."""
    others = view.tokens() - sum(size for _, size in sizes)
    mark = max(floor, level([size for _, size in sizes], goal - others))
    clips = tuple(Clip(at, block, mark) for (at, block), size in sizes if size > mark)
    return Checkpointed("ladder", "", clips=clips) if clips else None


def _bare(view: View, units: Iterable[Unit], goal: int, estimator: Estimator) -> Checkpointed | None:
    """References alone; of prompts that came with many files, the first and the last."""
    chosen = list(units)
    fact = _clip_to(view, list(_blocks(view, chosen, estimator)), goal, BARE)
    if view.after(*([fact] if fact else [])).tokens() <= goal:
        return fact
    middles = [
        Clip(unit.at, unit.place[1] + number, 0)
        for unit in chosen
        if unit.is_prompt
        for number in range(1, len(unit.item.message.blocks) - 1)
    ]
    places = {(clip.at, clip.block) for clip in middles}
    others = [clip for clip in fact.clips if (clip.at, clip.block) not in places] if fact else []
    return Checkpointed("ladder", "", clips=(*others, *middles)) if others or middles else None


def _outputs(view: View, units: Iterable[Unit], estimator: Estimator) -> Iterator[Size]:
    for unit in units:
        for item in unit.results:
            if item is not None:
                yield from _sizes(view, item, estimator)


def _blocks(view: View, units: Iterable[Unit], estimator: Estimator) -> Iterator[Size]:
    for unit in units:
        for item in unit.items:
            yield from _sizes(view, item, estimator)


def _sizes(view: View, item: Item, estimator: Estimator) -> Iterator[Size]:
    """The blocks of a message by place, as large as they are shown now."""
    at, first = item.place
    for number, block in enumerate(item.message.blocks):
        place = (at, first + number)
        allowed, whole = view.allowed(place, block), size(block, estimator)
        yield place, whole if allowed is None else min(whole, allowed)
