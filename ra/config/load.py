"""What did the user ask for? Layers of configuration, later ones winning, each value with its origin."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ra.agent.settings import NO_AGENTS, AgentSettings, SessionSettings, check_strategy
from ra.config import guards, paths, schema, sense, trust, yamlfile
from ra.config.settings import Config
from ra.config.yamlfile import Layer, Origin, Path_
from ra.context.settings import ContextSettings
from ra.core.errors import ConfigError, UsageError
from ra.core.settings import camel, snake

DEFAULT = Origin("default", kind="default")

# Keys that hold paths: a file's own are relative to that file, a flag's to the working directory.
_OF_AGENT: tuple[Path_, ...] = (
    ("middleware", "*", "*"),
    ("context", "resolvers", "*", "path"),
    ("context", "sources", "*", "file"),
    ("context", "sources", "*", "python"),
    ("tools", "custom", "*"),
)
_OF_SESSION: tuple[Path_, ...] = (("contextStrategy",), ("wiki", "dirs", "*"))
_PATHS: tuple[Path_, ...] = (
    *(("agent", *path) for path in _OF_AGENT),
    *(("session", *path) for path in _OF_SESSION),
    *(("agents", "*", *path) for path in (*_OF_AGENT, *_OF_SESSION, ("handler",))),
)


class Resolved(msgspec.Struct, frozen=True):
    """The configuration, and where each value came from."""

    config: Config
    data: dict[str, Any]
    origins: dict[Path_, Origin]
    files: tuple[Path, ...]
    cwd: Path
    root: Path  # the git root, or the working directory
    data_dir: Path
    items: tuple[trust.Item, ...] = ()  # what the project's files would run or reach
    untrusted: tuple[trust.Item, ...] = ()  # those of them that are left out, because nobody agreed to them
    notes: tuple[str, ...] = ()  # what else was left out
    runs: tuple[str, ...] = ()  # files and folders of the project that ra would run or obey, whoever named them


def resolve(
    *,
    cwd: Path,
    env: Mapping[str, str],
    config_file: Path | None = None,
    assignments: Iterable[str] = (),
    flags: Mapping[str, Any] | None = None,
    agent: str | None = None,
    trusting: bool = False,
) -> Resolved:
    """defaults < user file < project files < --config < --set and flags; then the named agent's own keys.

    What a project's file may run or reach is left out until the user has agreed to it; `trusting` takes it all.
    """
    root = paths.git_root(cwd) or cwd
    user = paths.user_file(env)
    files = [(user, "user")] if os.path.lexists(user) else []
    files += [(path, "project") for path in paths.project_files(cwd) if path != user]
    if config_file is not None:
        files.append((config_file, "config"))
    layers = [yamlfile.read(path, env, kind=kind) for path, kind in files]
    layers += [assigned(text, env) for text in assignments]
    layers.append(flagged(flags or {}))
    layers = [_checked(layer) for layer in layers]
    where = paths.data_dir(env, _configured_data_dir(layers))
    guard = _Guard(root, trust.Trust(where / trust.FILE), trusting=trusting)
    data: dict[str, Any] = {}
    origins: dict[Path_, Origin] = {}
    for layer in layers:
        layer = _anchored(guard.admit(layer, cwd), cwd)
        if _of_project(layer):
            layer = Layer(guards.kept(layer.data, data), layer.origins)
        merge(data, origins, layer)
    sense.tidy_tools(data, lambda path: _origin(Layer(data, origins), path))
    for name, own in data.get("agents", {}).items():
        if "context" in own:
            both = msgspec.to_builtins(data.get("agent", {}).get("context", {}))  # a copy
            _merge(both, own["context"])
            _check_context(msgspec.convert(both, ContextSettings), origins, owner=f"agents.{name}")
    if agent is not None:
        _lay_agent(data, origins, agent)
    config = msgspec.convert(data, Config)
    _check_context(config.agent.context, origins)
    if config_file is not None:
        guard.named.append(str(cwd / config_file))
    return Resolved(
        config,
        data,
        origins,
        tuple(path for path, _ in files),
        cwd,
        root,
        where,
        items=tuple(guard.items),
        untrusted=guard.untrusted(),
        notes=tuple(guard.notes),
        runs=(*trust.guarded(guard.named, root), *paths.programs(env, root), *paths.obeyed_by_git(root)),
    )


class _Guard:
    """Lets of a project's file through what is harmless, and what the user has agreed to."""

    def __init__(self, root: Path, known: trust.Trust, *, trusting: bool) -> None:
        self.items: list[trust.Item] = []
        self.notes: list[str] = []
        self.named: list[str] = []  # files that would run, of every layer: who can write them is out of the box
        self._root = root
        self._known = known
        self._trusting = trusting

    def admit(self, layer: Layer, cwd: Path) -> Layer:
        if not _of_project(layer):
            own = trust.risky(layer.data, base=_base(layer.origins.get((), DEFAULT), cwd), root=self._root)
            self.named += (file for item in own for file in item.files)
            return layer
        origin = layer.origins[()]
        foreign = trust.never(layer.data)
        if foreign:
            named = ", ".join(".".join(key) for key in foreign)
            self.notes.append(f"{origin.name}: {named} is not taken from a project's file; put it into your own.")
        data = trust.without(layer.data, foreign)
        file = self._root / origin.name
        items = (*trust.planted(data, file), *trust.risky(data, base=file.parent, root=self._root))
        items = trust.masked((*items, *trust.revealing(data, layer.secrets, known=items)), layer.secrets.values())
        self.items += items
        self.named += (file for item in items for file in item.files)
        left_out = () if self._trusting else self._known.ask_for(self._root, items)
        return Layer(trust.without(data, [item.key for item in left_out]), layer.origins)

    def untrusted(self) -> tuple[trust.Item, ...]:
        return () if self._trusting else self._known.ask_for(self._root, self.items)


