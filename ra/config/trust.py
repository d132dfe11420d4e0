"""Decide what a project's file may run or reach: the user agrees by content, and one changed byte asks again.

`risky` says what needs the user's word, `never` what is not taken from a project at all, `without` is the rest.
`Trust` remembers the word, by hashes of the configuration's part, of every file that it names, and of what those load.
"""

import hashlib
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ra.config import private
from ra.context.settings import STRATEGIES
from ra.core.redaction import MIN_SECRET, redacted
from ra.core.settings import camel
from ra.core.value import Value
from ra.system.agreed import digest_of
from ra.system.environment import holds_secret

Key = tuple[str, ...]

FILE = "trust.json"  # in the data directory

# Where a request goes, with which key, and who watches over it: these are the user's, in the user's own file.
NEVER = frozenset(
    {
        "baseurl",
        "apikey",
        "proxy",
        "proxies",
        "httpproxy",
        "httpsproxy",
        "sandbox",
        "autoapprove",
        "autoapproval",
        "skippermissions",
    }
)

BUILD_FILES = ("Makefile", "makefile", "GNUmakefile", "package.json", "justfile", "Justfile")
"""What make, npm and the like run without being told its name; see `reach.BUILDS`."""


class TrustItem(Value, frozen=True):
    """One thing that needs the user's word: its place in the file, what it would do, and the files that would run."""

    kind: str
    key: Key
    what: str
    value: str = ""
    files: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return f"{'.'.join(self.key)}: {self.kind} {self.what}".encode("utf-8", "backslashreplace").decode()


def risky(data: Mapping[str, Any], *, base: Path, root: Path) -> tuple[TrustItem, ...]:
    """What of a project's file waits for the user's word. `base` is its folder; keys in camelCase or snake_case."""
    from ra.config import free  # for who has a project's file

    items = list(running(data, base=base, root=root))
    named = {item.key for item in items}
    for at, value, what in free.waiting(data, base):
        if not any(at[:length] in named for length in range(1, len(at) + 1)):
            items.append(TrustItem(what, at, str(value), _json(value)))
    return tuple(items)


def running(data: Mapping[str, Any], *, base: Path, root: Path) -> tuple[TrustItem, ...]:
    """What a file would run or reach, whosever it is."""
    finder = _Finder(base, root)
    agent, session = _part(data, "agent"), _part(data, "session")
    items = [*finder.agent(("agent",), agent), *finder.session(("session",), session)]
    for name, own in _part(data, "agents").items():
        if isinstance(own, Mapping):
            key = ("agents", str(name))
            items += [*finder.agent(key, own), *finder.session(key, own)]
            if handler := own.get("handler"):
                items.append(finder.code("agent handler", (*key, "handler"), handler))
    return tuple(items)


def server(key: Key, settings: Mapping[str, Any], base: Path, root: Path) -> TrustItem:
    """What starting one MCP server would run, or reach.

    Most are programs of elsewhere: then the files of the project are not looked through, which would cost every start.
    """
    words = [str(settings.get("command") or ""), *map(str, settings.get("args") or ())]
    names = [*re.split(r"[\s\"'`;&|()<>=:,]+", " ".join(words)), *words, *BUILD_FILES]
    names_none = not any(os.path.isfile(_joined(folder, name)) for name in names for folder in {base, root})  # noqa: PTH113 - any text
    if names_none and "-m" not in words and not any(" -m" in word for word in words):
        what = " ".join(words).strip() or str(settings.get("url") or "")
        return TrustItem("MCP server", key, f"{settings.get('name')}: {what}", _json(settings))
    return _Finder(base, root).server(key, settings)


def planted(data: Mapping[str, Any], file: Path) -> tuple[TrustItem, ...]:
    """All of a file that another user has put there; root is believed."""
    try:
        owner = os.stat(file).st_uid  # noqa: PTH116 - a name that cannot be one is no owner's
    except (OSError, ValueError):
        return ()
    if owner in (os.geteuid(), 0):
        return ()
    return tuple(
        TrustItem(f"set by another user (uid {owner})", (name,), "", _json(part)) for name, part in data.items()
    )


