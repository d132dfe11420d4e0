"""Chooses a provider from names, settings and environment, and connects to it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import NoModel, UserError
from ra.core.model import ModelInfo, Request
from ra.core.ports import Provider
from ra.providers import catalog
from ra.providers.account import Account, Env, account, base_url, has_key
from ra.providers.client import WireProvider
from ra.providers.dialects import dialect
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName, ProviderSettings, TransportName
from ra.providers.vendors import BY_NAME, VENDORS
from ra.providers.wire import Transport

# Six lines on a terminal of eighty columns, including the program's name in front.
GETTING_STARTED = """\
No model to talk to: no key is set, no local model is installed. Do one of:
  export ANTHROPIC_API_KEY=...    then `ra "hello"` asks Claude
  export OPENAI_API_KEY=...       then it asks GPT
  export GEMINI_API_KEY=...       then it asks Gemini
  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1   Ollama etc., with -m MODEL
  ra local install                a tiny model on this machine: free, 98 MB"""


def choose(
    env: Env,
    provider: ProviderName | None = None,
    settings: Mapping[str, ProviderSettings] | None = None,
    *,
    have_local: Callable[[], bool] = lambda: False,
) -> ProviderName:
    """The provider that the user named, else the first with a key, else a server without one, else the local model.

    Raises NoModel, with instructions to get started, if there is none.
    """
    if provider is not None:
        return provider
    configured = settings or {}
    for vendor in VENDORS:
        if vendor.by_key and has_key(vendor.name, configured.get(vendor.name, ProviderSettings()), env):
            return vendor.name
    chat = configured.get("openai-chat", ProviderSettings())
    if chat.api_key or base_url("openai-chat", chat, env):
        return "openai-chat"
    if have_local():
        return "local"
    raise NoModel(GETTING_STARTED)


def connect(
    provider: ProviderName,
    model: str | None,
    settings: ProviderSettings,
    env: Env,
    *,
    transport: TransportName = "auto",
    data_dir: Path,
    retries: Retries | None = None,
) -> Provider:
    """A Provider, ready but not yet connected. Raises UserError if something that the user must supply is missing."""
    if provider == "local":
        from ra.providers import local  # start-up time: only for the local model

        return local.LocalProvider(local.weights(model, data_dir), timeout_s=settings.timeout)
    if provider == "scripted":
        from ra.providers import script, scripted

        if not model or model == catalog.default_model(provider):
            raise UserError("The scripted provider plays a file: name it with --model SCRIPT.yaml.")
        return scripted.ScriptedProvider(script.load(model), info=info(provider, model))
    vendor_account = account(provider, settings, env)
    rows = partial(catalog.info, provider)
    return WireProvider(
        dialect(provider), carrier(vendor_account, transport, env), rows, retries, timeout_s=settings.timeout
    )


def carrier(account: Account, transport: TransportName, env: Env) -> Transport:
    """The transport: `auto` is our own for plain keys, and the vendor's client if that provides the credentials."""
    plain = account.platform == "plain"
    if transport == "http" and not plain:
        raise UserError(
            f"{account.provider} on {account.platform} can only be reached through the vendor's client; "
            "set agent.transport to sdk or auto."
        )
    if transport == "sdk" or not plain:
        from ra.providers.transports import clients, sdk  # start-up time: cheap, but rarely needed

        return sdk.SdkTransport(partial(clients.make, account))
    from ra.providers.transports.http import HttpTransport

    bearer = {"authorization": f"Bearer {account.auth_token}"} if account.auth_token else {}
    return HttpTransport(
        account.base_url,
        api_key=account.api_key,
        headers=bearer | account.headers,
        timeout_s=account.timeout_s,
        env=env,
    )


def model_for(provider: ProviderName, model: str | None, settings: ProviderSettings, env: Env) -> str:
    """The user's model, else the provider's default. Raises UserError if only the user can name one."""
    if model:
        return model
    if server := own_server(provider, settings, env):
        raise UserError(f"Which model should {server} run? Name it with --model, or agent.model in your configuration.")
    return catalog.default_model(provider)


def own_server(provider: ProviderName, settings: ProviderSettings, env: Env) -> str:
    """The address of a compatible server that is not OpenAI's, and so has models of its own; otherwise ""."""
    url = base_url(provider, settings, env) if provider == "openai-chat" else ""
    return "" if "api.openai.com" in url else url


def info(provider: ProviderName, model: str) -> ModelInfo:
    """The properties of one of this provider's models."""
    if provider == "local":
        from ra.providers import local

        return local.info(model)
    return catalog.info(provider, model)


def body(provider: str, request: Request) -> dict[str, Any]:
    """A request as the provider's JSON, exactly as it is sent; as our own struct for a provider without a dialect."""
    if provider == "local" or provider in BY_NAME:
        dialect_module = dialect("openai-chat" if provider == "local" else provider)
        return dialect_module.body(request, info(provider, request.model))
    plain: dict[str, Any] = msgspec.to_builtins(request)
    return plain
