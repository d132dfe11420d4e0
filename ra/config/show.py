"""Shows the resolved configuration as YAML, each value with its origin."""

import re
from typing import Any

import msgspec

from ra.config.load import DEFAULT, Resolved
from ra.config.yamlfile import Path_

_SECRET = re.compile(r"key|token|secret|password|authorization|credential", re.IGNORECASE)
REDACTED = "[redacted]"
_PASSWORD = re.compile(r"(://[^/@\s:]*:)[^/@\s]+@")  # of an address
COLUMN = 56


def shown(resolved: Resolved) -> str:
    """Every key with its value and origin; secrets are left out.

    What a project asks for without consent is listed at the end.
    """
    data = msgspec.to_builtins(resolved.config)
    lines = _lines(data, (), resolved)
    if resolved.untrusted:
        lines.append(f"# waiting for `ra trust`: {', '.join('.'.join(item.key) for item in resolved.untrusted)}")
    return "\n".join(lines) + "\n"


def _lines(value: dict[str, Any], path: Path_, resolved: Resolved) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        here = (*path, key)
        indent = "  " * len(path)
        if isinstance(item, dict) and item:
            lines.append(f"{indent}{key}:")
            lines += _lines(item, here, resolved)
            continue
        text = f"{indent}{key}: {scalar(redacted(key, item, here))}"
        lines.append(f"{text:<{COLUMN}}  # {resolved.origins.get(here, DEFAULT)}")
    return lines


def redacted(key: str, value: Any, path: Path_) -> Any:
    """The value, or a placeholder for a secret: by its key, and anything in a provider's headers or a server's env."""
    hidden = bool(_SECRET.search(key)) and not isinstance(value, int | float | bool | None)
    if hidden or {"headers", "env"} & set(path[:-1]):
        return REDACTED
    if isinstance(value, dict):
        return {name: redacted(name, item, (*path, name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted("", item, path) for item in value]
    return _PASSWORD.sub(rf"\1{REDACTED}@", value) if isinstance(value, str) else value


def scalar(value: Any) -> str:
    """The value as YAML: JSON, or a plain word without quotes if YAML reads it as text."""
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", value)
    if plain and str(value).lower() not in {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}:
        return str(value)
    return msgspec.json.encode(value).decode()
