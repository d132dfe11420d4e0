"""How large is a window whose server refuses and does not say it all? Less and less is tried; three must be enough."""

import math

from ra.context.window import Window
from ra.core.facts import Configured, Spent, TimelineEvent

# By refusals in a row: what of the refused request is tried next, where no limit was named; and how many times the
# limit the request is taken for, where that was named and not what was sent.
SHARES = (0.75, 0.5, 0.02)
MOST = (0.75, 0.75, 0.5)  # of the refused request, whatever was taken before: counts of other text may mislead
EXCESS = (1.05, 1.5, 50.0)
AGAIN = 1.2  # times what was taken before: a cut aims below the window, so that no less than that is sent


class Refusals:
    """Folds what the model answered, and counts what it refused since."""

    def __init__(self) -> None:
        self._count = 0
        self._taken = 0  # the largest request that this model answered
        self._model = ""

    def apply(self, event: TimelineEvent, window: Window) -> Window:
        """The window, or a larger one where it was guessed and more was taken."""
        match event.fact:
            case Spent(purpose="turn", usage=usage):
                self._count, self._taken = 0, max(self._taken, usage.total_input)
            case Configured(model=model) if model != self._model:
                self._model, self._taken = model, 0
        too_low = window.origin == "guessed" and self._taken > (window.limit or 0)
        return Window(self._taken, "guessed") if too_low else window

    def at_least(self, limit: int | None) -> int:
        """The size of a refused request that was not told."""
        return int((limit or 0) * EXCESS[self._step])

    def learn(self, window: Window, limit: int | None, size: int) -> Window:
        """The window after a refusal of `size` tokens. What the user set is only lowered."""
        if limit is None:
            window = self._guess(size)
        elif window.origin != "configured" or window.limit is None or limit < window.limit:
            window = Window(limit, "learned")
        self._count += 1
        return window

    def _guess(self, size: int) -> Window:
        """Without a limit less and less is tried, but no less than was taken before if that was much less."""
        last = self._step == len(SHARES) - 1
        between = self._taken * AGAIN if last else math.sqrt(self._taken * size)
        return Window(math.ceil(max(size * SHARES[self._step], min(between, size * MOST[self._step]))), "guessed")

    @property
    def _step(self) -> int:
        return min(self._count, len(SHARES) - 1)
