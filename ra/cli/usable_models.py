"""Lists the models that can be used here: those of the current provider, and of providers with a key."""

from ra.app import App
from ra.providers import catalog
from ra.providers.account import has_key
from ra.providers.settings import ProviderSettings
from ra.providers.vendors import BY_NAME


def usable_models(app: App, provider: str) -> list[catalog.ModelRow]:
    providers = app.config.app.providers
    return [
        row
        for row in catalog.rows()
        if row.provider == provider
        or (row.provider in BY_NAME and has_key(row.provider, providers.get(row.provider, ProviderSettings()), app.env))
    ]