def revealing(
    data: Mapping[str, Any], variables: Mapping[Key, Sequence[tuple[str, str]]], *, known: Sequence[TrustItem]
) -> tuple[TrustItem, ...]:
    """Where the file would put a part of the environment, except inside what is asked about anyway."""
    from ra.config.free import with_owner  # as above

    asked_keys = {item.key for item in known}
    return tuple(
        TrustItem(
            "of your environment",
            with_owner(key),
            " ".join(f"${{{name}}}" for name, _ in pairs),
            _json([n for n, _ in pairs]),
        )
        for key, pairs in variables.items()
        if not any(key[:length] in asked_keys for length in range(1, len(key) + 1))
        and key[0] in data
        and key[0] != "app"
    )


def guarded(files: Sequence[str], root: Path) -> tuple[str, ...]:
    """The paths of the project that must not be written if these files are to run as they are, by all their names."""
    if not files:
        return ()
    from ra.config.reach import closed, inside

    top = os.path.realpath(root)
    names = (name for file in files for name in (os.path.normpath(file), _real(Path("/"), file)))
    existing = (file for file in files if os.path.lexists(file))
    return tuple(dict.fromkeys((*(name for name in names if inside(name, top)), *closed(existing, top))))


def masked(items: Iterable[TrustItem], secrets: Iterable[tuple[str, str]]) -> tuple[TrustItem, ...]:
    """The items as they may be shown and kept: with the names of secrets, not their values."""
    masked_items = tuple(items)
    for name, value in sorted(set(secrets), key=lambda pair: -len(pair[1])):
        if not holds_secret(name, value) and len(value) < MIN_SECRET:
            continue
        masked_items = tuple(
            msgspec.structs.replace(item, what=item.what.replace(value, f"${{{name}}}")) for item in masked_items
        )
    return tuple(msgspec.structs.replace(item, what=redacted(item.what)) for item in masked_items)


def never(data: Mapping[str, Any]) -> tuple[Key, ...]:
    """The keys that are not taken from a project's file, trusted or not: `app`, base URLs, keys, proxies, sandbox."""
    found: list[Key] = [("app", str(name)) for name in _part(data, "app")]
    waiting: list[tuple[Key, Any]] = [((str(name),), value) for name, value in data.items() if name != "app"]
    while waiting:
        key, value = waiting.pop(0)
        if key[-1].replace("_", "").replace("-", "").lower() in NEVER:
            found.append(key)
        elif camel(key[-1]) in ("sources", "mcpServers", "systemPrompt"):
            continue  # names and texts of the user's own; servers are asked about as a whole
        elif isinstance(value, Mapping):
            waiting += [((*key, str(name)), part) for name, part in value.items()]
    return tuple(found)


def without(data: Mapping[str, Any], keys: Iterable[Key]) -> dict[str, Any]:
    """The configuration without these parts; lists close up behind them, and a budget goes with its last source."""
    removed_keys = set(keys)

    def keep(value: Any, key: Key) -> Any:
        if isinstance(value, Mapping):
            left = {
                name: keep(v, (*key, str(name))) for name, v in value.items() if (*key, str(name)) not in removed_keys
            }
            if value.get("sources") and not left.get("sources"):
                left.pop("sourceBudget", None)
            return left
        if isinstance(value, list | tuple):
            return [keep(v, (*key, str(i))) for i, v in enumerate(value) if (*key, str(i)) not in removed_keys]
        return value

    rest: dict[str, Any] = keep(data, ())
    return rest