def _of_project(layer: Layer) -> bool:
    return layer.origins.get((), DEFAULT).kind == "project"


def _configured_data_dir(layers: Iterable[Layer]) -> str | None:
    """Needed before the project's files are let in; they have no say in it."""
    named = [layer.data.get("app", {}).get("dataDir") for layer in layers if not _of_project(layer)]
    return next((name for name in reversed(named) if name), None)


def assigned(text: str, env: Mapping[str, str]) -> Layer:
    """`--set agent.compaction.threshold=0.8`: the value is read as YAML."""
    key, equals, value = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise UsageError(f"--set {text!r}: write --set key.path=value, such as --set agent.maxCost=0.50.")
    name = f"--set {key.strip()}"
    try:
        inner = yamlfile.parse(f"value: {value.strip() or 'null'}", name=name, env=env, kind="flag")
    except ConfigError as error:
        if "this is no YAML" not in str(error):
            raise
        raise UsageError(f"{error} Text with such signs goes into quotes: {name}='\"…\"'") from error
    return _nested(path, inner.data["value"], Origin(name, kind="flag"))


def flagged(flags: Mapping[str, Any]) -> Layer:
    """Flags of the command line: dotted key → value."""
    data: dict[str, Any] = {}
    origins: dict[Path_, Origin] = {}
    for key, (value, flag) in flags.items():
        layer = _nested(tuple(key.split(".")), value, Origin(flag, kind="flag"))
        merge(data, origins, layer)
    return Layer(data, origins)


def _nested(path: Path_, value: Any, origin: Origin) -> Layer:
    for part in reversed(path):
        value = {part: value}
    return Layer(value, {path[: n + 1]: origin for n in range(len(path))})


def _checked(layer: Layer) -> Layer:
    """The layer with camelCase keys and legal values, its origins renamed along."""

    def place(path: Path_) -> Origin:
        return _origin(layer, path)

    data = schema.tidy(layer.data, Config, place)
    for name, agent in data.get("agents", {}).items():
        data["agents"][name] = _checked_agent(agent, name, place)
    for key in (("session",), *(("agents", name) for name in data.get("agents", {}))):
        _check_strategy(data, (*key, "contextStrategy"), place)
    sense.check(data, place)
    secrets = {_camel(path): secret for path, secret in layer.secrets.items()}
    return Layer(data, {_camel(path): origin for path, origin in layer.origins.items()}, secrets)


def _origin(layer: Layer, path: Path_) -> Origin:
    """Who set a value: the nearest of what it lies in that the layer knows."""
    return next((layer.origins[path[:n]] for n in range(len(path), -1, -1) if path[:n] in layer.origins), DEFAULT)


