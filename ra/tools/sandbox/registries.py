"""Tells a sandbox where pip and npm fetch packages, from the user's own files, which it lacks, without any key."""

import os
from collections.abc import Iterator, Mapping

from ra.system.environment import names_token
from ra.system.files import open_resolved
from ra.tools.sandbox.host import expanded

_BYTES = 100_000
_PIP = ("index-url", "extra-index-url", "find-links", "trusted-host", "proxy", "cert")
_NPM = ("registry", "proxy", "https-proxy", "noproxy", "cafile", "strict-ssl")


def registries(env: Mapping[str, str], home: str) -> dict[str, str]:
    """Variables with the same meaning as the files. Those in the environment already take precedence."""
    if not home:
        return {}
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    variables = {f"npm_config_{key}": value for key, value in _npm(os.path.join(home, ".npmrc"))}
    for path in (os.path.join(home, ".pip/pip.conf"), os.path.join(config, "pip/pip.conf")):
        variables |= {f"PIP_{key.replace('-', '_').upper()}": value for key, value in _pip(path)}
    named = {name.casefold() for name in env}
    return {
        name: expanded(value, home)
        for name, value in variables.items()
        if name.casefold().replace("-", "_") not in named and not names_token(value)
    }


def _npm(path: str) -> Iterator[tuple[str, str]]:
    for line in _lines(path):
        key, _, value = (part.strip() for part in line.partition("="))
        if key in _NPM or (key.startswith("@") and key.endswith(":registry")):
            yield key.replace("-", "_") if key in _NPM else key, value.strip("\"'")


def _pip(path: str) -> Iterator[tuple[str, str]]:
    """The sections for all of its commands and for `install`. A value may continue on indented lines."""
    settings: dict[str, str] = {}
    section = key = ""
    for line in _lines(path):
        if line.startswith("["):
            section, key = line.strip().strip("[]").strip(), ""
        elif line[:1].isspace():
            settings[key] = f"{settings.get(key, '')} {line.strip()}".strip()
        elif section in ("global", "install"):
            key, _, value = (part.strip() for part in line.partition("=" if "=" in line else ":"))
            settings[key] = value
        else:
            key = ""
    yield from ((key, value) for key, value in settings.items() if key in _PIP)


def _lines(path: str) -> list[str]:
    try:
        with open_resolved(path) as file:
            text = file.read(_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return []
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", ";"))]