class _Finder:
    def __init__(self, base: Path, root: Path) -> None:
        self.base = base
        self.root = Path(os.path.realpath(root))

    def agent(self, key: Key, data: Mapping[str, Any]) -> Iterator[TrustItem]:
        for hook, hooks in _part(data, "middleware").items():
            for place, hook_item in _each(hooks, (*key, "middleware", str(hook))):
                yield self.hook(place, hook_item)
        context, at = _part(data, "context"), (*key, "context")
        for place, resolver in _each(context.get("resolvers"), (*at, "resolvers")):
            if path := _of(resolver, "path"):
                yield self.code("resolver", place, path, resolver)
        for name, source in _part(context, "sources").items():
            yield from self.source((*at, "sources", str(name)), source)
        for place, rule in _each(_part(data, "permissions").get("rules"), (*key, "permissions", "rules")):
            if _of(rule, "allow") is not None or not isinstance(rule, Mapping):
                yield TrustItem("allow rule", place, str(_of(rule, "allow") or rule), _json(rule))
        tools = _part(data, "tools")
        for place, path in _each(tools.get("custom"), (*key, "tools", "custom")):
            yield self.code("custom tool", place, path)
        for name, tool in tools.items():
            at, folder = (*key, "tools", str(name)), _of(tool, "rootDir") or _of(tool, "root_dir")
            if name != "custom" and folder and self.outside(folder):
                yield TrustItem("tool that may leave the project", at, str(folder), _json(tool))
            elif variables := _of(tool, "env"):
                yield TrustItem("variables for commands", at, str(variables), _json(tool))
        servers = "mcpServers" if "mcpServers" in data else "mcp_servers"
        for place, server in _each(data.get(servers), (*key, servers)):
            yield self.server(place, server)

    def session(self, key: Key, data: Mapping[str, Any]) -> Iterator[TrustItem]:
        for name in ("contextStrategy", "context_strategy"):
            strategy = data.get(name)
            if strategy is not None and strategy not in STRATEGIES:
                yield self.code("strategy", (*key, name), strategy)
        for place, folder in _each(_part(data, "wiki").get("dirs"), (*key, "wiki", "dirs")):
            if self.outside(folder, of_project=True):
                yield TrustItem("wiki outside the project", place, str(folder), _json(folder))

    def hook(self, key: Key, hook: Any) -> TrustItem:
        command = _of(hook, "shell")
        if command is not None:
            return TrustItem("command", key, str(command), _json(hook), self.shell(str(command)))
        return self.code("middleware", key, hook)

    def source(self, key: Key, source: Any) -> Iterator[TrustItem]:
        if command := _of(source, "command"):
            yield TrustItem("command", key, str(command), _json(source), self.shell(str(command)))
        elif code := _of(source, "python"):
            yield self.code("source", key, code, source)
        elif (file := _of(source, "file")) and self.outside(file):
            yield TrustItem("file outside the project", key, str(file), _json(source))

    def server(self, key: Key, server: Any) -> TrustItem:
        command = " ".join([str(_of(server, "command") or ""), *map(str, _of(server, "args") or ())]).strip()
        what = command or str(_of(server, "url") or "")
        return TrustItem("MCP server", key, f"{_of(server, 'name')}: {what}", _json(server), self.started(command))

    def code(self, kind: str, key: Key, ref: Any, value: Any = None) -> TrustItem:
        path = str(ref).rpartition(".py:")[0] + ".py" if ".py:" in str(ref) else str(ref)
        full = os.path.join(self.base, os.path.expanduser(path))  # noqa: PTH111, PTH118 - any text may stand here
        return TrustItem(kind, key, str(ref), _json(ref if value is None else value), self.with_loaded((full,)))

    def started(self, command: str, without: Container[str] = ()) -> tuple[str, ...]:
        """The files of the project that a command names, also inside a string for another shell, and what they load."""
        import shlex  # like json below: most projects name no command

        from ra.config.reach import BUILDS, inside, module

        try:
            words = shlex.split(command)
        except ValueError:
            words = []
        words += re.split(r"[\s\"'`;&|()<>=:,]+", command)
        words = [word for word in words if word not in without]
        words += [name for word in words for name in BUILDS.get(word.rpartition("/")[2], ())]
        places = [(folder, word) for word in dict.fromkeys(words) for folder in (self.base, self.root)]
        files = [
            path
            for folder, word in places
            for path in (_joined(folder, word), _real(folder, word))
            if (os.path.isfile(path) or _to_come(word, path)) and inside(path, str(self.root))  # noqa: PTH113 - as below
        ]
        for name in re.findall(r"\s-m[\s=]*([\w.]+)", command):
            files += module(str(self.root), name)
        return self.with_loaded(files)

    def shell(self, command: str) -> tuple[str, ...]:
        """The same of a command that a shell reads: there, `>` is no word."""
        from ra.config.reach import written

        return self.started(command, without=written(command))

    def with_loaded(self, files: Iterable[str]) -> tuple[str, ...]:
        from ra.config.reach import reach  # most projects run nothing

        return reach(files, str(self.root))

    def outside(self, path: Any, *, of_project: bool = False) -> bool:
        """`of_project`: the path is relative to the project, not to the file that names it."""
        full = _real(self.root if of_project else self.base, os.path.expanduser(str(path)))  # noqa: PTH111 - any text may stand here
        return not Path(full).is_relative_to(self.root)


