"""The base of what packages let a user configure; `config` sums them up."""

import re

import msgspec

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md")
"""Files of a project that tell agents what to do: they are discovered, and not written without a word."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all settings: camelCase in YAML, snake_case in Python, unknown keys refused."""


def snake(key: str) -> str:
    """`maxTokens` in YAML is `max_tokens` in Python."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()


def camel(key: str) -> str:
    """`max_tokens` is read as `maxTokens`."""
    head, *words = key.split("_")
    return head + "".join(part.title() for part in words)
