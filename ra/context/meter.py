"""How large is the next request, in the model's own tokens? What was billed last, and an estimate of the rest."""

from ra.context.tokens import Estimator, scaled
from ra.context.view import View
from ra.core.facts import Checkpointed, Configured, Edited, EntryRemoved, EntrySet, Fact, Rotated, Spent, TimelineEvent
from ra.core.model import Request

CREDIBLE_BILL = 0.9  # of the last one, at least, while nothing was rewritten
CREDIBLE_RATE = 6.0  # no model counts more of its tokens for one of o200k_base


class Meter:
    """Folds events into a view and keeps the last bill in step with it. Bills are facts: a replay measures the same."""

    def __init__(self, view: View, estimator: Estimator) -> None:
        self.cut = False  # was there a compaction since the last bill?
        self._view = view
        self._estimator = estimator
        self._billed: tuple[int, int] | None = None  # the first so many units, with all above them, are so many tokens
        self._refused = 0.0  # tokens of the model for one of o200k_base, as an overflow told

    @property
    def billed(self) -> int:
        """The last bill that still says something about the next request, or 0."""
        return self._billed[1] if self._billed else 0

    def apply(self, event: TimelineEvent) -> None:
        fact = event.fact
        if self._rewrites(fact):
            self._billed = None
        self._view.apply(event)
        match fact:
            case Spent(purpose="turn", usage=usage):
                self.cut = False
                # Requests grow, but some servers leave out what their cache held.
                if usage.total_input and usage.total_input >= self.billed * CREDIBLE_BILL:
                    self._billed = (len(self._view.units) - self._just_answered(), usage.total_input)
            case Checkpointed(after=after):
                self.cut = True
                self._billed = (len(self._view.units), after) if after else None

    def measure(self, near: int | None = None) -> int | None:
        """The size of the next request. None when a bound proves it to be at most `near`: then nothing is counted."""
        start, billed = self._billed or (0, 0)
        if near is not None and (billed or not self._view.counted):
            new = Request("", (), self._view.messages_since(start)) if billed else self._view.request()
            if billed + self._estimator.bound(new) <= near:
                return None
        whole, since = self._view.tokens(), self._view.tokens_since(start)
        if not billed:
            total = self._estimator.scaled(whole)
        else:
            total = billed + scaled(since, self._rate(billed, whole - since))
        return max(total, scaled(whole, self._refused))

    def refuse(self, sent: int | None, at_least: int = 1) -> int:
        """The request was refused: until it is cut, it counts for what was sent, or where that was not told for at
        least so much."""
        plain = self._view.tokens()
        size = sent or max(self.measure(None) or 1, at_least)
        self._refused = min(CREDIBLE_RATE, size / max(1, plain))
        return size

    def accept(self) -> None:
        """What was refused is not sent again."""
        self._refused = 0.0

    def _rate(self, billed: int, plain: int) -> float:
        """Tokens of the model for one of o200k_base, as this session's bill says; within what calibration may miss."""
        factor = self._estimator.factor
        return min(max(billed / max(1, plain), factor / 2), factor * 2)

    def _just_answered(self) -> bool:
        """Is the last unit the answer to what was billed? Its calls have no results yet."""
        last = self._view.units[-1] if self._view.units else None
        return last is not None and last.item.message.role == "assistant" and (last.open or not last.results)

    def _rewrites(self, fact: Fact) -> bool:
        """Does it change what was sent before? Then the last bill says nothing about the next request."""
        match fact:
            case Configured(model=model, sections=sections, tools=tools, base=base):
                last = self._view.configured
                same = last is not None and (last.model, last.sections, last.tools) == (model, sections, tools)
                return base is not None or not same
            case EntrySet(id=id) | EntryRemoved(id=id):
                return id in self._view.entries
            case _:
                return isinstance(fact, Checkpointed | Rotated | Edited)
