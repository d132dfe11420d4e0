"""Is the right window used, and are trigger and target where they belong?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.context.size import Window, input_budget, reserve, resolve, target, trigger


@pytest.mark.parametrize(
    ("configured", "learned", "catalog", "window"),
    [
        (1_000, 2_000, 3_000, Window(1_000, "configured")),
        (None, 2_000, 3_000, Window(2_000, "learned")),
        (None, None, 3_000, Window(3_000, "catalog")),
        (None, None, None, Window(None, "unknown")),
    ],
)
def test_window_is_configured_then_learned_then_catalog(configured, learned, catalog, window) -> None:
    assert resolve(configured, learned, catalog) == window


@pytest.mark.parametrize(
    ("window", "max_output", "kept_free", "budget"),
    [(200_000, 8_192, 8_192, 191_808), (8_000, 8_192, 800, 7_200), (2_000, 100, 100, 1_900)],
)
def test_reserve_is_the_output_but_at_most_a_tenth(window, max_output, kept_free, budget) -> None:
    assert (reserve(window, max_output), input_budget(window, max_output)) == (kept_free, budget)


@pytest.mark.parametrize(
    ("window", "threshold", "max_tokens", "level", "aim"),
    [
        (200_000, 0.90, None, 180_000, 150_000),
        (200_000, 0.99, None, 191_808, 168_000),  # window − reserve is less than the threshold
        (200_000, 0.60, None, 120_000, 100_000),
        (200_000, 0.50, None, 100_000, 83_333),  # half the window would be no cut at all
        (200_000, 0.30, None, 60_000, 50_000),
        (200_000, 0.90, 50_000, 50_000, 41_666),
        (None, 0.90, 50_000, 50_000, 41_666),
        (10_000, 0.90, 50_000, 9_000, 7_500),
        (None, 0.90, None, None, None),
    ],
)
def test_trigger_and_target(window, threshold, max_tokens, level, aim) -> None:
    assert trigger(window, threshold=threshold, max_output=8_192, max_tokens=max_tokens) == level
    assert target(window, threshold=threshold, max_tokens=max_tokens) == aim


@given(
    st.integers(2_000, 2_000_000),
    st.floats(0.05, 1),
    st.integers(1, 200_000),
    st.none() | st.integers(1_000, 3_000_000),
)
def test_target_is_below_trigger_and_trigger_within_the_input_budget(window, threshold, max_output, max_tokens) -> None:
    level = trigger(window, threshold=threshold, max_output=max_output, max_tokens=max_tokens)
    aim = target(window, threshold=threshold, max_tokens=max_tokens)
    assert level is not None
    assert aim is not None
    assert aim < level <= input_budget(window, max_output)
