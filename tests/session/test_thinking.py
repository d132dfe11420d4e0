"""How hard may the model think? Levels, caps and the minimum of each provider; the answer always has room beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.core.model import Effort, Level, ModelInfo
from ra.session.thinking import MINIMUM, effort, output_limit

BUDGET = ModelInfo("m", 200_000, 64_000, "budget")
EFFORT = ModelInfo("m", 200_000, 64_000, "effort")


@pytest.mark.parametrize(
    ("provider", "info", "level", "cap", "iteration", "expected"),
    [
        ("anthropic", BUDGET, "off", None, 1, Effort()),
        ("anthropic", BUDGET, "low", None, 1, Effort("low", 1_024)),
        ("anthropic", BUDGET, "medium", None, 1, Effort("medium", 16_000)),
        ("anthropic", BUDGET, "high", None, 1, Effort("high", 32_000)),
        ("google", BUDGET, "medium", None, 1, Effort("medium", 8_192)),
        ("google", BUDGET, "high", None, 1, Effort("high", 24_576)),
        ("anthropic", BUDGET, "high", 10_000, 1, Effort("high", 10_000)),
        ("anthropic", BUDGET, "high", 10, 1, Effort("high", 1_024)),
        ("anthropic", BUDGET, "adaptive", None, 10, Effort("high", 32_000)),
        ("anthropic", BUDGET, "adaptive", None, 11, Effort("low", 1_024)),
        ("openai", EFFORT, "high", None, 1, Effort("high", 32_000)),
        ("openai", EFFORT, "high", 20_000, 1, Effort("medium", 16_000)),
        ("openai", EFFORT, "high", 5_000, 1, Effort("low", 1_024)),
        ("openai", EFFORT, "adaptive", None, 11, Effort("low", 1_024)),
        ("openai-chat", ModelInfo("m"), "high", None, 1, Effort()),
    ],
)
def test_a_level_becomes_the_budget_of_the_provider(
    provider: str, info: ModelInfo, level: Level, cap: int | None, iteration: int, expected: Effort
) -> None:
    assert effort(level, iteration=iteration, cap=cap, provider=provider, info=info) == expected


@given(
    level=st.sampled_from(["low", "medium", "high", "adaptive"]),
    cap=st.none() | st.integers(1, 100_000),
    max_output=st.integers(1_024, 128_000),
    kind=st.sampled_from(["budget", "effort", "adaptive"]),
)
def test_the_answer_always_has_room_beside_the_thinking(
    level: Level, cap: int | None, max_output: int, kind: str
) -> None:
    info = ModelInfo("m", 200_000, max_output, kind)
    made = effort(level, iteration=1, cap=cap, provider="anthropic", info=info)
    assert made.budget >= MINIMUM
    assert output_limit(info, made) > made.budget
