"""Builds the environment of child processes: variables that are known to be harmless, and never a key."""

import re
from collections.abc import Iterator, Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSED = _names(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR CI VIRTUAL_ENV CONDA_PREFIX "
    "CONDA_DEFAULT_ENV JAVA_HOME GOPATH GOROOT GOFLAGS GOBIN CARGO_HOME RUSTUP_HOME RUSTFLAGS NVM_DIR NVM_BIN "
    "PYENV_ROOT PYENV_VERSION RBENV_ROOT GEM_HOME BUNDLE_PATH DOTNET_ROOT ANDROID_HOME PKG_CONFIG_PATH CPATH "
    "LIBRARY_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH CC CXX CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS NODE_ENV PYTHONPATH "
    "PYTHONDONTWRITEBYTECODE PYTHONHASHSEED SOURCE_DATE_EPOCH SYSTEMROOT COMSPEC PATHEXT"
)
CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
)
"""The trusted certificates, as files or folders: a company's proxy signs with a certificate of its own."""

_PACKAGE_SOURCES = _names(
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy GOPROXY GONOPROXY GOSUMDB "
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_TRUSTED_HOST PIP_PROXY PIP_NO_INDEX "
    "UV_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_NATIVE_TLS UV_SYSTEM_CERTS "
    "UV_INSECURE_HOST NPM_CONFIG_REGISTRY npm_config_registry npm_config_proxy npm_config_https_proxy "
    "npm_config_noproxy YARN_NPM_REGISTRY_SERVER"
)
"""Where packages are fetched from, and through which proxy."""

_TOKEN = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9_-]{16,}")

WIKI_DIRS = "RA_WIKI_DIRS"  # where `ra wiki query` searches when the model's command runs it
_PASSED_PREFIXES = ("LC_", "NIX_", "HOMEBREW_", "XDG_DATA_", "XDG_CONFIG_", "XDG_STATE_", "XDG_CACHE_")
_SECRET = ("key", "token", "secret", "passw", "credential", "auth", "cookie")


def clean(env: Mapping[str, str], also: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of a child process. `also` names variables that the user wants passed on, keys included."""
    harmless = {name: value for name, value in env.items() if name in also or _is_harmless(name, value)}
    harmless.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    # No user sits in front of the child: no pager, no password prompt, no colours.
    return harmless | {
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
    }


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable is secret by its name, or an address with a password: https://user:password@host."""
    return bool(value) and (any(word in name.casefold() for word in _SECRET) or ("://" in value and "@" in value))


def secrets_in(value: object, name: str = "") -> Iterator[str]:
    """Yields the values in an environment or configuration whose names mark them as secrets, at any depth."""
    if isinstance(value, Mapping):
        for inner, part in value.items():
            yield from secrets_in(part, str(inner))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from secrets_in(part, name)
    elif isinstance(value, str) and holds_secret(name, value):
        yield value


def names_token(addresses: str) -> bool:
    """Whether one of the addresses carries a password, or has a path segment like a token, as some registries do."""
    parts = (part for address in addresses.split() for part in address.split("/")[3:])
    return "@" in addresses or any(_TOKEN.fullmatch(part) for part in parts)


def _is_harmless(name: str, value: str) -> bool:
    if name in _PACKAGE_SOURCES:
        return not names_token(value)
    if name in CERTIFICATES or name == WIKI_DIRS:
        return not holds_secret("", value)
    return (name in _PASSED or name.startswith(_PASSED_PREFIXES)) and not holds_secret(name, value)
