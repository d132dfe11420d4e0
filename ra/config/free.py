"""What may a project's file say before the user trusts it? This list, and nothing else."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ra.core.settings import camel
from ra.providers.vendors import IN_PROCESS
from ra.system.secret_names import fold, is_secret

Key = tuple[str, ...]

_ANY = "*"
_AGENT: tuple[Key, ...] = (
    ("provider",),
    ("model",),
    ("thinking",),
    ("thinkingBudgetCap",),
    ("maxIterations",),  # the four limits only go down: config.guards
    ("maxTokenBudget",),
    ("maxCost",),
    ("maxDuration",),
    ("toolTimeout",),
    ("parallelToolCalls",),
    *(("compaction", name) for name in ("enabled", "threshold", "strategy", "model", "contextWindow", "maxTokens")),
    ("compaction", "recent"),
    ("cache", "ttl"),  # not keepWarm: it makes calls that nobody asked for
    ("context", "enabled"),
    ("context", "patterns", _ANY),
    ("context", "mustKeep", _ANY),
    ("context", "sourceBudget"),
    *(("context", "sources", _ANY, name) for name in ("file", "text", "timeline", "max", "cache", "priority")),
    *(("context", "sources", _ANY, name) for name in ("position", "role", "trim")),
    ("context", "resolvers", _ANY, "name"),
    ("context", "resolvers", _ANY, "enabled"),
    ("permissions", "rules", _ANY, "ask"),
    ("permissions", "rules", _ANY, "deny"),
    ("permissions", "edits"),  # only stricter: config.guards
    ("tools", _ANY),
    ("tools", _ANY, "enabled"),
    ("tools", _ANY, "rootDir"),
)
_SESSION: tuple[Key, ...] = (
    *((name,) for name in ("staleMinutes", "maxTurnsPerSession", "tierTwoThresholdTokens", "contextStrategy")),
    ("layers", _ANY),
    ("planner", _ANY),
    ("wiki", "dirs", _ANY),
)
_FREE: tuple[Key, ...] = (
    *(("agent", *key) for key in _AGENT),
    *(("session", *key) for key in _SESSION),
    *(("agents", _ANY, *key) for key in (*_AGENT, *_SESSION, ("description",))),
)
_MODEL_FILES = (".gguf", ".json", ".yaml", ".yml", ".toml", ".py", ".bin")
DEFAULT_TOOL_TIMEOUT_S = 120


def waiting(data: Mapping[str, Any], base: Path) -> Iterator[tuple[Key, Any, str]]:
    """The values of a project's file that wait for the user's word: where each stands, and what it is."""
    for key, value in _leaves(data, ()):
        if key[0] != "app" and (what := _concern(tuple(camel(part) for part in key), value, base)):
            yield with_owner(key), value, what


def with_owner(key: Key) -> Key:
    """Where a value stands that can be left out: a source without its content is none."""
    places = [place for place, part in enumerate(key) if part == "sources" and key[place - 1] == "context"]
    return key[: places[0] + 2] if places else key


def _leaves(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(part, (*key, str(name)))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(part, (*key, str(index)))
    elif value is not None and value != {}:
        yield key, value


def _concern(key: Key, value: Any, base: Path) -> str:
    """Why a value is not simply taken; "" when it is."""
    if not any(_matches(known, key) for known in _FREE):
        return "setting"
    match key[-1]:
        case "provider" if value in IN_PROCESS:
            return "provider that plays a file"
        case "model" if _names_file(str(value), base):
            return "model from a file"
        case "enabled" if "tools" in key and value is not False:
            return "tool that is turned on"
        case "toolTimeout" if isinstance(value, int | float) and value > DEFAULT_TOOL_TIMEOUT_S:
            return "longer time-out"
        case "parallelToolCalls" if value is not False:
            return "setting"
        case "file" if _is_secret(str(value), base):
            return "file that may hold secrets"
    if key[-2:-1] == ("patterns",) and _is_secret(str(value), base):
        return "file that may hold secrets"
    if key[-2:-1] == ("tools",) and value is not False:
        return "tool that is turned on"
    return ""


def _matches(known: Key, key: Key) -> bool:
    return len(known) == len(key) and all(part in (_ANY, name) for part, name in zip(known, key, strict=True))


def _names_file(model: str, base: Path) -> bool:
    """A model of a vendor has a name; one that is a file is whatever the project put there."""
    if model.startswith((".", "/", "~", "\\")) or model.casefold().endswith(_MODEL_FILES):
        return True
    try:
        return os.path.lexists(base / model)
    except ValueError:
        return True


def _is_secret(name: str, base: Path) -> bool:
    """By its name, and by what it leads to. What lies in `.git` is the user's clone, not the project's own."""
    try:
        real = os.path.realpath(base / name)
    except ValueError:
        return True
    names = (os.path.normpath(name), os.path.relpath(real, os.path.realpath(base)))
    return any(is_secret(path) or ".git" in map(fold, Path(path).parts) for path in names)
