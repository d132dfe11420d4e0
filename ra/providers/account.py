"""Finds a provider's address and key in the user's configuration and the vendors' usual variables."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from ra.core.errors import UserError
from ra.core.redaction import redacted
from ra.core.value import Value
from ra.providers.settings import ProviderName, ProviderSettings
from ra.providers.vendors import BY_NAME, Vendor

OPENROUTER = "https://openrouter.ai/api/v1"
OLLAMA_PORT = 11434

Platform = Literal["plain", "bedrock", "vertex", "foundry", "azure"]
Env = Mapping[str, str]


class Account(Value, frozen=True):
    """A provider's credentials and address. On a `platform` other than plain, the vendor's client adds the rest."""

    provider: ProviderName
    platform: Platform = "plain"
    base_url: str = ""
    api_key: str = ""
    auth_token: str = ""  # a bearer token instead of a key
    headers: dict[str, str] = {}
    timeout_s: float = 600


def has_key(provider: ProviderName, settings: ProviderSettings, env: Env) -> bool:
    """Whether the user has configured any access to this provider."""
    key = settings.api_key or _get(env, *BY_NAME[provider].keys) or _token(provider, env)
    return bool(key) or _platform(provider, settings, env) != "plain"


def account(provider: ProviderName, settings: ProviderSettings, env: Env) -> Account:
    """The account that configuration and environment describe. Raises UserError if a key is missing or malformed."""
    vendor = BY_NAME[provider]
    platform = _platform(provider, settings, env)
    key = settings.api_key or (_get(env, *vendor.keys) if platform == "plain" else _platform_key(platform, env))
    key = key or _gateway(provider, settings, env)[1]
    token = "" if key else _token(provider, env)
    redacted.register(key, token)
    given_url = base_url(provider, settings, env, platform)
    if platform == "plain" and not (key or token or given_url):
        raise UserError(
            f"No key for {provider}: set {vendor.key}, or app.providers.{provider}.apiKey in your user configuration."
        )
    return Account(
        provider,
        platform,
        _tidy(vendor, given_url or vendor.home) if platform == "plain" else given_url,
        _clean(key, vendor),
        _clean(token, vendor),
        _headers(provider, env) | {name.lower(): value for name, value in settings.headers.items()},
        settings.timeout,
    )


def address(provider: ProviderName, settings: ProviderSettings, env: Env) -> str:
    """The address of an endpoint, which identifies it. Contains no secret."""
    vendor = BY_NAME.get(provider)
    if vendor is None:
        return ""
    platform = _platform(provider, settings, env)
    given_url = base_url(provider, settings, env, platform)
    url = _tidy(vendor, given_url or vendor.home) if platform == "plain" else given_url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return url if platform == "plain" else f"{platform} {url}".strip()


_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
_PLAIN = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


def _token(provider: ProviderName, env: Env) -> str:
    return _get(env, "ANTHROPIC_AUTH_TOKEN") if provider == "anthropic" else ""


def _platform(provider: ProviderName, settings: ProviderSettings, env: Env) -> Platform:
    """The platform: plain if there is a plain key, else the one that a host or a variable belongs to."""
    host = (urlsplit(settings.base_url or "").hostname or "").lower()
    if provider == "anthropic":
        if host.startswith("bedrock-runtime."):
            return "bedrock"
        if host.endswith("aiplatform.googleapis.com"):
            return "vertex"
        if settings.api_key or settings.base_url or _get(env, *_PLAIN):
            return "plain"
        if _get(env, "ANTHROPIC_BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK"):
            return "bedrock"
        if _get(env, "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_BASE_URL"):
            return "vertex"
        if _get(env, "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"):
            return "foundry"
    elif provider in ("openai", "openai-chat"):
        path = urlsplit(settings.base_url or "").path
        if host.endswith(".openai.azure.com") and not path.rstrip("/").endswith("/v1"):
            return "azure"
        plain = settings.api_key or settings.base_url or _get(env, "OPENAI_API_KEY", "OPENAI_BASE_URL")
        if not plain and _get(env, "AZURE_OPENAI_ENDPOINT"):
            return "azure"
    elif provider == "google":
        switch = _get(env, "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE").lower()
        if switch in ("1", "true") or host.endswith("aiplatform.googleapis.com"):
            return "vertex"
    return "plain"


def _platform_key(platform: Platform, env: Env) -> str:
    names = {
        "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
        "foundry": "ANTHROPIC_FOUNDRY_API_KEY",
        "azure": "AZURE_OPENAI_API_KEY",
    }
    # With an Entra ID token, the key must be omitted: Azure's client accepts only one of the two.
    if platform == "azure" and _get(env, "AZURE_OPENAI_AD_TOKEN"):
        return ""
    return _get(env, names.get(platform, ""))


def base_url(provider: ProviderName, settings: ProviderSettings, env: Env, platform: Platform = "plain") -> str:
    """The address that the user configured, if any."""
    if settings.base_url or platform == "plain":
        return settings.base_url or _get(env, BY_NAME[provider].url_key) or _gateway(provider, settings, env)[0]
    names = {
        ("anthropic", "bedrock"): "ANTHROPIC_BEDROCK_BASE_URL",
        ("anthropic", "vertex"): "ANTHROPIC_VERTEX_BASE_URL",
        ("anthropic", "foundry"): "ANTHROPIC_FOUNDRY_BASE_URL",
        ("openai", "azure"): "AZURE_OPENAI_ENDPOINT",
        ("openai-chat", "azure"): "AZURE_OPENAI_ENDPOINT",
        ("google", "vertex"): "GOOGLE_VERTEX_BASE_URL",
    }
    return _get(env, names.get((provider, platform), ""))


def _gateway(provider: ProviderName, settings: ProviderSettings, env: Env) -> tuple[str, str]:
    """The address and key of a compatible server with variables of its own; OpenAI's variables take precedence."""
    if provider != "openai-chat" or settings.base_url or settings.api_key or _get(env, *_OPENAI):
        return "", ""
    if key := _get(env, "OPENROUTER_API_KEY"):
        return OPENROUTER, key
    return _ollama(_get(env, "OLLAMA_HOST")), ""


