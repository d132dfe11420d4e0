"""Turns the settings of other agents into ra's: `ra config import claude|codex` shows what it would write."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ra.config import mcp_json
from ra.core.errors import RaError
from ra.core.value import Value
from ra.system.files import open_resolved
from ra.tools.policy.rules import Action, parse_rule

AgentName = Literal["claude", "codex"]
MAX_BYTES = 32 * 1024 * 1024  # Claude Code's state file grows with every project

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}


class Imported(Value, frozen=True):
    """The settings that would be written, the files they come from, and what has no counterpart in ra."""

    settings: dict[str, Any]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def settings_of(agent: AgentName, home: Path, root: Path) -> Imported:
    """Another agent's settings, as keys of ra.yaml."""
    reading = _Reading(home, root)
    if agent == "claude":
        reading.claude()
    else:
        reading.codex()
    return Imported(reading.settings(), tuple(reading.files), tuple(reading.notes))


class _Reading:
    def __init__(self, home: Path, root: Path) -> None:
        self.files: list[str] = []
        self.notes: list[str] = []
        self._home = home
        self._root = root
        self._agent: dict[str, Any] = {}
        self._rules: list[dict[str, str]] = []
        self._servers: dict[str, dict[str, Any]] = {}

    def settings(self) -> dict[str, Any]:
        agent = dict(self._agent)
        if self._rules:
            agent["permissions"] = {"rules": self._rules}
        if self._servers:
            agent["mcpServers"] = [{"name": name, **server} for name, server in self._servers.items()]
        return {"agent": agent} if agent else {}

    def claude(self) -> None:
        places = (self._home / ".claude", self._root / ".claude")
        for file in (place / name for place in places for name in ("settings.json", "settings.local.json")):
            document = self._json(file)
            self._rules_of(document.get("permissions"), file)
            if isinstance(document.get("model"), str):
                self._agent["model"] = document["model"]
            for key in ("hooks", "env", "apiKeyHelper", "statusLine", "enabledPlugins"):
                if document.get(key):
                    self.notes.append(f"{file}: {key} is not imported")
        state = self._json(self._home / ".claude.json")
        projects = state.get("projects")
        own = projects.get(str(self._root), {}) if isinstance(projects, dict) else {}
        for document in (state, own if isinstance(own, dict) else {}):
            self._servers_of(document.get("mcpServers"), self._home / ".claude.json")

    def codex(self) -> None:
        for file in (self._home / ".codex/config.toml", self._root / ".codex/config.toml"):
            document = self._toml(file)
            if isinstance(document.get("model"), str):
                self._agent["model"] = document["model"]
            if level := _EFFORTS.get(str(document.get("model_reasoning_effort"))):
                self._agent["thinking"] = level
            servers = document.get("mcp_servers")
            for server in servers.values() if isinstance(servers, dict) else ():
                if isinstance(server, dict) and (variable := server.pop("bearer_token_env_var", None)):
                    server["headers"] = {"Authorization": f"Bearer ${{{variable}}}"}
            self._servers_of(servers, file)
            known = {"model", "model_reasoning_effort", "mcp_servers"}
            for key in sorted(set(document) - known):
                self.notes.append(f"{file}: {key} is not imported")
        instructions = self._home / ".codex/AGENTS.md"
        if instructions.is_file():
            self.notes.append(
                f"{instructions}: copy it to AGENTS.md beside your ra.yaml, which is read in every project"
            )

    def _rules_of(self, permissions: Any, file: Path) -> None:
        if not isinstance(permissions, Mapping):
            return
        actions: tuple[Action, ...] = ("allow", "ask", "deny")
        for action in actions:
            for text in _texts(permissions.get(action)):
                try:
                    parse_rule(text, action)
                except RaError as error:
                    self.notes.append(f"{file}: {error}")
                    continue
                if {action: text} not in self._rules:
                    self._rules.append({action: text})
        for key in sorted(set(permissions) - set(actions)):
            self.notes.append(f"{file}: permissions.{key} is not imported")

    def _servers_of(self, servers: Any, file: Path) -> None:
        if not isinstance(servers, Mapping):
            return
        for name, written in servers.items():
            try:
                self._servers.setdefault(str(name), mcp_json.settings_of(written))
            except ValueError as error:
                self.notes.append(f"{file}: the server {name} {error}; left out")

    def _json(self, file: Path) -> dict[str, Any]:
        return self._document(file, msgspec.json.decode)

    def _toml(self, file: Path) -> dict[str, Any]:
        return self._document(file, lambda content: tomllib.loads(content.decode()))

    def _document(self, file: Path, decode: Any) -> dict[str, Any]:
        if not os.path.lexists(file):
            return {}
        try:
            with open_resolved(file) as opened:
                document = decode(opened.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            self.notes.append(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}")
            return {}
        self.files.append(str(file))
        return document if isinstance(document, dict) else {}


def _texts(values: Any) -> Iterable[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
