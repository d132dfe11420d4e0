"""Settings of prices, `app.prices` (model → dollars per million tokens), and of the provider's cache, `agent.cache`."""

from typing import Annotated, Literal

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


class CacheSettings(Settings, frozen=True, kw_only=True):
    """How long the provider should cache a session's prefix, and whether small paid calls may keep it alive."""

    ttl: Literal["auto", "5m", "1h"] = "auto"
    keep_warm: Literal["off", "auto"] = "off"
