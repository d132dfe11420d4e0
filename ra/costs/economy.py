"""Decide by price whether rewriting the window pays now: the economy of `auto`.

Carrying text that could be cut costs a cache read in every request: that is the rent. Cutting it means that what
stands behind the cut is written to the cache anew: that is the price. Nobody knows how long a session will last, so
the rule is that of the skier who does not know how often he will ski: rent until the rent paid equals the price, then
buy. He never pays more than twice what one who knew would pay, and no rule without foresight does better.

Two things bend it. Some cuts are free: when the cache is cold, when the request would cross into a dearer tier, or
where the provider gives no discount for reading, the request with the cut costs no more than the one without. And
twice is too much for a session that ends tomorrow: all cuts together may never cost more than a small share of what
the session has cost, beyond what earlier cuts have saved.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, get_args

from ra.core.facts import Checkpointed, Configured, Rotated, Spent, TimelineEvent
from ra.core.model import Usage
from ra.costs.prices import PriceRow, Prices
from ra.costs.promptcache import CacheRules, rules_for

MILLION = 1_000_000
AT_RISK = 0.04  # of what the session has cost may be lost on cuts that the session was too short to repay
GROWTH_CALLS = 20  # the newest ones say how fast requests grow,
LEAST_GROWTH = 100  # tokens a call, at least
SHRINK = 0.90  # a cut leaves at most so much of the request, or it does not happen
RECENT = 8_000  # tokens of the newest groups that stay word for word
SMALL_INDEX = 8_000  # tokens of the indexes in a small window, if half of what is free there holds them
LEAST_INDEX = 3_000  # tokens of the index that any cut may leave
INDEX_CHARS = 3  # for one token of an index, about
INDEX = 40_000  # tokens, at most, of the indexes that stand in for the rest; they are as long as there are names

Reason = Literal["", "free now", "rent paid"]


class Cuttable(NamedTuple):
    """A request in tokens: before the zone that can be cut, in it, behind it, and what would stand in for it."""

    before: int
    zone: int
    behind: int
    stand_in: int

    @property
    def total(self) -> int:
        return self.before + self.zone + self.behind

    @property
    def after(self) -> int:
        return self.before + self.stand_in + self.behind


class SessionEconomy:
    """A fold over the facts of one session; what it answers follows from them, so that a replay decides as the run did.

    `row` names the prices of a model, `rules` how its provider caches; `index` is the most that indexes may have.
    """

    def __init__(
        self, row: Callable[[str], PriceRow | None], rules: Callable[[str], CacheRules], *, index: int = INDEX
    ) -> None:
        self._row = row
        self._rules = rules
        self._index = index
        self._model = ""
        self._now = 0.0
        self._sent: float | None = None  # when the last request went out
        self._last = 0  # its total input
        self._carried: list[int] = []  # total inputs since the last cut
        self._hidden = 0  # tokens that cuts keep out of every request
        self._cut: Checkpointed | None = None  # the next bill shows what it cost
        self._spent = 0.0
        self._saved = 0.0  # by cuts, less what they cost

    def observe(self, event: TimelineEvent) -> None:
        self._now = event.time
        match event.fact:
            case Spent(purpose="turn") as spent:
                self._bill(event.time, spent)
            case Spent() as spent:
                self._spent += _dollars(spent, self._row(spent.model))
            case Checkpointed(reason=reason) as checkpoint if reason in get_args(Reason):
                self._cut = checkpoint
                self._carried = []
                self._hidden += max(0, checkpoint.before - checkpoint.after)
            case Checkpointed(marker=marker):
                # Any other rule would have cut here as well, or the user did: no gain, and a long index to pay for.
                self._carried, self._hidden, self._cut = [], 0, None
                self._saved -= max(0, len(marker) // INDEX_CHARS - LEAST_INDEX) * self._index_price()
            case Rotated():
                self._carried, self._hidden, self._cut = [], 0, None
            case Configured(model=model):
                if model != self._model:
                    self._sent = None  # another model has another cache
                self._model = model
            case _:
                pass

    def sizes(self, window: int | None, *, forced: bool = False) -> tuple[int, int]:
        """What a cut leaves. One that cannot be helped has no price; that its index is longer than it must be has one.

        Where a long index would cost too much, more stays word for word.
        """
        recent, index = sizes(window, self._index)
        price = self._index_price()
        if forced and price and window:
            afforded = LEAST_INDEX + int(max(0.0, self._allowed) / price)
            if afforded < index:
                return window // 5, afforded
        return recent, index

    def wants(self, *, before: int, zone: int, behind: int, stand_in: int) -> Reason:
        """Why the next request should be cut before it is sent; "" when it should not.

        In tokens: what comes before the zone that can be cut, the zone, what comes behind it, and its stand-in.
        """
        request = Cuttable(before, zone, behind, stand_in)
        row = self._row(self._model)
        if row is None or request.zone <= 0 or request.after > SHRINK * request.total:
            return ""
        price = self._price_of(row, request)
        if price is None:
            return ""
        if price <= 0:
            return "free now"
        least = _reading(row, request.after)
        rent = sum(_reading(row, total) - least for total in self._carried if total > request.after)
        return "rent paid" if rent >= price and price <= self._allowed else ""

    @property
    def warm(self) -> bool:
        """Is the last request still in the provider's cache?"""
        rules = self._rules(self._model)
        return rules.kind != "none" and self._sent is not None and self._now - self._sent <= rules.lifetime_s

    @property
    def _allowed(self) -> float:
        """Dollars that may be lost now."""
        return self._saved + AT_RISK * self._spent

    def _index_price(self) -> float:
        """Dollars of one more token of an index: it is written once, and reading it may cost as much again."""
        row = self._row(self._model)
        return 2 * float(row.rates.cache_write) / MILLION if row else 0.0

    def _price_of(self, row: PriceRow, request: Cuttable) -> float | None:
        """What the cut adds to the next bill, below zero when it takes away; None where nothing costs anything."""
        rules = self._rules(self._model)
        cached = min(request.total, self._last) if self.warm and self._last >= rules.minimum else 0
        # Where a provider bills no writes, the row's price of writing is that of plain input.
        keeping = float(row.price(Usage(cache_read=cached, cache_write=request.total - cached)))
        head = min(cached, request.before) if request.before >= rules.minimum else 0
        cutting = float(row.price(Usage(cache_read=head, cache_write=request.after - head)))
        return cutting - keeping + self._uncached(row, rules, request) if keeping else None

    def _uncached(self, row: PriceRow, rules: CacheRules, request: Cuttable) -> float:
        """What a cut costs later that leaves a request too short to be cached, until it has grown to the minimum."""
        if rules.kind == "none" or request.after >= rules.minimum:
            return 0.0
        since_cut = self._carried[-GROWTH_CALLS:]
        growth = max(LEAST_GROWTH, (since_cut[-1] - since_cut[0]) // (len(since_cut) - 1) if len(since_cut) > 1 else 0)

        def dollars(total: int) -> float:
            rates = row.at(total)
            return float(rates.cache_read if total >= rules.minimum else rates.input) * total / MILLION

        calls = range(1, (rules.minimum - request.after) // growth + 1)
        later = sum(dollars(request.after + n * growth) - dollars(request.total + n * growth) for n in calls)
        return max(0.0, later)

    def _bill(self, time: float, spent: Spent) -> None:
        row = self._row(spent.model)
        usage = spent.usage
        self._spent += _dollars(spent, row)
        if row is not None and self._hidden:
            rates = row.at(usage.total_input)
            self._saved += float(row.at(usage.total_input + self._hidden).cache_read) * self._hidden / MILLION
            if self._cut is not None:
                grown = max(0, self._cut.before - self._last)
                rewritten = max(0, usage.cache_write + usage.input - grown)
                self._saved -= rewritten * float(rates.cache_write - rates.cache_read) / MILLION
        self._cut = None
        self._model = spent.model
        self._sent = time - spent.seconds
        self._last = usage.total_input
        self._carried.append(usage.total_input)


def sizes(window: int | None, index: int = INDEX) -> tuple[int, int]:
    """What a cut leaves, in tokens: of the newest groups word for word, and of indexes of the rest, `index` at most.

    Prices do not depend on the window: a share of it is taken only where it is small.
    """
    if window is None:
        return RECENT, index
    return min(RECENT, window // 5), min(index, max(window // 6, SMALL_INDEX))


def _dollars(spent: Spent, row: PriceRow | None) -> float:
    if spent.dollars:
        return float(spent.dollars)
    return float(row.price(spent.usage, long_lived=spent.long_lived)) if row else 0.0


def _reading(row: PriceRow, total: int) -> float:
    return float(row.at(total).cache_read) * total / MILLION


def economy_for(prices: Prices, provider: str) -> SessionEconomy:
    """An economy with the prices and the cache rules of a provider."""
    return SessionEconomy(partial(_row, prices, provider), partial(_rules, provider))


def _row(prices: Prices, provider: str, model: str) -> PriceRow | None:
    return prices.row(model, provider)


def _rules(provider: str, model: str) -> CacheRules:
    return rules_for(model, provider)
