"""What may a user configure about a provider? Spec key app.providers.NAME; never taken from a project file."""

from typing import Annotated, Literal

from msgspec import Meta

from ra.core.settings import Settings

ProviderName = Literal["anthropic", "openai", "openai-chat", "google", "local", "scripted"]
TransportName = Literal["auto", "http", "sdk"]


class ProviderSettings(Settings, frozen=True, kw_only=True):
    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0)] = 600
