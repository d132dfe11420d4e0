"""`.mcp.json`: the servers that other programs know wait for the user's word, and cost nothing when they are broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from ra.config.load import Resolved, resolve
from ra.config.trust import FILE, Trust
from ra.tools.settings import McpServerSettings

FILES = {"command": "npx", "args": ["-y", "fs", "${ROOT:-.}"], "env": {"TOKEN": "${TOKEN}"}}


class World:
    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        self.settings = folder / ".config/ra"
        self.settings.mkdir(parents=True)
        self.env = {"HOME": str(folder), "RA_HOME": str(folder / "data"), "TOKEN": "t0p"}

    def write(self, document: Any, *, own: bool = False) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        (self.settings / "mcp.json" if own else self.project / ".mcp.json").write_text(text)

    def resolve(self, **options: Any) -> Resolved:
        return resolve(cwd=self.project, env=self.env, **options)

    def trust(self) -> Resolved:
        resolved = self.resolve()
        Trust(resolved.data_dir / FILE).record(resolved.root, resolved.items)
        return self.resolve()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def names(resolved: Resolved) -> list[str]:
    return [server.name for server in resolved.config.agent.mcp_servers]


def test_a_projects_servers_wait_and_do_not_stop_a_run(world: World) -> None:
    world.write({"mcpServers": {"files": FILES}})
    resolved = world.resolve()
    assert names(resolved) == []
    assert resolved.untrusted == ()
    assert [item.line for item in resolved.waiting] == [".mcp.json.files: MCP server files: npx -y fs ${ROOT:-.}"]


def test_agreed_to_they_are_used_with_the_environments_values(world: World) -> None:
    world.write({"mcpServers": {"files": FILES}})
    assert world.trust().config.agent.mcp_servers == (
        McpServerSettings(name="files", command="npx", args=("-y", "fs", "."), env={"TOKEN": "t0p"}),
    )
    world.write({"mcpServers": {"files": FILES | {"args": ["other"]}}})
    assert names(world.resolve()) == []


@pytest.mark.parametrize("wrap", [lambda s: {"mcpServers": s}, lambda s: {"servers": s}, lambda s: s])
def test_every_form_of_the_file_is_read(world: World, wrap: Any) -> None:
    world.write(wrap({"far": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "1"}}}))
    assert world.trust().config.agent.mcp_servers == (
        McpServerSettings(name="far", url="https://example.com/mcp", headers={"X": "1"}),
    )


def test_the_users_own_file_needs_no_word(world: World) -> None:
    world.write({"mcpServers": {"mine": {"command": "serve", "disabled": True}}}, own=True)
    assert world.resolve().config.agent.mcp_servers == (McpServerSettings(name="mine", command="serve", enabled=False),)


def test_a_server_of_ra_yaml_stands_before_one_of_the_same_name(world: World) -> None:
    world.write({"mcpServers": {"files": FILES, "more": FILES}}, own=True)
    resolved = world.resolve(assignments=["agent.mcpServers=[{name: files, command: mine}]"])
    assert [(server.name, server.command) for server in resolved.config.agent.mcp_servers] == [
        ("files", "mine"),
        ("more", "npx"),
    ]


def test_a_missing_variable_leaves_out_its_server_alone(world: World) -> None:
    world.write({"mcpServers": {"a": {"command": "x", "env": {"K": "${GONE}"}}, "b": {"command": "y"}}}, own=True)
    resolved = world.resolve()
    assert names(resolved) == ["b"]
    assert "the server a needs GONE, which is not set" in resolved.notes[0]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be an object"),
        ('{"mcpServers": []}', "an object with a server under each name"),
        ({"mcpServers": {"x": 3}}, "must be an object with a command or a url"),
        ({"mcpServers": {"x": {}}}, "neither a command nor a url"),
        ({"mcpServers": {"x": {"command": 3}}}, "not text"),
        ({"mcpServers": {"x": {"command": "y", "args": "z"}}}, "not a list of texts"),
        ({"mcpServers": {"x": {"command": "y", "env": {"a": []}}}}, "not texts under names"),
        ({"mcpServers": {"x": {"command": "y", "alwaysAllow": ["z"]}}}, "alwaysAllow is not used"),
        ("[" * 100_000, "not valid JSON"),
        (" " * 300_000, "more than"),
    ],
)
def test_a_broken_file_is_a_sentence(world: World, document: Any, why: str) -> None:
    world.write(document)
    assert any(why in note for note in world.resolve().notes)
