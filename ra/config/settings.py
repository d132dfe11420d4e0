"""The whole configuration: the sum of each package's Settings."""

from typing import Annotated, Literal

from msgspec import Meta

from ra.context.settings import SessionSettings
from ra.core.settings import Settings
from ra.costs.settings import PriceSettings
from ra.providers.settings import ProviderSettings
from ra.session.settings import AgentSettings, NamedAgent


class HttpSettings(Settings, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 18800


class AppSettings(Settings, frozen=True, kw_only=True):
    data_dir: str | None = None
    http: HttpSettings = HttpSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    prices: dict[str, PriceSettings] = {}
    providers: dict[str, ProviderSettings] = {}
    store: str | None = None


class Config(Settings, frozen=True, kw_only=True):
    agent: AgentSettings = AgentSettings()
    session: SessionSettings = SessionSettings()
    agents: dict[str, NamedAgent] = {}
    app: AppSettings = AppSettings()