class Trust:
    """The user's word, in a file of the data directory that only the user can read and write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ask_for(
        self, project: Path, items: Sequence[TrustItem], digests: dict[str, str] | None = None
    ) -> tuple[TrustItem, ...]:
        """What the user has not agreed to yet, or what has changed since. Raises UserError for an unusable file.

        `digests` gets the hash of each file by which that was decided.
        """
        agreed = self._read().get(private.name_of(project), {})
        return tuple(item for item in items if fingerprint(item, digests) not in agreed)

    def record(self, project: Path, items: Sequence[TrustItem]) -> None:
        """The user agrees to these, as they are now. What was agreed to before still is: it may be another file's."""
        projects = self._read()
        projects.setdefault(private.name_of(project), {}).update({fingerprint(item): item.line for item in items})
        private.write(self.path, projects)

    def revoke(self, project: Path) -> bool:
        """Forget a project; False when it was not known."""
        projects = self._read()
        was_trusted = projects.pop(private.name_of(project), None) is not None
        if was_trusted:
            private.write(self.path, projects)
        return was_trusted

    def list(self) -> dict[str, tuple[str, ...]]:
        """Every project with what is trusted in it."""
        return {project: tuple(sorted(set(items.values()))) for project, items in sorted(self._read().items())}

    def _read(self) -> dict[str, dict[str, str]]:
        return private.read(self.path, dict[str, dict[str, str]], again="run `ra trust` again") or {}


def fingerprint(item: TrustItem, digests: dict[str, str] | None = None) -> str:
    """A hash over what the item says and every byte of every file that would run, which are hashed once."""
    digests = {} if digests is None else digests
    digest = hashlib.sha256(_json([item.kind, item.key, item.value]).encode())
    for file in item.files:
        if file not in digests:
            digests[file] = digest_of(file)
        digest.update(f"\0{file}\0{digests[file]}".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _to_come(word: str, path: str) -> bool:
    """Whether a command names a file that is not there yet: what the model put there would run as agreed to."""
    from ra.config.reach import CODE

    is_name = "/" in word or os.path.splitext(word)[1] in CODE  # noqa: PTH122 - any text may stand here
    return is_name and re.fullmatch(r"[\w.+-]*(/[\w.@+-]+)*", word) is not None and not os.path.lexists(path)


def _real(folder: Path, name: str) -> str:
    """The path behind a name; empty for text that can be none."""
    try:
        return os.path.realpath(os.path.join(folder, name))  # noqa: PTH118 - any text may stand here
    except ValueError:
        return ""


def _joined(folder: Path, name: str) -> str:
    """The path as it is written; empty for text that can be none."""
    return "" if "\0" in name else os.path.normpath(os.path.join(folder, name))  # noqa: PTH118 - any text may stand here


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _each(values: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(values, list | tuple):
        for index, value in enumerate(values):
            yield (*key, str(index)), value
    elif values is not None:  # a single one without a list is refused later; here it must not slip through
        yield key, values


def _json(value: Any) -> str:
    import json  # escapes what msgspec refuses: YAML can spell a lone surrogate

    return json.dumps(value, sort_keys=True, default=str)
