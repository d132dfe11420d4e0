"""What would have been cheapest, had one known how the session goes on? The yardstick for `auto`.

The cuts are those of `auto`: all but the newest groups goes, an index of its names stays. Only their moments are
free, and dynamic programming finds the best ones: f(k) is the least that the calls before k can cost if the window is
cut right before call k.
"""

from collections.abc import Callable, Sequence

from ra.bench.replay import Market, Memory
from ra.bench.trace import Trace
from ra.context.compaction.digest import HEADED
from ra.context.compaction.room import LARGEST_STEPS, STEPS
from ra.context.projection import SHOWN
from ra.core.facts import Said
from ra.core.model import Usage
from ra.costs.economy import RECENT

HEADED_SHARE = 16  # tokens of conversation for one of its headed lines, about


def optimum(trace: Trace, memory: Memory, market: Callable[[str], Market], window: int) -> float:
    """The least cost of the trace in dollars, over all choices of moments to cut."""
    course = _Course(trace, memory)
    count = len(trace.calls)
    least = [float("inf")] * (count + 1)
    least[0] = 0.0
    for cut in range(count):
        if least[cut] == float("inf"):
            continue
        spent = least[cut]
        for call, cost in enumerate(_costs(trace, course, market, cut, window), cut):
            spent += cost
            least[call + 1] = min(least[call + 1], spent)
    return least[count]


def _costs(trace: Trace, course: "_Course", market: Callable[[str], Market], cut: int, window: int) -> Sequence[float]:
    """What each call from `cut` on costs if the window is cut before it and not again; until it would be full."""
    costs: list[float] = []
    kept = course.kept_from(cut) if cut else 0
    start = course.head + (course.index(kept) if cut else 0)
    before = 0
    for number in range(cut, len(trace.calls)):
        call = trace.calls[number]
        market_ = market(call.model)
        total = start + course.between(kept, number)
        if total > window and number > cut:
            break
        idle = call.time - trace.calls[number - 1].time if number else 0.0
        cold = number == 0 or idle > market_.rules.lifetime_s
        least = market_.rules.minimum
        known = 0 if cold else course.head if number == cut else before
        read = known if known >= least else 0
        written = total - read if market_.rules.writes and total >= least else 0
        usage = Usage(total - read - written, call.output, read, written)
        costs.append(float(market_.row.price(usage, long_lived=market_.long_lived)))
        before = total
    return costs


class _Course:
    """Sizes along the session. Group k is what was said between call k − 1 and call k; `sums` adds up their tokens,
    `names` those of all different names in them."""

    def __init__(self, trace: Trace, memory: Memory) -> None:
        most = round(SHOWN * trace.factor)
        self.sums = [0]
        self.names = [0]
        seen: set[str] = set()
        place, tokens, first = 0, 0, True
        self.head = trace.base
        for call in trace.calls:
            size = 0
            for event in trace.events[place : call.place]:
                if isinstance(event.fact, Said):
                    message = event.fact.message
                    if first:
                        first = False
                        self.head += trace.size(message)  # the first prompt stays
                        continue
                    size += min(trace.size(message), most)
                    new = memory.names[id(message)][1] - seen
                    tokens += sum(trace.estimator.text(f" {name}") for name in new)
                    seen |= new
            place = call.place
            self.sums.append(self.sums[-1] + size)
            self.names.append(round(tokens * trace.factor))

    def between(self, kept: int, call: int) -> int:
        """Tokens of the groups from `kept` to the request of this call."""
        return self.sums[call + 1] - self.sums[kept]

    def kept_from(self, call: int) -> int:
        """The first group that a cut before this call leaves: what `auto` would leave."""
        working = self.sums[call + 1] - self.sums[max(0, call + 1 - STEPS)]
        room = max(RECENT, min(LARGEST_STEPS * RECENT, working))
        kept = call
        while kept > 0 and self.sums[call + 1] - self.sums[kept - 1] <= room:
            kept -= 1
        return kept

    def index(self, kept: int) -> int:
        """Tokens of the index of all groups before `kept`."""
        hidden = self.sums[kept]
        return min(self.names[kept] + min(HEADED, hidden // HEADED_SHARE), hidden // 2)
