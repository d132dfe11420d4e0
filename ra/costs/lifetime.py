"""Decides how long the provider should cache a session's prefix, and what to do about the cache during a pause.

Some providers (Anthropic) cache a prefix for five minutes, or for an hour at a higher price. The hour pays off when
pauses of more than five minutes are frequent, and nobody can know that in advance. This is the ski-rental problem (rent
or buy skis, without knowing how often you will ski): stay with five minutes until the losses in such pauses equal the
additional price of the hour. That costs at most twice what perfect foresight would, plus writing the prefix once.

The same holds within a pause. A small call reads the prefix and keeps it for another five minutes. Bridging goes on
until the small calls have cost as much as writing the prefix again; after three pauses, for the number of calls that
would have been best in those.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from ra.core.facts import CacheAction, CacheDecided, Configured, Rotated, Spent, TimelineEvent
from ra.core.model import Usage
from ra.costs.promptcache import LONG_LIFETIME_S, CacheRules
from ra.costs.settings import CacheSettings

if TYPE_CHECKING:
    from ra.costs.prices import PriceRow

BACK = 2  # the hour is given up when it has cost this many times what it has saved
BY_PRICE = CacheSettings()
KNOWN = 3  # after this many pauses, the session's own pauses decide how long to bridge
MARGIN_S = 20.0  # a bridging call is made this long before the prefix expires
BRIDGE_OUTPUT = 16  # the output limit of a bridging call; some providers accept no less
SUMMARY_OUTPUT = 1_500  # tokens of a summary, about


class CacheLifetime:
    """A fold over the facts of one session. It depends on nothing else, so a replay decides as the run did.

    `row` returns the prices of a model, `rules` how its provider caches by default. `hour`: the endpoint is known to
    offer the one-hour cache.
    """

    def __init__(
        self,
        row: "Callable[[str], PriceRow | None]",
        rules: Callable[[str], CacheRules],
        *,
        settings: CacheSettings = BY_PRICE,
        hour: bool = True,
    ) -> None:
        self._row = row
        self._rules = rules
        self._settings = settings
        self._hour = hour
        self._model = ""
        self._now = 0.0
        self._used: float | None = None  # when a request last went out
        self._answered: float | None = None  # when the last turn did; a pause lies between two turns
        self._total = 0  # tokens of the last turn's request
        self._long_life = False  # whether the last write is cached for an hour
        self._choice: CacheAction = "short"  # as recorded
        self._missed = Decimal(0)  # dollars lost in pauses that the one-hour cache would have outlived
        self._premium = Decimal(0)  # dollars that the one-hour cache would have cost in addition
        self._pauses: list[float] = []  # the pauses that were longer than the short lifetime
        self._bridges = 0  # small calls since the last turn
        self._settled = False  # whether the decision for this pause is recorded

    def observe(self, event: TimelineEvent) -> None:
        self._now = event.time
        match event.fact:
            case Spent(purpose="turn") as spent:
                self._bill(event.time - spent.seconds, spent)
            case Spent(purpose="bridge") as spent if spent.model == self._model:
                self._used = event.time - spent.seconds
                self._bridges += 1
            case CacheDecided(action="short" | "long" as action):
                self._choice = action
            case CacheDecided(action="let go" | "cut"):
                self._settled = True
            case Configured(model=model) if model != self._model:
                self._model = model
                self._used = self._answered = None  # another model has another cache
            case Rotated():
                self._total = 0
            case _:
                pass

    # --- how long ---

    @property
    def long_lived(self) -> bool:
        """Whether the next request's cache writes should be kept for an hour."""
        match self._settings.ttl:
            case "5m":
                return False
            case "1h":
                return self._can_choose(self._rules(self._model))
            case _:
                return self._chosen() == "long"

    @property
    def lifetime_s(self) -> float:
        """How long the provider caches the last request, in seconds; 0 if it caches nothing."""
        rules = self._rules(self._model)
        return 0.0 if rules.kind == "none" else self._life(rules)

    def decisions(self) -> tuple[CacheDecided, ...]:
        """The decisions to record before the next request: an expired prefix, and a changed lifetime."""
        decisions: list[CacheDecided] = []
        lost = self._lost()
        if lost and not self._settled:
            why = f"{_minutes(self._pause)} without a request; the provider kept it for {_minutes(self.lifetime_s)}"
            decisions.append(CacheDecided("let go", str(lost), "", why))
        choice = self._chosen() if self._settings.ttl == "auto" else self._choice
        if choice != self._choice:
            missed, premium = self._due()
            if choice == "long":
                why = "pauses of this session have cost as much as keeping prefixes for an hour would have"
                decisions.append(CacheDecided("long", str(premium), str(missed), why))
            else:
                why = "keeping prefixes for an hour has cost twice what it saved in pauses"
                decisions.append(CacheDecided("short", str(missed), str(premium), why))
        return tuple(decisions)

    def _chosen(self) -> CacheAction:
        if not self._hour or not self._can_choose(self._rules(self._model)):
            return "short"
        missed, premium = self._due()
        if self._choice == "long":
            return "long" if premium < BACK * missed else "short"
        return "long" if missed and missed >= premium else "short"

    def _due(self) -> tuple[Decimal, Decimal]:
        """What five minutes and what an hour have cost more than the other, including the next request."""
        missed, premium = self._missed, self._premium
        row = self._row(self._model)
        if row is not None and self._gone_but_for_an_hour(self._pause):
            missed += _rewriting(row, self._total)
            if self._choice == "short":  # all of it would be written now, and dearer
                premium += row.hour_premium(self._total)
        return missed, premium

    def _can_choose(self, rules: CacheRules) -> bool:
        row = self._row(self._model) if rules.kind == "marks" else None
        return row is not None and row.rates.cache_write_1h > row.rates.cache_write

    # --- in a pause ---

    def due_in_s(self, now: float) -> float | None:
        """Seconds until the prefix needs a decision; None if there is nothing to decide."""
        rules = self._rules(self._model)
        priced = self._row(self._model) is not None
        if self._settings.keep_warm == "off" or self._used is None or self._settled or not priced:
            return None
        if rules.kind == "none" or self._total < rules.minimum or now - self._used > self._life(rules):
            return None
        return max(0.0, self._used + self._life(rules) - MARGIN_S - now)

    def in_pause(self, *, shortened: int | None = None) -> CacheDecided:
        """Bridge, cut or let go: the cheapest, judged by the session's pauses. A summary leaves `shortened` tokens."""
        row = self._row(self._model)
        assert row is not None, "nothing is decided without a price"
        total, rules = self._total, self._rules(self._model)
        bridge = row.price(Usage(output=BRIDGE_OUTPUT, cache_read=total))
        again = _rewriting(row, total)
        most, why = self._most_bridges(bridge, again, self._life(rules) - MARGIN_S)
        if self._bridges < most:
            return CacheDecided("bridge", str(bridge), str(again), why)
        if shortened is not None:
            cut = row.price(Usage(output=SUMMARY_OUTPUT, cache_read=total)) + _writing(row, shortened)
            if cut < _writing(row, total):
                why = "a summary is cheaper while the prefix can still be read, and the next request is small"
                return CacheDecided("cut", str(cut), str(_writing(row, total)), why)
        return CacheDecided("let go", str(again), str(bridge), why)

    def _most_bridges(self, bridge: Decimal, again: Decimal, every_s: float) -> tuple[int, str]:
        """The largest number of bridging calls in a pause."""
        bound = int(again / bridge) if bridge else 0
        if len(self._pauses) < KNOWN:
            return bound, f"{bound} small calls cost what writing the prefix anew costs"
        needed = [int(pause / every_s) for pause in self._pauses]

        def spent(most: int) -> Decimal:
            return sum((count * bridge if count <= most else most * bridge + again for count in needed), Decimal(0))

        best = min(range(bound + 1), key=lambda most: (spent(most), most))
        return best, f"up to {best} small calls would have been best in the {len(self._pauses)} pauses of this session"

    # --- the fold ---

    def _bill(self, sent: float, spent: Spent) -> None:
        row, rules = self._row(spent.model), self._rules(spent.model)
        self._model = spent.model
        pause = max(0.0, sent - self._answered) if self._answered is not None else 0.0
        total = spent.usage.total_input
        if row is not None and rules.kind == "marks":
            written = spent.usage.cache_write
            if self._gone_but_for_an_hour(pause):
                self._missed += _rewriting(row, self._total)
                if not spent.long_lived:
                    written = max(0, min(written, total - self._total))  # with an hour the rest would have been read
            self._premium += row.hour_premium(written)
        if pause > rules.lifetime_s:
            self._pauses.append(pause)
        self._used = self._answered = sent
        self._total = total
        self._long_life = spent.long_lived
        self._bridges, self._settled = 0, False

    @property
    def _pause(self) -> float:
        """Seconds from the last turn to the latest event."""
        return max(0.0, self._now - self._answered) if self._answered is not None else 0.0

    def _lost(self) -> Decimal:
        """The additional cost of the next request because the prefix has expired."""
        rules = self._rules(self._model)
        if self._used is None or rules.kind == "none" or self._now - self._used <= self._life(rules):
            return Decimal(0)
        row = self._row(self._model)
        return _rewriting(row, self._total) if row is not None and self._total >= rules.minimum else Decimal(0)

    def _gone_but_for_an_hour(self, pause: float) -> bool:
        rules = self._rules(self._model)
        return rules.lifetime_s < pause <= LONG_LIFETIME_S and self._total >= rules.minimum

    def _life(self, rules: CacheRules) -> float:
        return max(LONG_LIFETIME_S, rules.lifetime_s) if self._long_life else rules.lifetime_s


def _writing(row: "PriceRow", total: int) -> Decimal:
    """Dollars of an uncached request. For providers that bill no writes, the row's write price is that of input."""
    return row.price(Usage(cache_write=total))


def _rewriting(row: "PriceRow", total: int) -> Decimal:
    """The additional dollars of a request that is not cached."""
    return _writing(row, total) - row.price(Usage(cache_read=total))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
