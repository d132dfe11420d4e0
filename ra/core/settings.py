"""How do packages declare what a user may configure? As Settings structs; `config` sums them up."""

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all settings: camelCase in YAML, snake_case in Python, unknown keys refused."""
