"""Read a field of a provider's JSON: a missing one is empty, one of the wrong type is a BadStream."""

from typing import Any, NoReturn

from ra.core.errors import BadStream
from ra.core.text import clean
from ra.core.value import JsonObject, encode, too_deep

NESTED = "{…"
"""Stands for arguments that nest too deeply: no JSON, so that the call gets an error result."""


def text(source: JsonObject, key: str) -> str:
    value = source.get(key)
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) else _wrong(key, value)


def number(source: JsonObject, key: str) -> int:
    """A count of tokens, an index: never negative."""
    value = source.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        _wrong(key, value)
    return max(0, int(value))


def counts(source: JsonObject, key: str) -> JsonObject:
    """What a server says that a call used; nothing, if a part of it is no count: the answer is good all the same, and
    what is not told is estimated."""
    told = source.get(key)
    return told if isinstance(told, dict) and _are_counts(told) else {}


def _are_counts(told: JsonObject) -> bool:
    for key, value in told.items():
        name = key.lower()
        if value is None or "token" not in name:
            continue
        if "details" in name:  # Google has lists of them
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
    """The arguments of a tool call; None when they are no JSON object, or one that nests too deeply to be handled.

    A raw line break in a string is forgiven.
    """
    import json  # by now the model has answered; before the first request nobody needs it

    try:
        value = json.loads(raw, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return _cleaned(value) if isinstance(value, dict) and not too_deep(value) else None


def dumped(args: JsonObject) -> str:
    """Arguments that came as an object, as the text that others stream."""
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
