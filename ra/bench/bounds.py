"""Computes what no strategy can cost less than: a floor, and a bound for those that forget no line in use.

Each request holds the system part and, verbatim, everything since the previous request; the rest is up to the strategy.
So a call costs at least its answer, the system part at the rate of a cache read (or, after a pause that no cache
survives, at the cheaper of writing and plain input), and the new part at the cheaper of these two. The sum of these is
the floor.

A line that a call uses again was either carried since it was last new or used, at the rate of a cache read in every
request between; or it was fetched again, for at least the cheaper of writing and plain input. The bound adds the
cheaper of both for all such lines: no strategy under which every call sees its lines, or reads them again, costs less.
Lines are disjoint parts of a request: nothing is counted twice.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from ra.bench.measures import TraceNames
from ra.bench.replay import Market
from ra.bench.trace import SentRequest, Trace
from ra.context.render import SHOWN
from ra.costs.prices import MILLION


class Bounds(NamedTuple):
    """In dollars."""

    floor: float
    bound: float


def bounds(trace: Trace, memory: TraceNames, market: Callable[[str], Market]) -> Bounds:
    floor = lines = Decimal(0)
    used: dict[str, int] = {}  # line → the call that last used it
    arrived = _arrivals(trace)
    sizes: dict[str, int] = {}
    for number, (call, sent, need) in enumerate(zip(trace.calls, trace.sent, memory.needs, strict=True)):
        rates = market(call.model).row.rates
        entering = min(rates.input, rates.cache_write)
        rules = market(call.model).rules
        idle = call.time - trace.calls[number - 1].time if number else float("inf")
        first_read = call.usage.cache_read if call.usage and not number else 0
        warm = rules.kind != "none" and (idle <= rules.lifetime_s or first_read > 0)
        base = trace.base * (min(rates.cache_read, entering) if warm else entering)
        new_tokens = _new(trace, sent)
        floor += (base + new_tokens * entering + call.output * rates.output) / MILLION
        for line, source in need.lines.items():
            since = max(used.get(line, -1), arrived.get(id(source), -1))
            if line not in sizes:
                sizes[line] = max(0, int(trace.estimator.text(line[1:]) * trace.factor) - 1)
            gap = max(0, number - since)
            lines += sizes[line] * min(gap * min(rates.cache_read, entering), entering) / MILLION
            used[line] = number
    return Bounds(float(round(floor, 6)), float(round(floor + lines, 6)))


def _new(trace: Trace, sent: SentRequest) -> int:
    """The tokens since the previous call, or since the last prompt if there was one."""
    shown_tokens = round(SHOWN * trace.factor)
    tokens = 0
    for message in reversed(sent.added if not sent.rewritten else sent.added[-1:]):
        tokens += min(trace.size(message), shown_tokens)
        if message.role == "user" and not message.name:
            break
    return tokens


def _arrivals(trace: Trace) -> dict[int, int]:
    """The call whose request had each message as a new one."""
    arrived: dict[int, int] = {}
    for number, sent in enumerate(trace.sent):
        for message in sent.added:
            arrived.setdefault(id(message), number)
    return arrived
