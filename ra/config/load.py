"""Loads the configuration: layers, of which later ones win, and the origin of each value."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ra.config import check, guards, paths, trust, yamlfile
from ra.config.settings import Config
from ra.config.yamlfile import Layer, Origin, Path_
from ra.context.settings import ContextSettings, SessionSettings
from ra.core.errors import ConfigError, UsageError
from ra.core.redaction import redacted
from ra.core.settings import camel, snake
from ra.session.settings import NO_AGENTS, AgentSettings, BudgetSettings, check_strategy
from ra.system.agreed import agreed
from ra.system.environment import secrets_in

DEFAULT = Origin("default", kind="default")

# Keys that hold paths: a file's own are relative to that file, a flag's to the working directory.
_OF_AGENT: tuple[Path_, ...] = (
    ("middleware", "*", "*"),
    ("context", "resolvers", "*", "path"),
    ("context", "sources", "*", "file"),
    ("context", "sources", "*", "python"),
    ("tools", "custom", "*"),
)
_WIKI = ("wiki", "dirs", "*")  # relative to the project, whichever file names them
_OF_SESSION: tuple[Path_, ...] = (("contextStrategy",), _WIKI)
_PATHS: tuple[Path_, ...] = (
    *(("agent", *path) for path in _OF_AGENT),
    *(("session", *path) for path in _OF_SESSION),
    *(("agents", "*", *path) for path in (*_OF_AGENT, *_OF_SESSION, ("handler",))),
)


class Resolved(msgspec.Struct, frozen=True):
    """The configuration, and the origin of each value."""

    config: Config
    data: dict[str, Any]
    origins: dict[Path_, Origin]
    files: tuple[Path, ...]
    cwd: Path
    root: Path  # the git root, or the working directory
    data_dir: Path
    items: tuple[trust.TrustItem, ...] = ()  # what the project's files would run or reach
    untrusted: tuple[trust.TrustItem, ...] = ()  # the items that are left out because the user has not agreed to them
    waiting: tuple[trust.TrustItem, ...] = ()  # what other programs' files of the project name; unused until agreed to
    notes: tuple[str, ...] = ()  # notes on what else was left out
    runs: tuple[str, ...] = ()  # files and folders of the project that ra would run or obey, whichever file names them


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

    Whatever a project's file would run or reach is left out until the user has agreed to it; `trusting` accepts all.
    """
    redacted.register(*secrets_in(env))
    root = paths.git_root(cwd) or cwd
    user = paths.user_file(env)
    of_user = (user.with_name(paths.AGENTX_NAME), user)
    files = [(path, "user") for path in of_user if os.path.lexists(path)]
    files += [(path, "project") for path in paths.project_files(cwd) if path not in of_user]
    if config_file is not None:
        files.append((config_file, "config"))
    notes: list[str] = []
    layers = [_known(yamlfile.read(path, env, kind=kind), path, notes) for path, kind in files]
    layers += [assigned(text, env) for text in assignments]
    layers.append(flagged(flags or {}))
    layers = [_checked(layer) for layer in layers]
    redacted.register(*(secret for layer in layers for secret in secrets_in(layer.data)))
    where = paths.data_dir(env, _configured_data_dir(layers))
    guard = _Guard(root, trust.Trust(where / trust.FILE), trusting=trusting)
    data: dict[str, Any] = {}
    origins: dict[Path_, Origin] = {}
    for layer in layers:
        layer = _anchored(guard.admit(layer, cwd), cwd, root)
        if _of_project(layer):
            layer = Layer(guards.kept(layer.data, data), layer.origins)
        merge(data, origins, layer)
    check.tidy_tools(data, lambda path: _origin(Layer(data, origins), path))
    for name, own in data.get("agents", {}).items():
        if "context" in own:
            merged_context = msgspec.to_builtins(data.get("agent", {}).get("context", {}))  # a copy
            _merge(merged_context, own["context"])
            _check_context(msgspec.convert(merged_context, ContextSettings), origins, owner=f"agents.{name}")
    if agent is not None:
        _lay_agent(data, origins, agent)
    waiting = _add_servers(data, origins, guard, cwd, env)
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
        untrusted=guard.untrusted(waiting),
        waiting=waiting,
        notes=(*notes, *guard.notes),
        runs=(*trust.guarded(guard.named, root), *paths.programs(env, root), *_obeyed(root, env)),
    )


