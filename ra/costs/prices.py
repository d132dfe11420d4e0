"""Prices calls, exact to the last decimal."""

import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import msgspec

from ra.core.model import Usage
from ra.core.model_names import stems_of
from ra.core.value import Value
from ra.costs.public_prices import Catalog, Rates, dated, load
from ra.costs.settings import PriceSettings

MILLION = Decimal(1_000_000)
DAY_S = 86_400
FREE = Rates()

# The rates and the tier of the cost model that the strategies were measured with; the public table has no such tier.
_OPUS_4_6 = Rates(
    input=Decimal("5"),
    output=Decimal("25"),
    cache_read=Decimal("0.5"),
    cache_write=Decimal("6.25"),
    cache_write_1h=Decimal("10"),
)
SHIPPED: dict[str, tuple[Rates, int, Decimal]] = dict.fromkeys(
    ("claude-opus-4-6", "claude-opus-4.6", "claude-4-6-opus", "claude-4.6-opus"),
    (_OPUS_4_6, 200_000, Decimal("1.5")),
)


class Tiered(Value, frozen=True):
    """The rates of a call whose total input exceeds `above`. They apply to all its tokens, not only to those above."""

    above: int
    rates: Rates


class PriceRow(Value, frozen=True):
    """The prices of one model. `window` is the catalog's window, None if it has none."""

    model: str
    rates: Rates
    tiers: tuple[Tiered, ...] = ()  # ascending
    window: int | None = None

    def at(self, total_input: int) -> Rates:
        """The rates of a call with this total input."""
        for tier in reversed(self.tiers):
            if total_input > tier.above:
                return tier.rates
        return self.rates

    def long_lived(self) -> "PriceRow":
        """The same prices, with every cache write at the one-hour rate."""
        tiers = tuple(Tiered(tier.above, _for_an_hour(tier.rates)) for tier in self.tiers)
        return PriceRow(self.model, _for_an_hour(self.rates), tiers, self.window)

    def price(self, usage: Usage, *, long_lived: bool = False) -> Decimal:
        """Dollars of one call. With `long_lived`, cache writes cost the one-hour rate."""
        rates = self.at(usage.total_input)
        write = rates.cache_write_1h if long_lived else rates.cache_write
        return (
            usage.input * rates.input
            + usage.output * rates.output
            + usage.cache_read * rates.cache_read
            + usage.cache_write * write
        ) / MILLION

    def hour_premium(self, written: int) -> Decimal:
        """The additional dollars for writing these tokens to the cache for an hour instead of five minutes."""
        rates = self.at(written)
        return written * (rates.cache_write_1h - rates.cache_write) / MILLION


def _for_an_hour(rates: Rates) -> Rates:
    return msgspec.structs.replace(rates, cache_write=rates.cache_write_1h)


class Prices:
    """The price table: the user's rows, then ours, then the package genai-prices.

    The package takes 0.2–0.4 s to import, so an extract is kept in `cache_file` until the package changes: reading it
    takes milliseconds. Nothing is loaded before the first look-up.
    """

    def __init__(
        self,
        overrides: Mapping[str, PriceSettings],
        cache_file: Path | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._overrides = {name.lower(): row for name, row in overrides.items()}
        self._cache_file = cache_file
        self._clock = clock
        self._catalog: Catalog | None = None
        self._rows: dict[tuple[str, str, int], PriceRow | None] = {}  # of a model and provider on a day

    def row(self, model: str, provider: str = "", *, at: float | None = None) -> PriceRow | None:
        """The model's prices at a time (default: now), None if unknown.

        A local model costs nothing. A scripted model costs what the model of that name costs, or nothing.
        """
        now = self._clock() if at is None else at
        key = (model, provider, int(now // DAY_S))
        if key not in self._rows:
            self._rows[key] = self._find(model, provider, time.strftime("%Y-%m-%d", time.gmtime(now)))
        return self._rows[key]

    def price(self, model: str, usage: Usage, provider: str = "", *, at: float | None = None) -> Decimal | None:
        row = self.row(model, provider, at=at)
        return None if row is None else row.price(usage)

    def _find(self, model: str, provider: str, day: str) -> PriceRow | None:
        name = model.strip().lower()
        for stem in stems_of(name):
            if stem in self._overrides:
                return self._chosen(stem, self._known(name, day))
        if provider == "local" or name.endswith(":free"):
            return PriceRow(model, FREE)
        row = self._known(name, day)
        return PriceRow(model, FREE) if row is None and provider == "scripted" else row

    def _known(self, name: str, day: str) -> PriceRow | None:
        if self._catalog is None:
            self._catalog = load(self._cache_file)
        names = list(stems_of(name))
        for shipped in names:
            if shipped in SHIPPED:
                rates, above, factor = SHIPPED[shipped]
                return PriceRow(shipped, rates, (Tiered(above, rates.times(factor)),), 1_000_000)
        if model := self._catalog.find(names):
            prices = dated(model, day)
            tiers = tuple(Tiered(above, rates) for above, rates in prices.tiers)
            return PriceRow(model.id, prices.rates, tiers, model.window)
        return None

    def _chosen(self, stem: str, known: PriceRow | None) -> PriceRow:
        """The user's row. A cache rate that the user left out keeps the vendor's ratio to input; without one: input."""
        chosen = self._overrides[stem]
        base = Decimal(str(chosen.input))
        ratio = base / known.rates.input if known and known.rates.input else None

        def rate(given: float | None, vendors: Decimal) -> Decimal:
            if given is not None:
                return Decimal(str(given))
            return base if ratio is None else ratio * vendors

        listed = known.rates if known else FREE
        rates = Rates(
            input=base,
            output=Decimal(str(chosen.output)),
            cache_read=rate(chosen.cache_read, listed.cache_read),
            cache_write=rate(chosen.cache_write, listed.cache_write),
            cache_write_1h=rate(None, listed.cache_write_1h),
        )
        tiers: tuple[Tiered, ...] = ()
        if chosen.tier_above is not None:
            tiers = (Tiered(chosen.tier_above, rates.times(Decimal(str(chosen.tier_multiplier)))),)
        return PriceRow(stem, rates, tiers, known.window if known else None)
