"""How large is the model's window, at which size does a request have to shrink, and what is left for its answer?"""

import math
from typing import Literal

from ra.core.model import Effort
from ra.core.value import Value

RESERVE = 0.10  # of the window, at most, is kept free for the answer
DROP = 0.15  # how far below the threshold a compaction goes
LOWEST = 0.50  # of the window: it never aims lower
RATIO = 5 / 6  # target : trigger where the rule above gives no smaller target; 0.75 : 0.90
SLACK = 1.02  # an estimate may miss by so much before the answer no longer fits beside the request
LEAST_THINKING = 1024  # tokens; providers refuse a smaller budget


class Window(Value, frozen=True):
    """`limit` is None while nobody knows it: then nothing is compacted until an error teaches it, or what it left open
    is guessed."""

    limit: int | None
    origin: Literal["configured", "learned", "catalog", "guessed", "unknown"]


def resolve(configured: int | None, learned: int | None, catalog: int | None) -> Window:
    """What the user set wins over what an error taught, and that over the catalog."""
    if configured is not None:
        return Window(configured, "configured")
    if learned is not None:
        return Window(learned, "learned")
    if catalog is not None:
        return Window(catalog, "catalog")
    return Window(None, "unknown")


def reserve(window: int, max_output: int) -> int:
    """Tokens kept free for the answer."""
    return min(max_output, int(window * RESERVE))


def input_budget(window: int, max_output: int) -> int:
    """Tokens that a request may have, tool definitions included."""
    return window - reserve(window, max_output)


def answer_room(window: int | None, total: int | None, max_output: int, effort: Effort) -> tuple[int, Effort]:
    """The output that fits beside a request of `total` tokens, and the thinking that fits into that."""
    if not window or not total or total * SLACK + max_output <= window:
        return max_output, effort
    kept = reserve(window, max_output)
    output = min(kept, max(window - math.ceil(total * SLACK), kept // 2 + 1))
    if effort.budget > kept // 2:
        effort = Effort(effort.level, kept // 2) if kept // 2 >= LEAST_THINKING else Effort()
    return output, effort


def trigger(window: int | None, *, threshold: float, max_output: int, max_tokens: int | None = None) -> int | None:
    """The largest total that is left alone: more than this is compacted. None: no limit is known."""
    levels = [] if max_tokens is None else [max_tokens]
    if window is not None:
        levels += [int(window * threshold), input_budget(window, max_output)]
    return min(levels, default=None)


def target(window: int | None, *, threshold: float, max_tokens: int | None = None) -> int | None:
    """What a compaction aims at: always less than the trigger, so that one compaction is not followed by the next.

    `max_tokens` stands where window × threshold stands otherwise, and its target in the same proportion below it.
    """
    share = max(threshold - DROP, LOWEST)
    if share >= threshold:  # a threshold of a half or less
        share = threshold * RATIO
    levels = [] if max_tokens is None else [int(max_tokens * share / threshold)]
    if window is not None:
        levels.append(int(window * share))
    return min(levels, default=None)
