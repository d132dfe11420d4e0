"""Computes what `auto` would have cost with the best moments to cut, known only afterwards. No bound: see `bounds`.

The cuts are those of `auto`: all but the newest groups goes, and an index of its names follows the indexes of the
earlier cuts, which stay in the cache. Only the moments vary, and dynamic programming finds the best ones. The cost of a
cut depends on the cut before it, so the first request after a cut is counted with the pair: f(k) is the least cost of
the calls up to k if the window is cut right before call k.
"""

from collections.abc import Callable, Iterator

from ra.bench.replay import Market
from ra.bench.trace import RecordedCall, Trace
from ra.context.compaction.digest import HEADED
from ra.context.compaction.names import spoken
from ra.context.render import SHOWN
from ra.context.size import STEPS, working_set
from ra.core.facts import Said
from ra.core.model import Usage
from ra.costs.economy import sizes

HEADED_SHARE = 16  # tokens of conversation for each token of an index's headings, roughly
NEVER = float("inf")


def best_moments(trace: Trace, market: Callable[[str], Market], window: int) -> float:
    """The lowest cost of the trace in dollars, over all choices of moments to cut."""
    sums = _Sums(trace, window, *sizes(window))
    bills = [_Bill(call, market(call.model), _idle(trace, number)) for number, call in enumerate(trace.calls)]
    count = len(bills)
    least = [NEVER] * count  # f
    least[0] = bills[0].dollars(sums.request(0, 0), known=0)
    best = NEVER
    for cut in range(count):
        if least[cut] < NEVER:
            spent = least[cut]
            for call, size in _uncut(sums, cut, window):
                # Either the window is cut here, or it keeps growing.
                size_before = sums.head + sums.indexes[cut]
                least[call] = min(least[call], spent + bills[call].dollars(sums.request(call, call), known=size_before))
                if size is None:
                    break
                spent += bills[call].dollars(size, known=sums.request(cut, call - 1))
            else:
                best = min(best, spent)
    return best


def _uncut(sums: "_Sums", cut: int, window: int) -> Iterator[tuple[int, int | None]]:
    """The calls after a cut, each with the size of its request; ends when one no longer fits."""
    for call in range(cut + 1, len(sums.sums) - 1):
        size = sums.request(cut, call)
        yield call, size if size <= window else None


def _idle(trace: Trace, number: int) -> float:
    return trace.calls[number].time - trace.calls[number - 1].time if number else NEVER


class _Bill:
    """The cost of one call, by the size of its request and of the part that was sent before."""

    def __init__(self, call: RecordedCall, market: Market, idle_s: float) -> None:
        self._output = call.output
        self._market = market
        self._cold = idle_s > market.rules.lifetime_s

    def dollars(self, total: int, *, known: int) -> float:
        rules = self._market.rules
        read = 0 if self._cold or known < rules.minimum else min(known, total)
        cache_write = total - read if rules.writes and total >= rules.minimum else 0
        usage = Usage(total - read - cache_write, self._output, read, cache_write)
        return float(self._market.row.price(usage))


class _Sums:
    """Sizes along the session, in tokens. Group k is the conversation between call k − 1 and call k.

    `indexes` holds the total size of the indexes after a cut before each call, as `auto` would write them, and 0 for
    the first call, which has nothing to cut before it.
    """

    def __init__(self, trace: Trace, window: int, recent: int, most: int) -> None:
        self.head = trace.base
        self.sums = [0]  # sizes of the groups before
        self._recent, self._window = recent, window
        names = [0]  # sizes of all different names in the groups before
        seen: set[str] = set()
        shown, place, tokens, first = round(SHOWN * trace.factor), 0, 0, True
        for call in trace.calls:
            size = 0
            for event in trace.events[place : call.place]:
                if isinstance(event.fact, Said):
                    message = event.fact.message
                    if first:
                        first = False
                        self.head += trace.size(message)  # the first prompt stays
                        continue
                    size += min(trace.size(message), shown)
                    new = spoken(message) - seen
                    tokens += sum(trace.estimator.text(f" {name}") for name in new)
                    seen |= new
            place = call.place
            self.sums.append(self.sums[-1] + size)
            names.append(round(tokens * trace.factor))
        first_groups = [0, *map(self._kept_from, range(1, len(trace.calls)))]
        self._hidden = [self.sums[group] for group in first_groups]
        self.indexes = [
            min(names[group] + min(HEADED, hidden // HEADED_SHARE), hidden // 2, most)
            for group, hidden in zip(first_groups, self._hidden, strict=True)
        ]

    def request(self, cut: int, call: int) -> int:
        """The size of this call's request if the last cut was before call `cut`; 0: no cut."""
        return self.head + self.indexes[cut] + self.sums[call + 1] - self._hidden[cut]

    def _kept_from(self, call: int) -> int:
        """The first group that `auto` would leave in a cut before this call."""
        working = self.sums[call + 1] - self.sums[max(0, call + 1 - STEPS)]
        room = max(self._recent, working_set(working, self._recent, self._window))
        first_kept = call
        while first_kept > 0 and self.sums[call + 1] - self.sums[first_kept - 1] <= room:
            first_kept -= 1
        return first_kept
