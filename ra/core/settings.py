"""The base of every package's settings, which `config` combines."""

import re

import msgspec

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md")
"""Files of a project that instruct agents: `ra` discovers them, and does not change them without asking."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all settings: camelCase in YAML, snake_case in Python; unknown keys are an error."""


def snake(key: str) -> str:
    """The Python name of a YAML key: `maxTokens` → `max_tokens`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()


def camel(key: str) -> str:
    """The YAML key of a Python name: `max_tokens` → `maxTokens`."""
    head, *words = key.split("_")
    return head + "".join(part.title() for part in words)
