"""Turns a thinking level into an Effort for the model in use, and leaves room for the answer."""

from typing import Literal

from ra.core.model import Effort, Level, ModelInfo

Steady = Literal["low", "medium", "high"]

ADAPTIVE_HIGH_ITERATIONS = 10
MINIMUM = 1024
USUAL_OUTPUT = 16384  # tokens of an answer without thinking
ANSWER_ROOM = 4096  # output tokens left for the answer beside the thinking

# By provider; "" is any other. With a cap, the same numbers choose the level of models that know only levels.
BUDGETS: dict[str, dict[Steady, int]] = {
    "google": {"low": 1024, "medium": 8192, "high": 24576},
    "": {"low": 1024, "medium": 16000, "high": 32000},
}


def effort(level: Level, *, iteration: int, cap: int | None, provider: str, info: ModelInfo) -> Effort:
    """`adaptive` is high for the first ten iterations of a run, then low, on every provider."""
    if level == "off" or info.thinking == "none":
        return Effort()
    steady: Steady = level if level != "adaptive" else "high" if iteration <= ADAPTIVE_HIGH_ITERATIONS else "low"
    budgets = BUDGETS.get(provider, BUDGETS[""])
    if info.thinking == "budget":
        budget = budgets[steady] if cap is None else min(budgets[steady], cap)
        room = info.max_output - ANSWER_ROOM
        return Effort(steady, max(MINIMUM, min(budget, room) if room > 0 else budget))
    if cap is not None:
        steady = next((name for name in ("high", "medium") if budgets[name] <= min(cap, budgets[steady])), "low")
    return Effort(steady, budgets[steady])


def output_limit(info: ModelInfo, thinking: Effort) -> int:
    """Max output: always above the thinking budget, and within the model's own limit where that is possible."""
    usual = min(info.max_output, USUAL_OUTPUT)
    if thinking.budget == 0:
        return usual
    return max(usual, min(info.max_output, thinking.budget + ANSWER_ROOM), thinking.budget + MINIMUM)
