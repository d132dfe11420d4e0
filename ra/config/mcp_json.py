"""Reads MCP servers from the files of other programs: `.mcp.json` of a project, `mcp.json` beside the user's ra.yaml.

A project's servers run programs, so they wait for the user's consent. Variables are expanded only after that.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ra.config import trust
from ra.core.text import shown
from ra.core.value import Value
from ra.system.files import owned_bytes

FILE = ".mcp.json"
USER_FILES = (".mcp.json", "mcp.json")  # in the folder of the user's own configuration

MAX_BYTES = 256 * 1024
MAX_SERVERS = 100

_TAKEN = ("command", "args", "env", "url", "headers", "timeout")
_UNDERSTOOD = {*_TAKEN, "type", "transport", "disabled", "enabled", "description", "serverUrl", "httpUrl"}
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::?-([^}]*))?\}")


class BrokenFile(ValueError):
    """A problem with a file or with a server in it."""


class McpEntry(Value, frozen=True):
    """A server as written in a file. `item` is what the user has to agree to; None for the user's own file."""

    name: str
    settings: dict[str, Any]
    file: str
    item: trust.TrustItem | None = None


class McpFiles(Value, frozen=True):
    servers: tuple[McpEntry, ...] = ()
    notes: tuple[str, ...] = ()


def read(folders: Sequence[Path], root: Path, settings_folder: Path) -> McpFiles:
    """The servers of all files, nearest first; the first server of a name wins. Starts nothing."""
    servers: dict[str, McpEntry] = {}
    notes: list[str] = []
    user_files = [settings_folder / name for name in USER_FILES]
    for path in (*(folder / FILE for folder in reversed(folders)), *user_files):
        if not os.path.lexists(path) or path.is_socket():
            continue
        is_own = path in user_files
        label = str(path) if is_own else shown(os.path.relpath(path, root))
        for name, settings in _servers(path, label, notes, None if is_own else root).items():
            if name in servers or len(servers) >= MAX_SERVERS:
                why = f"is also in {servers[name].file}" if name in servers else f"is beyond {MAX_SERVERS}"
                notes.append(f"{label}: the server {shown(name)} {why}; left out")
                continue
            item = None if is_own else trust.server((label, name), {"name": name, **settings}, path.parent, root)
            servers[name] = McpEntry(name, settings, label, item)
    return McpFiles(tuple(servers.values()), tuple(notes))


def expanded(server: McpEntry, env: Mapping[str, str]) -> dict[str, Any]:
    """A server's settings with variables expanded. Raises ValueError that names a missing variable."""
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match[1] not in env and match[2] is None:
            missing.append(match[1])
        return env.get(match[1]) or match[2] or ""

    def fill(part: Any) -> Any:
        if isinstance(part, str):
            return _VARIABLE.sub(value, part)
        if isinstance(part, dict):
            return {key: fill(inner) for key, inner in part.items()}
        return [fill(inner) for inner in part] if isinstance(part, list) else part

    settings = fill(server.settings)
    if missing:
        raise BrokenFile(f"{server.file}: the server {server.name} needs {missing[0]}, which is not set; left out")
    return {"name": server.name, **settings}


def _servers(path: Path, label: str, notes: list[str], root: Path | None) -> dict[str, dict[str, Any]]:
    try:
        document = _document(path, root)
    except (OSError, ValueError) as error:
        notes.append(f"{label}: {getattr(error, 'strerror', None) or error}; none of its servers is used")
        return {}
    # Claude Code, Cursor and others write `mcpServers`, VS Code `servers`; some write the servers alone.
    servers = document.get("mcpServers", document.get("servers", document))
    if not isinstance(servers, dict):
        notes.append(f"{label}: mcpServers must be an object with a server under each name; none is used")
        return {}
    read: dict[str, dict[str, Any]] = {}
    for name, written in servers.items():
        if servers is document and not isinstance(written, dict):
            continue  # `$schema` and the like
        try:
            read[name] = settings_of(written)
        except ValueError as error:
            notes.append(f"{label}: the server {shown(name)} {error}; left out")
            continue
        unknown = sorted(set(written) - _UNDERSTOOD)
        if unknown:
            notes.append(f"{label}: of the server {shown(name)}, {', '.join(map(shown, unknown))} is not used")
    return read


def _document(path: Path, root: Path | None) -> dict[str, Any]:
    content = owned_bytes(path, bounds=root, max_bytes=MAX_BYTES)
    try:
        document = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenFile(f"it is not valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise BrokenFile("it must be an object with mcpServers")
    return document


def settings_of(written: Any) -> dict[str, Any]:
    """The keys that ra has, checked. Raises ValueError."""
    if not isinstance(written, dict):
        raise BrokenFile("must be an object with a command or a url")
    settings = {key: written[key] for key in _TAKEN if written.get(key) is not None}
    for other in ("serverUrl", "httpUrl"):  # Windsurf and Gemini
        if "url" not in settings and "command" not in settings and written.get(other):
            settings["url"] = written[other]
    for key in ("command", "url"):
        if not isinstance(settings.get(key, ""), str):
            raise BrokenFile(f"has a {key} that is not text")
    if not settings.get("command") and not settings.get("url"):
        raise BrokenFile("has neither a command nor a url")
    if not _all_text(settings.get("args", []), list):
        raise BrokenFile("has args that are not a list of texts")
    for key in ("env", "headers"):
        given = settings.get(key, {})
        if isinstance(given, dict):  # people write ports as numbers
            given = {name: str(part) if isinstance(part, int | float) else part for name, part in given.items()}
        if not _all_text(given, dict):
            raise BrokenFile(f"has {key} that are not texts under names")
        if given:
            settings[key] = given
    timeout = settings.pop("timeout", None)
    if isinstance(timeout, int | float) and timeout > 0:
        settings["timeout"] = timeout / 1000 if timeout >= 1000 else float(timeout)  # others write milliseconds
    if written.get("type", written.get("transport")) == "sse":
        settings["sse"] = True
    if written.get("disabled") is True or written.get("enabled") is False:
        settings["enabled"] = False
    return settings


def _all_text(value: Any, kind: type[list[Any]] | type[dict[str, Any]]) -> bool:
    if not isinstance(value, kind):
        return False
    parts = list(value.values()) if isinstance(value, dict) else list(value)
    return all(isinstance(part, str) for part in parts)