def _check_strategy(data: dict[str, Any], key: Path_, place: schema.Place) -> None:
    value: Any = data
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        check_strategy(value, place=f"{place(key)}: {'.'.join(key)}")


def _check_context(context: ContextSettings, origins: Mapping[Path_, Origin], owner: str = "agent") -> None:
    """A composition that cannot be is refused where it is written, not when it is first used."""
    if context.source_budget is None and not context.sources and not context.must_keep:
        return
    from ra.context.compaction.guard import Guard
    from ra.context.sources import from_settings  # with what cuts and counts, for the few who compose

    def content(_: str = "") -> str:
        return ""

    try:
        Guard(context.must_keep)
        from_settings(context, read=content, run=content, load=lambda _: content, timeline=content)
    except ConfigError as error:
        places = {".".join(path): origin for path, origin in origins.items()}
        said = owner + str(error).removeprefix("agent")
        key = max((key for key in places if said.startswith(key)), key=len)
        raise ConfigError(f"{places[key]}: {said}") from error


def _checked_agent(agent: Any, name: str, place: schema.Place) -> dict[str, Any]:
    """A named agent has any key of `agent` and of `session`, and a `handler`."""
    path = ("agents", name)
    if not isinstance(agent, dict):
        raise ConfigError(f"{place(path)}: agents.{name} is {schema.shown(agent)}; it must be a mapping.")
    known = schema.fields(AgentSettings) | schema.fields(SessionSettings) | {"handler": str, "description": str}
    clean: dict[str, Any] = {}
    for key, value in agent.items():
        found = next((name for name in known if key in {name, snake(name)}), None)
        if found is None:
            raise ConfigError(f"{place((*path, key))}: unknown key agents.{name}.{key}; {schema.hint(key, known)}.")
        clean[found] = schema.tidy(value, known[found], place, (*path, key))
    return clean


def _lay_agent(data: dict[str, Any], origins: dict[Path_, Origin], name: str) -> None:
    """Lay a named agent's keys over `agent` and `session`; what a flag said stays."""
    agents = data.get("agents", {})
    if name not in agents:
        raise UsageError(f"No agent is named {name!r}. Known agents: {', '.join(sorted(agents)) or NO_AGENTS}.")
    session_keys = schema.fields(SessionSettings)
    for key, value in agents[name].items():
        if key in {"handler", "description"}:
            continue
        path = ("session" if key in session_keys else "agent", key)
        if origins.get(path, DEFAULT).kind != "flag":
            origin = next((origins[p] for p in (("agents", name, key), ("agents", name)) if p in origins), DEFAULT)
            if origin.kind == "project":
                value = guards.tightened({key: value}, data.get("agent", {}))[key]
            merge(data, origins, _nested(path, value, origin))


def _anchored(layer: Layer, cwd: Path) -> Layer:
    """The layer with absolute paths, so that nobody below needs to know which file said what."""

    def walk(value: Any, path: Path_) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*path, str(index))) for index, item in enumerate(value)]
        if isinstance(value, str) and _is_path(path, value):
            return str(_base(_origin(layer, path), cwd) / Path(value).expanduser())
        return value

    return Layer(walk(layer.data, ()), layer.origins)


def _base(origin: Origin, cwd: Path) -> Path:
    """Where the paths that somebody wrote start."""
    return (cwd / origin.name).parent if origin.kind in ("user", "project", "config", "file") else cwd


def _is_path(path: Path_, value: str) -> bool:
    for known in _PATHS:
        if len(known) == len(path) and all(a in ("*", b) for a, b in zip(known, path, strict=True)):
            return path[-1] != "contextStrategy" or value.endswith(".py") or "/" in value
    return False


def merge(data: dict[str, Any], origins: dict[Path_, Origin], layer: Layer) -> None:
    """Lay `layer` over `data`: mappings are merged, everything else is replaced."""
    _merge(data, layer.data)
    origins.update(layer.origins)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = value


def _camel(path: Path_) -> Path_:
    """Keys that users name themselves (agents, providers, sources) keep their underscores."""
    free = {("agents",): 1, ("app", "prices"): 2, ("app", "providers"): 2, ("agent", "context", "sources"): 3}
    named = next((depth for head, depth in free.items() if path[: len(head)] == head), None)
    return tuple(part if index == named else camel(part) for index, part in enumerate(path))
