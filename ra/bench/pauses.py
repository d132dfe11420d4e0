"""Computes what a session's pauses cost under several cache policies, at the times of its transcript."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from ra.core.facts import Configured, Said, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs.lifetime import BRIDGE_OUTPUT, MARGIN_S, CacheLifetime
from ra.costs.prices import PriceRow
from ra.costs.promptcache import LONG_LIFETIME_S, CacheRules
from ra.costs.settings import CacheSettings

PING_S = 240.0


class Step(NamedTuple):
    """One call: its time, its size, the part that can be read while the prefix is cached, its answer."""

    time: float
    total: int
    known: int
    output: int


class Policies(NamedTuple):
    """Dollars of the whole session."""

    five_minutes: float
    hour: float
    ping: float
    auto: float
    keep_warm: float
    clairvoyant: float


def policies(steps: Sequence[Step], row: PriceRow, rules: CacheRules) -> Policies:
    """Only for providers with a choice between a short lifetime and an hour."""
    bill = _Bill(row, rules)
    gaps = [0.0, *(after.time - before.time for before, after in pairwise(steps))]
    short = [bill.short(step, warm=gap <= rules.lifetime_s) for step, gap in zip(steps, gaps, strict=True)]
    hour = [bill.hour(step, warm=gap <= LONG_LIFETIME_S) for step, gap in zip(steps, gaps, strict=True)]
    return Policies(
        _total(short),
        _total(hour),
        _total(bill.bridged(steps, number, gap, every_s=PING_S) for number, gap in enumerate(gaps)),
        _decided(steps, bill, CacheSettings()),
        _decided(steps, bill, CacheSettings(keep_warm="auto")),
        _total(bill.best(steps, number, gap) for number, gap in enumerate(gaps)),
    )


def _total(bills: Iterable[Decimal]) -> float:
    """Rounds after summing: the rounding of a sum of floats differs between versions of Python."""
    return float(sum(bills, Decimal(0)))


class _Bill:
    def __init__(self, row: PriceRow, rules: CacheRules) -> None:
        self.row = row
        self.rules = rules

    def usage(self, step: Step, *, warm: bool) -> Usage:
        read = step.known if warm and step.known >= self.rules.minimum else 0
        return Usage(output=step.output, cache_read=read, cache_write=step.total - read)

    def short(self, step: Step, *, warm: bool) -> Decimal:
        return self.row.price(self.usage(step, warm=warm))

    def hour(self, step: Step, *, warm: bool) -> Decimal:
        return self.row.price(self.usage(step, warm=warm), long_lived=True)

    def ping(self, total: int) -> Decimal:
        return self.row.price(Usage(output=BRIDGE_OUTPUT, cache_read=total))

    def bridged(self, steps: Sequence[Step], number: int, gap: float, *, every_s: float) -> Decimal:
        """This call, after as many small calls as the pause before it needs."""
        pings = math.ceil(gap / every_s) - 1 if gap > self.rules.lifetime_s else 0
        return self.short(steps[number], warm=True) + pings * self.ping(steps[number - 1].total)

    def best(self, steps: Sequence[Step], number: int, gap: float) -> Decimal:
        """The lowest cost of this call, if the length of the pause before it were known."""
        step = steps[number]
        if gap <= self.rules.lifetime_s:
            return self.short(step, warm=True)
        choices = [
            self.short(step, warm=False),
            self.bridged(steps, number, gap, every_s=self.rules.lifetime_s - MARGIN_S),
        ]
        if gap <= LONG_LIFETIME_S:  # only the last write before the pause has to live for an hour
            before = steps[number - 1]
            more = self.hour(before, warm=True) - self.short(before, warm=True)
            choices.append(self.short(step, warm=True) + more)
        return min(choices)


def _decided(steps: Sequence[Step], bill: _Bill, settings: CacheSettings) -> float:
    """The session as `agent.cache` would have run it."""
    model = bill.row.model
    lifetime = CacheLifetime(lambda _: bill.row, lambda _: bill.rules, settings=settings)
    lifetime.observe(TimelineEvent(0, steps[0].time, Configured("", model, "timeline")))
    bills: list[Decimal] = []
    used, life_s = -math.inf, 0.0
    before: Step | None = None
    for step in steps:
        while before is not None and (due_s := lifetime.due_in_s(used)) is not None and used + due_s < step.time:
            now = used + due_s
            decision = lifetime.in_pause()
            if decision.action == "bridge":
                bills.append(bill.ping(before.total))
                lifetime.observe(TimelineEvent(0, now, Spent(model, Usage(cache_read=before.total), purpose="bridge")))
                used = now
            lifetime.observe(TimelineEvent(0, now, decision))
        lifetime.observe(TimelineEvent(0, step.time, Said(say("user", "."))))
        for decision in lifetime.decisions():
            lifetime.observe(TimelineEvent(0, step.time, decision))
        long_lived = lifetime.long_lived
        usage = bill.usage(step, warm=step.time - used <= life_s)
        bills.append(bill.row.price(usage, long_lived=long_lived))
        lifetime.observe(TimelineEvent(0, step.time, Spent(model, usage, long_lived=long_lived)))
        before, used, life_s = step, step.time, lifetime.lifetime_s
    return _total(bills)
