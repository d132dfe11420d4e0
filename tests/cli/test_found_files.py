"""A project that other agents know: everything it has is listed, priced and used, and what is not used is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from ra.core.value import JsonObject
from ra.providers.model_choice import newest
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


@pytest.fixture
def project(shell: Shell) -> Path:
    files = {
        "CLAUDE.md": "Project rules: @docs/style.md",
        "docs/style.md": "Whole cents.",
        "AGENTS.md": "root",
        "a/AGENTS.md": "a",
        "a/b/AGENTS.md": "b",
        ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Work with PDFs.\n---\nUse pypdf.",
        ".claude/commands/review.md": "Review $1 against @docs/style.md",
        ".claude/settings.json": "{}",
        ".mcp.json": json.dumps({"mcpServers": {"files": {"command": "npx", "args": ["fs"]}}}),
    }
    for name, text in files.items():
        path = shell.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (shell.home / ".claude").mkdir()
    (shell.home / ".claude/CLAUDE.md").write_text("My rules.")
    return shell.project


def test_show_context_needs_no_model(shell: Shell, project: Path) -> None:
    done = shell.ra("--show-context", "see @CLAUDE.md", env={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert done.returncode == 0, done.stderr.decode()
    assert b"CLAUDE.md\tstable\t" in done.stdout
    assert b"@CLAUDE.md" in done.stdout


def test_show_context_lists_everything(shell: Shell, project: Path, hello: Any) -> None:
    done = shell.ra("--show-context", cwd=project / "a/b")
    rows = [line.split("\t")[:2] for line in done.stdout.decode().splitlines()]
    assert rows == [
        ["~/.claude/CLAUDE.md", "stable"],
        ["CLAUDE.md", "stable"],
        ["docs/style.md", "stable"],
        ["AGENTS.md", "stable"],
        ["a/AGENTS.md", "stable"],
        ["a/b/AGENTS.md", "stable"],
        ["skills", "stable"],
        ["skill pdf", "stable"],
        ["/pdf", "command"],
        ["/review", "command"],
        [".claude/settings.json", "ignored"],
        [".mcp.json.files", "ignored"],
    ]


def test_what_is_found_is_listed_without_a_key_and_without_a_provider(shell: Shell, project: Path) -> None:
    done = shell.ra("--show-context", "-m", "no-such-model", "see @docs/style.md and @missing.md")
    assert (done.returncode, b"docs/style.md\tstable" in done.stdout) == (0, True)
    assert "@docs/style.md → docs/style.md" in done.stdout.decode()
    assert b"missing.md" in done.stderr


def test_a_request_is_priced_without_a_key_where_the_model_says_whose_it_is(shell: Shell, project: Path) -> None:
    report = shell.json("--dry-run", "-m", "haiku", "hi")
    assert (report["model"], float(report["cost"]) > 0) == (newest("haiku"), True)
    agent = shell.json("--dry-run", "--set", "agent.model=gpt-5", "hi")
    assert (agent["model"], float(agent["cost"]) > 0) == ("gpt-5", True)
    unnamed = shell.ra("--dry-run", "hi")
    assert (unnamed.returncode, b"--dry-run -m sonnet" in unnamed.stderr) == (2, True)
    misspelt = shell.ra("--dry-run", "-m", "claude-sonet-4-6", "hi")
    assert (misspelt.returncode, b"did you mean claude-sonnet-4-6" in misspelt.stderr) == (2, True)
    unpriced = shell.ra("--dry-run", "-m", "qwen3-coder", "hi")
    assert (unpriced.returncode, b"--dry-run -m sonnet" in unpriced.stderr) == (2, True)


def test_dry_run_prices_all_and_the_fixed_part_stays_small(shell: Shell, project: Path, hello: Any) -> None:
    report = shell.json("--dry-run", "hi")
    tokens = {section["name"]: section["tokens"] for section in report["sections"]}
    assert tokens["tools"] + tokens["system"] + tokens["skills"] < 2000
    assert {"~/.claude/CLAUDE.md", "docs/style.md", "skill pdf"} <= set(tokens)


def test_servers_that_wait_are_told_of_once(shell: Shell, project: Path, hello: Any) -> None:
    assert b"MCP servers: files: npx fs" in shell.ra("hi").stderr
    assert b"MCP servers" not in shell.ra("hi").stderr


def test_a_skill_is_read_when_the_model_asks_for_it(shell: Shell, project: Path) -> None:
    def answer(body: JsonObject) -> Step:
        if len(body["messages"]) == 1:
            return Step(calls=(Call("Skill", {"name": "pdf"}),))
        return Step(text="read" if "Use pypdf." in json.dumps(body["messages"]) else "not read")

    with LoopbackServer("anthropic", answer) as server:
        shell.serve(server)
        assert shell.ra("-q", "extract the text").stdout == b"read\n"
        assert "Use pypdf." not in json.dumps(server.bodies[0])


def test_a_command_file_is_a_prompt(shell: Shell, project: Path, hello: LoopbackServer) -> None:
    assert shell.ra("/review src/cart.py").returncode == 0
    sent = json.dumps(hello.bodies[0]["messages"])
    assert "Review src/cart.py against" in sent
    assert "Whole cents." in sent


def test_without_such_files_nothing_is_offered(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("hi")
    assert "Skill" not in json.dumps(hello.bodies[0])
