"""Checks a layer of the configuration: first its types, then what types cannot express.

Each error names the key, the value, the file and line, and the legal values.
"""

import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from ra.config.yamlfile import Origin, Path_
from ra.core.errors import ConfigError
from ra.core.settings import Settings, snake
from ra.providers.settings import ProviderName

FindOrigin = Callable[[Path_], Origin]
RESOLVERS = ("file", "url", "mcp")
STORES = ("postgresql", "postgres")
_ACTIONS = ("allow", "ask", "deny")


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
    bounded = any(get_origin(option) is typing.Annotated for option in _options(kind))
    if bounded and isinstance(data, float) and math.isinf(data):
        raise _wrong(path, data, f"it must be {described(kind)}, and finite", place)
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
        return str(value)  # JSON has no such numbers and would print null
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


def check(data: dict[str, Any], place: FindOrigin) -> None:
    """Check one layer on its own. Raises ConfigError."""
    for path, agent in _agents(data):
        _check_rules(agent.get("permissions", {}).get("rules", ()), (*path, "permissions", "rules"), place)
        if "custom" in (tools := agent.get("tools", {})):
            tidy(tools["custom"], tuple[str, ...], place, (*path, "tools", "custom"))
        context = agent.get("context", {})
        _check_resolvers(context.get("resolvers", ()), (*path, "context", "resolvers"), place)
        _check_patterns(context.get("mustKeep", ()), (*path, "context", "mustKeep"), place)
    app = data.get("app", {})
    _check_providers(app.get("providers", {}), place)
    _check_store(app.get("store"), place)


def tidy_tools(data: dict[str, Any], place: FindOrigin) -> None:
    """Check the tools of the merged layers: which tools exist depends on `custom`, and on what a project may say."""
    for path, agent in _agents(data):
        if "tools" in agent:
            agent["tools"] = _tools(agent["tools"], (*path, "tools"), place)


def _agents(data: dict[str, Any]) -> Iterator[tuple[Path_, dict[str, Any]]]:
    yield ("agent",), data.get("agent", {})
    for name, agent in data.get("agents", {}).items():
        yield ("agents", name), agent


def _check_rules(rules: Any, path: Path_, place: FindOrigin) -> None:
    if not rules:
        return
    from ra.tools.policy.rules import parse_rule  # start-up time: few configurations have rules

    for index, rule in enumerate(rules):
        here = (*path, str(index))
        actions = [action for action in _ACTIONS if rule.get(action) is not None]
        if len(actions) != 1:
            raise _wrong(here, rule, "a rule has exactly one of allow, ask, deny, such as {allow: Bash(make:*)}", place)
        try:
            parse_rule(rule[actions[0]], actions[0])  # type: ignore[arg-type]  # one of _ACTIONS
        except ConfigError as error:
            raise ConfigError(f"{place(here)}: {'.'.join(here)}: {error}") from error


def _check_resolvers(resolvers: Any, path: Path_, place: FindOrigin) -> None:
    for index, one in enumerate(resolvers):
        if not one.get("path") and one["name"] not in RESOLVERS:
            advice = f"without a path it must be one of {', '.join(RESOLVERS)}"
            raise _wrong((*path, str(index), "name"), one["name"], advice, place)


def _check_patterns(patterns: Any, path: Path_, place: FindOrigin) -> None:
    for index, pattern in enumerate(patterns):
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"{'.'.join(path)}: {pattern!r} is not a valid regular expression: {error}."
            raise ConfigError(f"{place((*path, str(index)))}: {message}") from error


def _check_providers(providers: dict[str, Any], place: FindOrigin) -> None:
    names = get_args(ProviderName)
    for name, settings in providers.items():
        here = ("app", "providers", name)
        if name not in names:
            advice = hint(name, dict.fromkeys(names))
            raise ConfigError(f"{place(here)}: unknown key {'.'.join(here)}; {advice}.")
        url = settings.get("baseUrl")
        if url and not re.match(r"https?://[^/\s]", url.strip()):
            raise _wrong((*here, "baseUrl"), url, "it must begin with http:// or https:// and a host", place)


def _check_store(address: str | None, place: FindOrigin) -> None:
    """Check the kind of database. The message does not repeat the address, which may contain a password."""
    scheme, separator, _ = (address or "").partition("://")
    if separator and scheme not in STORES:
        advice = f"use {' or '.join(f'{name}://…' for name in STORES)}, or the path of a SQLite file"
        raise _wrong(("app", "store"), f"{scheme}://…", advice, place)


def _tools(tools: dict[str, Any], path: Path_, place: FindOrigin) -> dict[str, Any]:
    from ra.tools.options import ToolOptions, options_of  # start-up time: few configurations set up a tool

    kinds: dict[str, Any] = {"custom": tuple[str, ...]}
    clean = {name: tidy(v, kinds.get(name, bool | ToolOptions), place, (*path, name)) for name, v in tools.items()}
    # The tools that a custom file defines are known only once it is loaded; until then any name may be one of them.
    own_tools = tuple(clean) if clean.get("custom") else ()
    try:
        options_of(clean, None, own_tools)
    except ConfigError as error:
        message = str(error).removeprefix("agent.tools.")
        here = (*path, re.split(r"[.:]", message)[0])
        raise ConfigError(f"{place(here)}: {'.'.join(path)}.{message}") from error
    return clean


def _wrong(path: Path_, value: Any, told: str, place: FindOrigin) -> ConfigError:
    return ConfigError(f"{place(path)}: {'.'.join(path)} is {shown(value)}; {told}.")
