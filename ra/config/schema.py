"""Check a value against its type; a fault names the key, the value, the place and what would be right."""

import difflib
import math
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from ra.config.yamlfile import Origin, Path_
from ra.core.errors import ConfigError
from ra.core.settings import Settings, snake

FindOrigin = Callable[[Path_], Origin]


def fields(kind: type[Settings]) -> dict[str, Any]:
    """YAML key → type of a Settings struct."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def tidy(data: Any, kind: Any, place: FindOrigin, path: Path_ = ()) -> Any:
    """`data` with its keys in camelCase and its values checked against `kind`. Raises ConfigError."""
    struct = _settings_in(kind)
    if isinstance(data, dict) and struct is not None:
        return _tidy_struct(data, struct, place, path)
    for option in _options(kind):
        origin, arguments = get_origin(option), get_args(option)
        if origin is dict and isinstance(data, dict):
            return {key: tidy(value, arguments[1], place, (*path, key)) for key, value in data.items()}
        if origin is tuple and isinstance(data, list) and len(arguments) == 2 and arguments[1] is Ellipsis:
            return [tidy(value, arguments[0], place, (*path, str(index))) for index, value in enumerate(data)]
    if data is False and "off" in _choices(kind):
        data = "off"  # YAML reads a bare `off` as false
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{place(path)}: {'.'.join(path)} is {shown(data)}; it must be {described(kind)}.") from error
    return data


def _tidy_struct(data: dict[str, Any], kind: type[Settings], place: FindOrigin, path: Path_) -> dict[str, Any]:
    known_fields = fields(kind)
    by_snake = {snake(name): name for name in known_fields}
    clean: dict[str, Any] = {}
    for key, value in data.items():
        name = key if key in known_fields else by_snake.get(key, "")
        if not name:
            raise ConfigError(
                f"{place((*path, key))}: unknown key {'.'.join((*path, key))}; {hint(key, known_fields)}."
            )
        if name in clean:
            raise ConfigError(
                f"{place((*path, key))}: {'.'.join((*path, name))} is set twice, as {snake(name)} and {name}; keep one."
            )
        clean[name] = tidy(value, known_fields[name], place, (*path, key))
    required = [f.encode_name for f in msgspec.structs.fields(kind) if f.required and f.encode_name not in clean]
    if required:
        raise ConfigError(f"{place(path)}: {'.'.join(path)} needs {' and '.join(required)}.")
    return clean


def hint(key: str, known: dict[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6) or difflib.get_close_matches(
        key.lower(), [name.lower() for name in known], n=1, cutoff=0.6
    )
    if close:
        name = next(name for name in known if name.lower() == close[0].lower())
        return f"did you mean {name}?  Known here: {', '.join(sorted(known))}"
    return f"known here: {', '.join(sorted(known))}"


def shown(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON knows none of them, and would call them null
    text = "null" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 80 else text[:77] + "…"


def described(kind: Any) -> str:
    """The legal values of a type, in words."""
    options = [_described(option) for option in _options(kind)]
    return " or ".join(dict.fromkeys(options))


def _described(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is type(None):
        return "null"
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in arguments)
    if origin is typing.Annotated:
        return _described(arguments[0]) + _bounds(arguments[1])
    if origin is tuple:
        return "a list" if arguments[0] is Any else f"a list, each {described(arguments[0])}"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, Settings)):
        return "a mapping"
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(kind, "a value")


def _bounds(meta: Any) -> str:
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    parts = [f"{word} {limit:g}" for name, word in words.items() if (limit := getattr(meta, name)) is not None]
    return " " + " and ".join(parts) if parts else ""


def _options(kind: Any) -> Iterator[Any]:
    if get_origin(kind) in {types.UnionType, typing.Union}:
        for option in get_args(kind):
            yield from _options(option)
    else:
        yield kind


def _choices(kind: Any) -> tuple[Any, ...]:
    return tuple(choice for option in _options(kind) if get_origin(option) is Literal for choice in get_args(option))


def _settings_in(kind: Any) -> type[Settings] | None:
    return next((o for o in _options(kind) if isinstance(o, type) and issubclass(o, Settings)), None)
