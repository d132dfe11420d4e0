"""`ra permissions`: what would happen to a call, part by part and rule by rule; nothing is run."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Shell


def explained(shell: Shell, *args: str) -> Any:
    """The flags of a run, `explain`, and its arguments."""
    done = shell.ra(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_part_of_a_command_is_told_with_its_rule(shell: Shell) -> None:
    flags = ("--allow", "Bash(git status:*)", "--deny", "Bash(rm:*)")
    told = explained(shell, *flags, "permissions", "explain", "git status && cd . ; make | rm -rf /")
    assert (told["decision"], told["reason"]) == ("deny", "the rule deny Bash(rm:*) forbids it")
    assert [(part["text"], part["words"]) for part in told["parts"]] == [
        ("git status", "allow Bash(git status:*)"),
        ("cd .", "no rule speaks of it"),
        ("make", "no rule speaks of it"),
        ("rm -rf /", "deny Bash(rm:*)"),
    ]


def test_what_is_nested_or_unclear_is_told(shell: Shell) -> None:
    told = explained(shell, "--deny", "Bash(curl:*)", "permissions", "explain", 'echo "$(curl evil.example)"')
    assert [part["text"] for part in told["parts"] if part.get("nested")] == ["curl evil.example"]
    assert (told["decision"], "known only when it runs" in told["unclear"]) == ("deny", True)


def test_the_text_says_what_to_do(shell: Shell) -> None:
    done = shell.ra("--sandbox", "off", "permissions", "explain", "git push")
    assert done.stdout.decode().splitlines() == [
        "runs      git push",
        "            no rule speaks of it",
        "sandbox   none",
        "asks      there is no sandbox to run it in; where nobody can be asked it is refused",
        "to allow  --allow 'Bash(git push)'",
    ]
    assert not (shell.project / "git").exists()


def test_the_text_says_where_it_runs(shell: Shell) -> None:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    rule = "{allow: Bash(docker ps), outside: true}"
    (folder / "ra.yaml").write_text(f"agent:\n  permissions:\n    rules: [{rule}]\n")
    wanted = {
        "npm test": "in the sandbox, without network",
        "npm ci": "in the sandbox, with the network",
        "npm ci *": "in the sandbox, without network",
        "docker ps": "outside the sandbox",
    }
    for command, words in wanted.items():
        lines = shell.ra("--allow", "Bash(npm ci:*)", "permissions", "explain", command).stdout.decode().splitlines()
        assert lines[-1] == f"where     {words}"


def test_a_rule_of_a_project_lets_nothing_out(shell: Shell) -> None:
    rule = "{allow: Bash(docker ps), outside: true}"
    (shell.project / "ra.yaml").write_text(f"agent:\n  permissions:\n    rules: [{rule}]\n")
    assert shell.ra("trust").returncode == 0
    told = explained(shell, "permissions", "explain", "docker ps")
    assert (told["decision"], told.get("outside", False), told["network"]) == ("allow", False, True)


@pytest.mark.parametrize(
    ("args", "decision", "words"),
    [
        (["--tool", "Read", "a.py"], "allow", "reads in the project are free"),
        (["--tool", "Read", ".env"], "ask", ".env may hold secrets"),
        (["--tool", "Read", "/etc/passwd"], "ask", "/etc/passwd lies outside the project"),
        (["--tool", "Write", "a.py"], "deny", "edits are off; --edits auto allows them"),
        (["--tool", "Write", ".git/hooks/x"], "ask", ".git/hooks/x is protected: it lies in .git"),
        (["--tool", "WebFetch", "https://example.org/"], "ask", "WebFetch reaches outside the project"),
        (["--tool", "mcp__x__y", '{"a": 1}'], "ask", "mcp__x__y reaches outside the project"),
        (["--tool", "Recall", '{"query": "x"}'], "allow", "Recall affects nothing outside ra"),
    ],
)
def test_other_tools_by_path_url_or_arguments(shell: Shell, args: list[str], decision: str, words: str) -> None:
    told = explained(shell, "permissions", "explain", *args)
    assert (told["decision"], told["reason"]) == (decision, words)


def test_what_the_project_runs_and_calls_instructions_is_judged_as_in_a_run(shell: Shell) -> None:
    (shell.project / "hook.py").write_text("def middleware(ctx): ...\n")
    keys = "agent:\n  context: {patterns: [RULES.md]}\n  middleware: {onError: [./hook.py]}\n"
    (shell.project / "ra.yaml").write_text(keys)
    for path, why in (("RULES.md", "it is an instruction file"), ("hook.py", "ra runs it")):
        told = explained(shell, "--trust", "--write", "permissions", "explain", "--tool", "Write", path)
        assert (told["decision"], told["reason"]) == ("ask", f"{path} is protected: {why}")


def test_a_rule_for_the_proposed_pattern_allows_it(shell: Shell) -> None:
    for args in (
        ["--tool", "Write", "AGENTS.md"],
        ["--tool", "WebFetch", "https://x.org/a?b=*"],
    ):
        told = explained(shell, "permissions", "explain", *args)
        assert told["decision"] == "ask"
        again = explained(shell, "--allow", told["rule"], "permissions", "explain", *args)
        assert again["decision"] == "allow", told["rule"]


@pytest.mark.parametrize("args", [["--tool", "bash", "x"], ["--tool", "Agent", "not json"]])
def test_a_wrong_question_is_exit_2(shell: Shell, args: list[str]) -> None:
    assert shell.ra("permissions", "explain", *args).returncode == 2


def test_list_tells_rules_with_their_origin_and_forget_takes_back(shell: Shell) -> None:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    (folder / "ra.yaml").write_text("agent:\n  permissions:\n    rules: [{deny: WebFetch}, {allow: 'Bash(make:*)'}]\n")
    data = shell.home.parent / "data"
    data.mkdir(mode=0o700)
    (data / "allowed.json").write_text(json.dumps({str(shell.project.resolve()): ["Bash(git push)"]}))
    (data / "allowed.json").chmod(0o600)
    told = json.loads(shell.ra("--deny", "Read(x)", "permissions", "list", "--json").stdout)
    assert {(row["action"], row["rule"], row["origin"].rpartition("/")[2]) for row in told} == {
        ("deny", "Read(x)", "--deny"),
        ("deny", "WebFetch", "ra.yaml:3"),
        ("allow", "Bash(make:*)", "ra.yaml:3"),
        ("allow", "Bash(git push)", "you, for this project"),
    }
    assert shell.ra("permissions", "forget", "Bash(git push)").returncode == 0
    assert b"git push" not in shell.ra("permissions", "list").stdout
    assert shell.ra("permissions", "forget", "Bash(git push)").returncode == 2
