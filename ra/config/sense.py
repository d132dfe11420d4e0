"""Check what types cannot: rules, resolvers, providers and tools, refused where they are written."""

import re
from collections.abc import Iterator
from typing import Any, get_args

from ra.config import schema
from ra.config.schema import FindOrigin
from ra.config.yamlfile import Path_
from ra.core.errors import ConfigError
from ra.providers.settings import ProviderName

RESOLVERS = ("file", "url", "mcp")
_ACTIONS = ("allow", "ask", "deny")


def check(data: dict[str, Any], place: FindOrigin) -> None:
    """One layer as its file has it. Raises ConfigError with key, value, place and what would be right."""
    for path, agent in _agents(data):
        _check_rules(agent.get("permissions", {}).get("rules", ()), (*path, "permissions", "rules"), place)
        if "custom" in (tools := agent.get("tools", {})):
            schema.tidy(tools["custom"], tuple[str, ...], place, (*path, "tools", "custom"))
        context = agent.get("context", {})
        _check_resolvers(context.get("resolvers", ()), (*path, "context", "resolvers"), place)
        _check_patterns(context.get("mustKeep", ()), (*path, "context", "mustKeep"), place)
    _check_providers(data.get("app", {}).get("providers", {}), place)


def tidy_tools(data: dict[str, Any], place: FindOrigin) -> None:
    """All layers together: which tools there are depends on `custom`, and a project's rights on what was let in."""
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
    from ra.tools.policy.rules import parse_rule  # few have rules

    for index, rule in enumerate(rules):
        here = (*path, str(index))
        actions = [action for action in _ACTIONS if rule.get(action) is not None]
        if len(actions) != 1:
            raise _wrong(here, rule, "a rule has exactly one of allow, ask, deny, such as {allow: Bash(make:*)}", place)
        try:
            parse_rule(rule[actions[0]], actions[0])  # type: ignore[arg-type]  # one of the three
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
            message = f"{'.'.join(path)}: {pattern!r} is no regular expression: {error}."
            raise ConfigError(f"{place((*path, str(index)))}: {message}") from error


def _check_providers(providers: dict[str, Any], place: FindOrigin) -> None:
    names = get_args(ProviderName)
    for name, settings in providers.items():
        here = ("app", "providers", name)
        if name not in names:
            advice = schema.hint(name, dict.fromkeys(names))
            raise ConfigError(f"{place(here)}: unknown key {'.'.join(here)}; {advice}.")
        url = settings.get("baseUrl")
        if url and not re.match(r"https?://[^/\s]", url.strip()):
            raise _wrong((*here, "baseUrl"), url, "it must begin with http:// or https:// and a host", place)


def _tools(tools: dict[str, Any], path: Path_, place: FindOrigin) -> dict[str, Any]:
    from ra.tools.options import ToolOptions, options_of  # few set up a tool

    kinds: dict[str, Any] = {"custom": tuple[str, ...]}
    clean = {
        name: schema.tidy(v, kinds.get(name, bool | ToolOptions), place, (*path, name)) for name, v in tools.items()
    }
    # What a file of the user's defines is known once it is loaded; until then any name may be one of its tools.
    own_tools = tuple(clean) if clean.get("custom") else ()
    try:
        options_of(clean, None, own_tools)
    except ConfigError as error:
        message = str(error).removeprefix("agent.tools.")
        here = (*path, re.split(r"[.:]", message)[0])
        raise ConfigError(f"{place(here)}: {'.'.join(path)}.{message}") from error
    return clean


def _wrong(path: Path_, value: Any, told: str, place: FindOrigin) -> ConfigError:
    return ConfigError(f"{place(path)}: {'.'.join(path)} is {schema.shown(value)}; {told}.")