def _obeyed(root: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    configs, scripts = paths.git_configs(root, env), paths.start_files(root)
    if not configs and not scripts:
        return ()
    from ra.config.obeyed import obeyed  # start-up time: most projects need none of this

    return obeyed(root, configs, scripts)


class _Guard:
    """Filters a project's file: only harmless keys and what the user has agreed to pass."""

    def __init__(self, root: Path, known: trust.Trust, *, trusting: bool) -> None:
        self.items: list[trust.TrustItem] = []
        self.notes: list[str] = []
        self.named: list[str] = []  # files that would run, of every layer: who can write them is out of the box
        self.root = root
        self._known = known
        self._trusting = trusting

    def admit(self, layer: Layer, cwd: Path) -> Layer:
        if not _of_project(layer):
            own_items = trust.running(layer.data, base=_base(layer.origins.get((), DEFAULT), cwd), root=self.root)
            self.named += (file for item in own_items for file in item.files)
            return layer
        origin = layer.origins[()]
        foreign = trust.never(layer.data)
        if foreign:
            named = ", ".join(".".join(key) for key in foreign)
            self.notes.append(f"{origin.name}: {named} cannot be set in a project's file; set it in your own.")
        data = trust.without(layer.data, foreign)
        file = self.root / origin.name
        planted = trust.planted(data, file)
        risky = trust.risky(data, base=file.parent, root=self.root)
        items = (*planted, *(item for item in risky if item.files or not planted))
        items = (*items, *trust.revealing(data, layer.variables, known=items))
        items = trust.masked(items, (pair for pairs in layer.variables.values() for pair in pairs))
        self.items += items
        self.named += (file for item in items for file in item.files)
        rest = trust.without(data, [item.key for item in self.new(items)])
        return Layer(rest, {path: origin for path, origin in layer.origins.items() if _holds(rest, path)})

    def new(self, items: Sequence[trust.TrustItem]) -> tuple[trust.TrustItem, ...]:
        """The items that the user has not agreed to. For the others, the bytes that were hashed are those that run."""
        digests: dict[str, str] = {}
        unknown = self._known.ask_for(self.root, items, digests)
        new_items = () if self._trusting else unknown
        for item in items:
            if item not in new_items and item.files:
                agreed.register(item.what, {file: digests[file] for file in item.files}, root=str(self.root))
        return new_items

    def untrusted(self, waiting: Sequence[trust.TrustItem]) -> tuple[trust.TrustItem, ...]:
        """The waiting items of `ra.yaml`: these must not be left out silently."""
        return self.new([item for item in self.items if item not in waiting])


def _add_servers(
    data: dict[str, Any], origins: dict[Path_, Origin], guard: _Guard, cwd: Path, env: Mapping[str, str]
) -> tuple[trust.TrustItem, ...]:
    """Append the servers of `.mcp.json` files to those of ra.yaml. Returns the ones that wait for consent."""
    folders, settings_folder = paths.project_folders(cwd), paths.user_file(env).parent
    if not any(os.path.lexists(path) for path in paths.mcp_files(folders, settings_folder)):
        return ()
    from ra.config import mcp_json  # start-up time: most projects have none

    files = mcp_json.read(folders, guard.root, settings_folder)
    items = [server.item for server in files.servers if server.item is not None]
    guard.items += items
    guard.named += (file for item in items for file in item.files)
    guard.notes += files.notes
    waiting = guard.new(items)
    servers = data.setdefault("agent", {}).setdefault("mcpServers", [])
    names = {server.get("name") for server in servers}
    for server in files.servers:
        if server.item in waiting or server.name in names:
            continue
        try:
            servers.append(mcp_json.expanded(server, env))
            origins.setdefault(("agent", "mcpServers"), Origin(server.file, kind="file"))
        except ValueError as error:
            guard.notes.append(str(error))
    return waiting


def _of_project(layer: Layer) -> bool:
    return layer.origins.get((), DEFAULT).kind == "project"


def _configured_data_dir(layers: Iterable[Layer]) -> str | None:
    """The data directory, needed before the project's files are read; they cannot set it."""
    named = [layer.data.get("app", {}).get("dataDir") for layer in layers if not _of_project(layer)]
    return next((name for name in reversed(named) if name), None)


def assigned(text: str, env: Mapping[str, str]) -> Layer:
    """The layer of `--set agent.compaction.threshold=0.8`. The value is read as YAML."""
    key, equals, value = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise UsageError(f"--set {text!r}: write --set key.path=value, such as --set agent.maxCost=0.50.")
    name = f"--set {key.strip()}"
    try:
        inner = yamlfile.parse(f"value: {value.strip() or 'null'}", name=name, env=env, kind="flag")
    except ConfigError as error:
        if "this is not valid YAML" not in str(error):
            raise
        raise UsageError(f"{error} Put such text in quotes: {name}='\"…\"'") from error
    return _nested(path, inner.data["value"], Origin(name, kind="flag"))


def flagged(flags: Mapping[str, Any]) -> Layer:
    """The layer of the command line's flags: dotted key → value."""
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


def _known(layer: Layer, path: Path, notes: list[str]) -> Layer:
    """The keys of an agentx.json that ra has. A note lists the others, which belong to another program."""
    foreign = [key for key in layer.data if key not in Config.__struct_fields__]
    if not foreign or path.name != paths.AGENTX_NAME:
        return layer
    notes.append(f"{path}: {', '.join(foreign)} are unknown to ra and are ignored.")
    data = {key: value for key, value in layer.data.items() if key not in foreign}
    origins = {key: origin for key, origin in layer.origins.items() if not key or key[0] not in foreign}
    variables = {key: names for key, names in layer.variables.items() if not key or key[0] not in foreign}
    return Layer(data, origins, variables)


def _checked(layer: Layer) -> Layer:
    """The layer with camelCase keys and legal values; origins are renamed with their keys."""

    def place(path: Path_) -> Origin:
        return _origin(layer, path)

    data = check.tidy(layer.data, Config, place)
    for name, agent in data.get("agents", {}).items():
        data["agents"][name] = _checked_agent(agent, name, place)
    for key in (("session",), *(("agents", name) for name in data.get("agents", {}))):
        _check_strategy(data, (*key, "contextStrategy"), place)
    check.check(data, place)
    variables = {_camel(path): pairs for path, pairs in layer.variables.items()}
    return Layer(data, {_camel(path): origin for path, origin in layer.origins.items()}, variables)


def _holds(data: Any, path: Path_) -> bool:
    for name in path:
        if not isinstance(data, Mapping) or name not in data:
            return False
        data = data[name]
    return True


def _origin(layer: Layer, path: Path_) -> Origin:
    """The origin of a value: its own, or that of the nearest mapping around it."""
    return next((layer.origins[path[:n]] for n in range(len(path), -1, -1) if path[:n] in layer.origins), DEFAULT)


def _check_strategy(data: dict[str, Any], key: Path_, place: check.FindOrigin) -> None:
    value: Any = data
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        check_strategy(value, place=f"{place(key)}: {'.'.join(key)}")


def _check_context(context: ContextSettings, origins: Mapping[Path_, Origin], owner: str = "agent") -> None:
    """Refuse impossible sources at load, with their place in the file, instead of on first use."""
    if context.source_budget is None and not context.sources and not context.must_keep:
        return
    from ra.context.compaction.must_keep import MustKeep
    from ra.context.compose.sources import check_settings  # start-up time: few configurations have sources

    try:
        MustKeep(context.must_keep)
        check_settings(context)
    except ConfigError as error:
        places = {".".join(path): origin for path, origin in origins.items()}
        message = owner + str(error).removeprefix("agent")
        key = max((key for key in places if message.startswith(key)), key=len)
        raise ConfigError(f"{places[key]}: {message}") from error


def _checked_agent(agent: Any, name: str, place: check.FindOrigin) -> dict[str, Any]:
    """Check a named agent: any key of `agent` and `session`, a `handler`, a `description` and a `budget`."""
    path = ("agents", name)
    if not isinstance(agent, dict):
        raise ConfigError(f"{place(path)}: agents.{name} is {check.shown(agent)}; it must be a mapping.")
    agent_keys = {"handler": str, "description": str, "budget": BudgetSettings}
    known_keys = check.fields(AgentSettings) | check.fields(SessionSettings) | agent_keys
    clean: dict[str, Any] = {}
    for key, value in agent.items():
        key_name = next((name for name in known_keys if key in {name, snake(name)}), None)
        if key_name is None:
            raise ConfigError(f"{place((*path, key))}: unknown key agents.{name}.{key}; {check.hint(key, known_keys)}.")
        clean[key_name] = check.tidy(value, known_keys[key_name], place, (*path, key))
    return clean


def _lay_agent(data: dict[str, Any], origins: dict[Path_, Origin], name: str) -> None:
    """Lay a named agent's keys over `agent` and `session`. Flags stay in force."""
    agents = data.get("agents", {})
    if name not in agents:
        raise UsageError(f"No agent is named {name!r}. Known agents: {', '.join(sorted(agents)) or NO_AGENTS}.")
    session_keys = check.fields(SessionSettings)
    for key, value in agents[name].items():
        if key in {"handler", "description", "budget"}:
            continue
        path = ("session" if key in session_keys else "agent", key)
        if origins.get(path, DEFAULT).kind != "flag":
            origin = next((origins[p] for p in (("agents", name, key), ("agents", name)) if p in origins), DEFAULT)
            if origin.kind == "project":
                value = guards.tightened({key: value}, data.get("agent", {}))[key]
            merge(data, origins, _nested(path, value, origin))


def _anchored(layer: Layer, cwd: Path, root: Path) -> Layer:
    """The layer with absolute paths, so that later steps need not know which file a path came from."""

    def walk(value: Any, path: Path_) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*path, str(index))) for index, item in enumerate(value)]
        if isinstance(value, str) and _is_path(path, value):
            base = root if path[-3:-1] == _WIKI[:2] else _base(_origin(layer, path), cwd)
            return str(base / Path(value).expanduser())
        return value

    return Layer(walk(layer.data, ()), layer.origins)


def _base(origin: Origin, cwd: Path) -> Path:
    """The folder to which the paths of an origin are relative."""
    return (cwd / origin.name).parent if origin.kind in ("user", "project", "config", "file") else cwd


def _is_path(path: Path_, value: str) -> bool:
    for known in _PATHS:
        if len(known) == len(path) and all(a in ("*", b) for a, b in zip(known, path, strict=True)):
            return path[-1] != "contextStrategy" or value.endswith(".py") or "/" in value
    return False


def merge(data: dict[str, Any], origins: dict[Path_, Origin], layer: Layer) -> None:
    """Lay `layer` over `data`: mappings are merged, other values are replaced."""
    _merge(data, layer.data)
    origins.update(layer.origins)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = value


def _camel(path: Path_) -> Path_:
    """The path in camelCase. Keys that users name themselves (agents, providers, sources) keep their underscores."""
    free = {("agents",): 1, ("app", "prices"): 2, ("app", "providers"): 2, ("agent", "context", "sources"): 3}
    named = next((depth for head, depth in free.items() if path[: len(head)] == head), None)
    return tuple(part if index == named else camel(part) for index, part in enumerate(path))
