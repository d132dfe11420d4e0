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

Size = tuple[Place, int]


def descend(view: View, zones: Zones, goal: int, room: int, estimator: Estimator) -> list[Checkpointed]:
    """The rungs below a compaction, each taken at most once and only while the request is larger than `room`.

    A rung that is taken aims at `goal`, so that the next message does not lead here again.
    """
    facts: list[Checkpointed] = []
    recent = {unit.place for unit in zones.recent}
    asked = {unit.place for unit in view.prompts()}

    def clip(now: View, sizes: Iterable[Size]) -> Checkpointed | None:
        return _clip_to(now, list(sizes), goal)

    rungs: tuple[Callable[[View], Checkpointed | None], ...] = (
        lambda now: clip(now, _outputs(now, (unit for unit in now.units if unit.place not in recent), estimator)),
        lambda now: clip(now, _outputs(now, now.units, estimator)),
        lambda now: clip(now, _blocks(now, (unit for unit in now.units if unit.place not in asked), estimator)),
        lambda now: truncate(now, split(now, 0), goal),
        lambda now: clip(now, _blocks(now, now.units, estimator)),
        lambda now: truncate(now, everything(now), goal),
    )
    for rung in rungs:
        if view.tokens() <= room:
            break
        fact = rung(view)
        if fact is not None:
            facts.append(fact)
            view = view.after(fact)
    return facts


def _clip_to(view: View, sizes: Sequence[Size], goal: int) -> Checkpointed | None:
    """Cut the largest of these blocks, all to one mark, such that the request comes down to `goal` if it can."""
    others = view.tokens() - sum(size for _, size in sizes)
    mark = max(FLOOR, level([size for _, size in sizes], goal - others))
    clips = tuple(Clip(at, block, mark) for (at, block), size in sizes if size > mark)
    return Checkpointed("ladder", "", clips=clips) if clips else None


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
