"""Are caps, budgets and minimums held, whatever the parts and however they are cut?"""

from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.fit import Claim, allot, fair


def smooth(size: int, *, cap: int = 10**9, minimum: int = 0, priority: int = 0) -> Claim:
    """A part that can be cut anywhere."""
    return Claim(size, lambda limit: min(size, limit), cap, minimum, priority)


def pieces(*sizes: int, cap: int = 10**9, minimum: int = 0, priority: int = 0) -> Claim:
    """A part that is cut in whole pieces, the first of which go first."""
    newest = [0, *accumulate(reversed(sizes))]
    return Claim(newest[-1], lambda limit: newest[bisect_right(newest, limit) - 1], cap, minimum, priority)


def kept(parts: list[Claim], budget: int) -> list[int]:
    return [part.fit(limit) for part, limit in zip(parts, allot(parts, budget).limits, strict=True)]


@pytest.mark.parametrize(
    ("parts", "budget", "sizes"),
    [
        ([smooth(10), smooth(20)], 100, [10, 20]),  # all fit
        ([smooth(50, cap=5), smooth(20)], 100, [5, 20]),  # a cap holds though there is room
        ([smooth(50, priority=1), smooth(50)], 60, [50, 10]),  # the lower priority is cut
        ([smooth(50), smooth(50)], 60, [10, 50]),  # among equals the first in order is cut
        ([smooth(50, minimum=30), smooth(50)], 60, [30, 30]),  # a minimum holds
        ([smooth(20, minimum=30), smooth(50)], 60, [20, 40]),  # but only up to the real size
        ([smooth(50, minimum=30, cap=10), smooth(60)], 60, [10, 50]),  # and only up to the cap
        ([smooth(50, minimum=40), smooth(50, minimum=40)], 60, [10, 50]),  # minimums that do not fit are ignored
        ([smooth(50, minimum=40, priority=1), smooth(50, minimum=40)], 60, [50, 10]),
        ([smooth(9, priority=-1), smooth(9)], 10, [1, 9]),
        ([pieces(10, 10, 10), smooth(5)], 22, [10, 5]),  # whole pieces, newest kept
        ([pieces(10, 10, 10, minimum=15), smooth(5)], 22, [20, 2]),  # a minimum is rounded up to whole pieces
        ([pieces(30, 30, minimum=15, priority=1), pieces(10, 10)], 25, [0, 20]),  # a piece too large: its room goes on
        ([smooth(5)], 0, [0]),
        ([smooth(5)], -3, [0]),
        ([], 10, []),
    ],
)
def test_allotment(parts: list[Claim], budget: int, sizes: list[int]) -> None:
    assert kept(parts, budget) == sizes


def test_a_part_of_small_groups_keeps_its_minimum_beside_a_more_important_one() -> None:
    parts = [smooth(40, cap=30, priority=1), pieces(6, 6, 6, 27, 27, cap=67, minimum=50)]
    assert kept(parts, 96) == [30, 66]
    assert kept(parts, 84) == [30, 54]
    assert kept(parts, 83) == [29, 54]
    assert kept(parts, 54) == [0, 54]


def test_minimums_that_do_not_fit_are_reported() -> None:
    allotment = allot([smooth(50, minimum=40), smooth(50, minimum=40)], 60)
    assert (allotment.floors_ignored, allotment.short) == (True, (0,))


def test_minimums_that_whole_pieces_do_not_allow_are_reported() -> None:
    allotment = allot([pieces(30, minimum=10), smooth(20, minimum=10, priority=1)], 25)
    assert (allotment.floors_ignored, allotment.short) == (False, (0,))


def test_minimums_count_up_to_size_and_cap_whatever_whole_pieces_could_keep() -> None:
    allotment = allot([pieces(90, minimum=40), smooth(50, minimum=30), smooth(50, priority=1)], 60)
    assert (allotment.limits, allotment.floors_ignored, allotment.short) == ((0, 10, 50), True, (0, 1))


SIZES = st.lists(st.integers(0, 60), min_size=1, max_size=6)
OPTIONS = st.fixed_dictionaries(
    {"cap": st.integers(0, 200), "minimum": st.integers(0, 100), "priority": st.integers(-2, 2)}
)
PARTS = st.lists(
    st.tuples(st.booleans(), SIZES, OPTIONS).map(
        lambda drawn: smooth(sum(drawn[1]), **drawn[2]) if drawn[0] else pieces(*drawn[1], **drawn[2])
    ),
    max_size=6,
)


def floor(part: Claim) -> int:
    return min(part.minimum, part.fit(part.cap))


def least(part: Claim) -> int:
    """The smallest size that keeps the floor."""
    return min(size for limit in range(part.size + 1) if (size := part.fit(limit)) >= floor(part))


@given(PARTS, st.integers(0, 400))
@settings(max_examples=100, deadline=None)
def test_caps_and_budget_always_hold(parts: list[Claim], budget: int) -> None:
    sizes = kept(parts, budget)
    assert sum(sizes) <= budget
    assert all(size <= part.cap for size, part in zip(sizes, parts, strict=True))


@given(PARTS, st.integers(0, 400))
@settings(max_examples=100, deadline=None)
def test_minimums_hold_whenever_whole_pieces_allow_it(parts: list[Claim], budget: int) -> None:
    asked = sum(min(part.minimum, part.cap, part.size) for part in parts)
    if asked <= budget and sum(map(least, parts)) <= budget:
        assert all(size >= floor(part) for size, part in zip(kept(parts, budget), parts, strict=True))


@given(PARTS, st.integers(0, 400))
@settings(max_examples=100, deadline=None)
def test_nothing_is_cut_while_all_fits(parts: list[Claim], budget: int) -> None:
    wanted = [part.fit(part.cap) for part in parts]
    if sum(wanted) <= budget:
        assert kept(parts, budget) == wanted


@given(PARTS, st.integers(0, 400))
@settings(max_examples=100, deadline=None)
def test_a_part_is_cut_for_the_budget_only_when_no_less_important_one_could_give_way(parts, budget) -> None:
    smooth_parts = [smooth(part.size, cap=part.cap, priority=part.priority) for part in parts]
    sizes = kept(smooth_parts, budget)
    cut = [part.priority for part, size in zip(smooth_parts, sizes, strict=True) if size < min(part.size, part.cap)]
    left = [part.priority for part, size in zip(smooth_parts, sizes, strict=True) if size > 0]
    assert not cut or not left or max(cut) <= min(left)


@pytest.mark.parametrize(
    ("sizes", "budget", "shares"),
    [
        ([10, 10], 100, [10, 10]),
        ([100, 100], 60, [30, 30]),
        ([10, 100, 100], 70, [10, 30, 30]),
        ([100, 100, 100], 100, [33, 33, 34]),
        ([5], 0, [0]),
        ([], 10, []),
    ],
)
def test_fair_shares(sizes: list[int], budget: int, shares: list[int]) -> None:
    assert fair(sizes, budget) == shares


@given(st.lists(st.integers(0, 100), max_size=6), st.integers(0, 300))
def test_fair_shares_use_the_budget_and_nobody_is_cut_below_another(sizes: list[int], budget: int) -> None:
    shares = fair(sizes, budget)
    assert sum(shares) == min(budget, sum(sizes))
    cut = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    assert not cut or max(shares) <= min(cut) + 1
