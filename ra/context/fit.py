"""Divides a budget of tokens: one algorithm for slots, sources and layers."""

from collections.abc import Callable, Sequence

import msgspec

from ra.core.value import Value


class Claim(msgspec.Struct, frozen=True):
    """A part that competes for tokens.

    `fit(limit)` says how large it will be when it may have `limit` tokens: at most the limit, `size` when the limit
    allows it, and less than the limit where it is cut in whole pieces. What has higher `priority` is cut later.
    """

    size: int
    fit: Callable[[int], int]
    cap: int
    minimum: int = 0
    priority: int = 0


class Allotment(msgspec.Struct, frozen=True):
    """`limits` holds the room of each part: what it keeps is `fit(limit)`. `short` are those below their minimum."""

    limits: tuple[int, ...]
    short: tuple[int, ...] = ()
    floors_ignored: bool = False


class FitRow(Value, frozen=True):
    """What became of a part, for the report, in the model's tokens. `cut` says what is missing and how to recall it."""

    name: str
    role: str
    tokens: int
    size: int
    max: int
    minimum: int = 0
    priority: int = 0
    tier: str = ""
    cut: str = ""


def allot(parts: Sequence[Claim], budget: int) -> Allotment:
    """Divide a budget among parts that stand in the order of the prompt.

    - No part ever gets more than its cap, and all together never more than the budget.
    - A minimum counts up to the part's size and its cap. When all minimums together exceed the budget, none holds, and
      priority alone decides. The floor of a part is its minimum, or what whole pieces within its cap can come to.
    - A part that is cut in whole pieces can often not keep its floor exactly. Then it keeps the next size above it;
      every part does, as long as the sum of those sizes is within the budget. When it is not, the parts of highest
      priority do, and the others stay just below their floors.
    - What is left goes to the parts by priority; among equals the last in order is served first, since the first in
      order is cut first. Room that a part cannot use, because its next piece is too large, goes on to the next part.
    """
    budget = max(0, budget)
    caps = [max(0, min(part.cap, part.size)) for part in parts]
    most = [part.fit(cap) for part, cap in zip(parts, caps, strict=True)]
    minimums = [min(part.minimum, cap) for part, cap in zip(parts, caps, strict=True)]
    ignored = sum(minimums) > budget
    if sum(most) <= budget:
        return Allotment(tuple(caps), _short(most, minimums), ignored)
    floors = [0 if ignored else min(least, size) for least, size in zip(minimums, most, strict=True)]
    limits = list(floors)
    sizes = [part.fit(floor) for part, floor in zip(parts, floors, strict=True)]
    spare = budget - sum(sizes)
    by_rank = sorted(range(len(parts)), key=lambda index: (-parts[index].priority, -index))

    for index in by_rank:
        if sizes[index] < floors[index]:
            limit = _least(parts[index].fit, floors[index], min(caps[index], sizes[index] + spare))
            if limit is not None:
                spare -= parts[index].fit(limit) - sizes[index]
                limits[index], sizes[index] = limit, parts[index].fit(limit)
    for index in by_rank:
        limit = min(caps[index], sizes[index] + spare)
        size = parts[index].fit(limit)
        if size > sizes[index]:
            spare -= size - sizes[index]
            limits[index], sizes[index] = limit, size

    return Allotment(tuple(limits), _short(sizes, minimums), ignored)


def _short(sizes: Sequence[int], minimums: Sequence[int]) -> tuple[int, ...]:
    return tuple(index for index, size in enumerate(sizes) if size < minimums[index])


def _least(fit: Callable[[int], int], floor: int, most: int) -> int | None:
    """The smallest limit, at most `most`, that lets a part keep its floor; None when there is none."""
    if fit(most) < floor:
        return None
    step, high = 1, floor
    while high < most and fit(high) < floor:
        high = min(most, high + step)
        step *= 2
    low = max(floor, high - step // 2)
    while low < high:
        middle = (low + high) // 2
        if fit(middle) >= floor:
            high = middle
        else:
            low = middle + 1
    return high


def fair(sizes: Sequence[int], budget: int) -> list[int]:
    """Equal shares. A part that needs less than its share leaves the rest to the others."""
    shares = [0] * len(sizes)
    remaining = max(0, budget)
    ascending = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for served, index in enumerate(ascending):
        shares[index] = min(sizes[index], remaining // (len(sizes) - served))
        remaining -= shares[index]
    return shares
