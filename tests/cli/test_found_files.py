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


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("/reviw src", "There is no command /reviw; did you mean /review?"),
        ("/large now", "/large cannot be used: its 1,000,000 bytes are more than"),
    ],
)
def test_a_command_that_is_nearly_one_or_cannot_be_used_is_answered_not_paid(
    shell: Shell, project: Path, hello: LoopbackServer, prompt: str, words: str
) -> None:
    (project / ".claude/skills/large").mkdir()
    (project / ".claude/skills/large/SKILL.md").write_text("x" * 1_000_000)
    done = shell.ra(prompt)
    assert (done.returncode, words in done.stderr.decode()) == (2, True), done.stderr.decode()
    assert shell.ra("/tmp is full, why?").returncode == 0
    assert len(hello.requests) == 1


def test_two_names_of_one_instruction_file_are_listed_and_no_warning(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "AGENTS.md").write_text("Whole cents.")
    (shell.project / "CLAUDE.md").symlink_to("AGENTS.md")
    assert shell.ra("--no-session", "hi there").stderr == b""
    assert b"AGENTS.md\tignored\tthe same text as a file before it" in shell.ra("--show-context").stdout


def test_instruction_files_of_subdirectories_are_listed_with_what_makes_them_read(shell: Shell, project: Path) -> None:
    for folder in ("node_modules/x", "a/node_modules/y"):
        (project / folder).mkdir(parents=True)
        (project / folder / "AGENTS.md").write_text("not ours")
    rows = [line.split("\t") for line in shell.ra("--show-context", cwd=project / "a").stdout.decode().splitlines()]
    assert [row[0] for row in rows if row[1] == "stable" and row[0].endswith("AGENTS.md")] == [
        "AGENTS.md",
        "a/AGENTS.md",
    ]
    assert [row for row in rows if row[1] == "later"] == [
        ["a/b/AGENTS.md", "later", "read when a tool first touches a/b"]
    ]


def test_an_import_that_names_a_heading_reads_the_file(shell: Shell, project: Path) -> None:
    (project / "CLAUDE.md").write_text("See @docs/style.md#money and @docs/gone.md#money.")
    done = shell.ra("--show-context")
    assert b"docs/style.md\tstable" in done.stdout
    assert b"imports @docs/gone.md#money, which is not there" in done.stdout


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


def test_a_skill_called_like_a_command_gets_its_arguments_and_grants_itself_nothing(
    shell: Shell, project: Path, hello: LoopbackServer
) -> None:
    head = "---\ndescription: Deploy.\nallowed-tools: Bash(*)\n---\n"
    deploy, hidden = project / ".claude/skills/deploy/SKILL.md", project / ".claude/skills/hidden/SKILL.md"
    for file, text in (
        (deploy, f"{head}To $ARGUMENTS. !`git status` awk '{{print $1}}'"),
        (hidden, "---\ndescription: For models.\nuser-invocable: false\n---\nText."),
    ):
        file.parent.mkdir()
        file.write_text(text)
    done = shell.ra("/deploy prod")
    sent = hello.bodies[0]["messages"][0]["content"][0]["text"]
    assert "To prod. (run this first: `git status`) awk '{print $1}'\n</skill>" in sent
    assert b"/deploy: its !`commands` are not run for you" in done.stderr
    assert b"/deploy: `allowed-tools` in its front matter is not used" in done.stderr
    rows = [line.split("\t") for line in shell.ra("--show-context").stdout.decode().splitlines()]
    assert ["skill deploy", "ignored", "allowed-tools in its front matter; your flags and rules decide"] in rows
    assert [row[0] for row in rows if row[1] == "command"] == ["/deploy", "/pdf", "/review"]


def test_what_only_other_agents_read_is_listed_with_what_to_do(shell: Shell, project: Path) -> None:
    names = [
        "CLAUDE.local.md",
        ".claude/rules/api.md",
        ".cursor/rules/ts.mdc",
        ".github/instructions/ts.instructions.md",
    ]
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("Rule.")
    rows = [line.split("\t") for line in shell.ra("--show-context").stdout.decode().splitlines()]
    ignored = {row[0]: row[2] for row in rows if row[1] == "ignored"}
    assert "add it there if ra should read it" in ignored["CLAUDE.local.md"]
    assert "@.claude/rules/NAME.md" in ignored[".claude/rules"]
    assert {".cursor/rules", ".github/instructions"} <= set(ignored)
    read = shell.ra("--show-context", "--set", 'agent.context.patterns=["CLAUDE.md", "CLAUDE.local.md"]')
    assert b"CLAUDE.local.md\tstable" in read.stdout


def test_a_project_that_gets_much_wrong_says_so_in_a_few_lines(
    shell: Shell, project: Path, hello: LoopbackServer
) -> None:
    (project / "AGENTS.md").write_text("".join(f"@missing{n}.md\n" for n in range(40)))
    lines = [line for line in shell.ra("hi").stderr.decode().splitlines() if line.startswith("ra: ")]
    assert sum("which is not there" in line for line in lines) == 5
    assert "ra: 35 more; `ra --show-context` lists everything that is not used." in lines
    assert shell.ra("--show-context").stdout.count(b"which is not there") == 40


def test_imports_beyond_the_limit_are_one_line(shell: Shell, project: Path, hello: LoopbackServer) -> None:
    (project / "AGENTS.md").write_text("".join(f"@n{n}.md\n" for n in range(60)))
    for number in range(60):
        (project / f"n{number}.md").write_text(f"note {number}")
    rows = shell.ra("--show-context").stdout.decode().splitlines()
    assert [row.partition("\t")[0] for row in rows if "5 deep and 50 in all" in row] == ["AGENTS.md"]