def _ollama(host: str) -> str:
    """The address in OLLAMA_HOST, as Ollama's own client reads it: a host, a port or both, with or without a scheme."""
    if not host:
        return ""
    scheme, mark, address = host.partition("://") if "://" in host else ("http", "://", host)
    place = urlsplit(f"{scheme}{mark}{address if not address.startswith(':') else '127.0.0.1' + address}")
    try:
        port = place.port or {"http": OLLAMA_PORT, "https": 443}.get(scheme, OLLAMA_PORT)
    except ValueError as error:
        raise UserError(f"OLLAMA_HOST is {host!r}; use a host and a port, such as 127.0.0.1:{OLLAMA_PORT}.") from error
    name = place.hostname or "127.0.0.1"
    name = "127.0.0.1" if name in ("0.0.0.0", "::") else name  # noqa: S104 - an address to listen on, not one to connect to
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}{place.path.rstrip('/')}/v1"


def _tidy(vendor: Vendor, url: str) -> str:
    """The base URL in the form of the vendor's own client, so that both transports reach the same address."""
    url = url.strip().rstrip("/")
    if vendor.complete:
        return url if urlsplit(url).path else url + vendor.version
    return url.removesuffix(vendor.version)


def _headers(provider: ProviderName, env: Env) -> dict[str, str]:
    """The headers that the vendors' clients take from their variables."""
    prefix = "ANTHROPIC" if provider == "anthropic" else "OPENAI" if provider in ("openai", "openai-chat") else ""
    headers: dict[str, str] = {}
    for line in _get(env, f"{prefix}_CUSTOM_HEADERS").splitlines() if prefix else ():
        name, colon, value = line.partition(":")
        if colon and name.strip():
            headers[name.strip().lower()] = value.strip()
    if prefix == "OPENAI":
        for header, variable in (("openai-organization", "OPENAI_ORG_ID"), ("openai-project", "OPENAI_PROJECT_ID")):
            if value := _get(env, variable):
                headers[header] = value
    return headers


def _clean(key: str, vendor: Vendor) -> str:
    """A key that is valid in a header. Raises UserError, which never shows the key."""
    key = key.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UserError(
            f"The key for {vendor.name} holds characters that no key has (spaces, line breaks or non-ASCII); "
            f"copy it again into {vendor.key}."
        )
    return key


def _get(env: Env, *names: str) -> str:
    return next((value for name in names if (value := env.get(name, "").strip())), "")
