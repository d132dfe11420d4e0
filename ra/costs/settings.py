"""Settings of prices: `app.prices`, model → dollars per million tokens."""

from typing import Annotated

from msgspec import Meta

from ra.core.settings import Settings

Rate = Annotated[float, Meta(ge=0)]


class PriceSettings(Settings, frozen=True, kw_only=True):
    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    tier_above: Annotated[int, Meta(gt=0)] | None = None
    tier_multiplier: Rate = 1.0
