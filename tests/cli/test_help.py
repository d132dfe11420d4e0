"""Does the help of every command teach: a sentence, two examples, and do the examples work?"""

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ra.cli import examples
from ra.cli.commands import MODULES
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

# What an example needs that a test has not: an editor, a browser, a person, the internet, another agent's files.
NOT_RUN = (
    *(
        "ra acp",
        "ra serve",
        "ra tour",
        "ra mcp serve",
        "ra mcp login",
        "ra mcp list docs",
        "ra local install",
        "ra open",
    ),
    *("ra -m opus acp", "ra --write --max-cost 0.50 mcp serve", "ra config import", "ra sessions import rollout.jsonl"),
    *("ra bench context --trace ~/.claude", "ra cost --from ~/.claude", "ra agent show ID", "ra mcp logout docs"),
    *(
        "ra permissions forget",
        "ra models forget",
        "ra sessions copy --to postgresql:",
        "ra local status",
        "ra wiki",
        "ra trust revoke",
        "make demo",
        "ra config init --user",
    ),
)


RUN = """
import json, sys
from ra.cli.main import main
failed = []
for words in json.load(sys.stdin):
    try:
        code = main(words[1:])
    except SystemExit as end:
        code = end.code
    if code:
        failed.append((words, code))
sys.exit(f"failed: {failed}" if failed else 0)
"""


def every_command() -> Iterator[tuple[str, Any]]:
    def below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(f"{path} {name}", inner)

    for name, module in MODULES.items():
        yield from below(name, typer.main.get_command(importlib.import_module(module).app))


@pytest.mark.parametrize("path", [path for path, _ in every_command()])
def test_every_command_has_two_examples(path: str) -> None:
    assert len(examples.COMMANDS[path].lines) >= 2


def test_no_example_belongs_to_a_command_that_is_gone() -> None:
    assert set(examples.COMMANDS) == {path for path, _ in every_command()}


def test_every_flag_and_argument_is_explained_in_words() -> None:
    silent = [f"{path} {param.name}" for path, command in every_command() for param in command.params if not param.help]
    assert silent == ["tour stage"]  # hidden


@pytest.mark.parametrize("words", [("--help",), ("serve", "--help"), ("bench", "context", "--help")], ids=" ".join)
def test_help_shows_no_names_of_python_types(shell: Shell, words: tuple[str, ...]) -> None:
    shown = shell.ra(*words, env={"COLUMNS": "100"}).stdout.decode()
    assert not re.search(r"<\w+|range|list\[|INTEGER|BOOLEAN", shown)


def test_help_shows_the_examples_and_what_comes_next(shell: Shell) -> None:
    shown = shell.ra("cost", "--help", env={"COLUMNS": "100"}).stdout.decode()
    assert "ra cost --since 7d --by source     the last week, by source" in shown
    assert "Next: ra bench context, ra open" in shown


def lines() -> list[str]:
    every = dict.fromkeys(line for taught in examples.COMMANDS.values() for line in taught.lines)
    return [line for line in every if not line.startswith(NOT_RUN)]


def test_the_examples_work(shell: Shell, hello: LoopbackServer) -> None:
    (shell.home / ".config/ra").mkdir(parents=True)
    (shell.home / ".config/ra/ra.yaml").write_text("agents: {devops: {systemPrompt: You look after servers.}}\n")
    session = str(shell.json("What is a refund?")["session"])
    shell.ra("-c", "And who signs it?")
    shell.ra("entry", "set", "style", "Use tabs.")
    shell.ra("sessions", "export", session, "--to", "s.jsonl")
    # What deletes comes last. Each line is split as a shell does; what only a shell understands is left out.
    ordered = sorted(lines(), key=lambda line: ("rm" in line.split(), "prune" in line, "fork" in line))
    typed = [shlex.split(line.replace(" 4f", f" {session}")) for line in ordered if not set(line) & set("|>&$")]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=shell.project,
        env=shell.env,
        input=json.dumps(typed),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-3000:]
