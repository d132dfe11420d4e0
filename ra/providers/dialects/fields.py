"""Reads fields of a provider's JSON: a missing one is empty, one of the wrong type raises BadStream."""

from typing import Any, NoReturn

from ra.core.errors import BadStream
from ra.core.text import clean
from ra.core.value import JsonObject, encode, too_deep

NESTED = "{…"
"""Replaces arguments that nest too deeply: invalid JSON, so that the call gets an error result."""


def text(source: JsonObject, key: str) -> str:
    value = source.get(key)
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) else _wrong(key, value)


def number(source: JsonObject, key: str) -> int:
    """A count of tokens or an index, never negative."""
    value = source.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        _wrong(key, value)
    return max(0, int(value))


def counts(source: JsonObject, key: str) -> JsonObject:
    """The usage that a server reports; empty if a part of it is invalid: the answer is still good, and missing usage is
    estimated."""
    usage = source.get(key)
    return usage if isinstance(usage, dict) and _are_counts(usage) else {}


def _are_counts(usage: JsonObject) -> bool:
    for key, value in usage.items():
        name = key.lower()
        if value is None or "token" not in name:
            continue
        if "details" in name:  # Google sends lists
            readable = isinstance(value, list) or (isinstance(value, dict) and _are_counts(value))
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            readable = is_number and value >= 0 and value == value // 1
        if not readable:
            return False
    return True


def child(source: JsonObject, key: str) -> JsonObject:
    value = source.get(key)
    if value is None:
        return {}
    return value if isinstance(value, dict) else _wrong(key, value)


def children(source: JsonObject, key: str) -> list[JsonObject]:
    value = source.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        _wrong(key, value)
    return value


def arguments(raw: str) -> JsonObject | None:
    """The arguments of a tool call; None if they are not a JSON object, or one that nests too deeply.

    Raw line breaks in strings are accepted.
    """
    import json  # start-up time: not before the first answer

    try:
        value = json.loads(raw, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return _cleaned(value) if isinstance(value, dict) and not too_deep(value) else None


def dumped(args: JsonObject) -> str:
    """Arguments that came as an object, as JSON text."""
    if too_deep(args):
        return NESTED
    return encode(_cleaned(args)).decode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _wrong(key: str, value: object) -> NoReturn:
    raise BadStream(f"The provider's answer has a {type(value).__name__} where {key!r} should be something else.")
