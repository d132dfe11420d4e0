"""Declares the settings of a provider: `app.providers.NAME`, never taken from a project file."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from ra.core.settings import Settings
from ra.providers.vendors import BY_NAME, IN_PROCESS

if TYPE_CHECKING:
    ProviderName = str
else:  # type checkers cannot evaluate a table; a configuration is checked against its rows when it is read
    ProviderName = Literal[(*BY_NAME, *IN_PROCESS)]

TransportName = Literal["auto", "http", "sdk"]


class ProviderSettings(Settings, frozen=True, kw_only=True):
    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0)] = 600
