"""What ra runs outside the box cannot be written from inside; what a project calls instructions must be its own."""

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RA, Shell

GUARD = "#!/bin/sh\necho '{}'\n"


def run(shell: Shell, *calls: tuple[str, dict[str, Any]], flags: tuple[str, ...] = ()) -> list[str]:
    """The results of these calls, one model call each."""
    steps = [{"calls": [{"name": name, "args": args}]} for name, args in calls]
    script = shell.home / "script.json"
    script.write_text(json.dumps([*steps, {"text": "done"}]))
    model = ("--provider", "scripted", "--model", str(script), "--output-format", "stream-json")
    done = shell.ra(*model, "--trust", *flags, "go")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return ["".join(c["text"] for c in e["result"]["content"]) for e in events if e.get("type") == "tool-ended"]


@pytest.fixture
def guarded(shell: Shell) -> Shell:
    """A trusted project with a hook that is a script."""
    (shell.project / "hooks").mkdir()
    script = shell.project / "hooks/guard.sh"
    script.write_text(GUARD)
    script.chmod(0o755)
    (shell.project / "ra.yaml").write_text("agent: {middleware: {beforeToolExecution: [./hooks/guard.sh]}}\n")
    return shell


def without_bubblewrap(shell: Shell, folder: Path) -> None:
    folder.mkdir()
    for name in ("bash", "sh", "cat", "cp", "grep", "mkdir", "mv", "touch"):
        (folder / name).symlink_to(str(shutil.which(name)))
    shell.env["PATH"] = str(folder)


@pytest.mark.parametrize(
    "command",
    [
        "cp evil.sh hooks/guard.sh",
        "cat evil.sh > hooks/guard.sh",
        "mv hooks gone; mkdir hooks; cp evil.sh hooks/guard.sh",
    ],
)
def test_a_command_cannot_rewrite_a_hook(guarded: Shell, tmp_path: Path, command: str) -> None:
    mark = tmp_path / "escaped"
    (guarded.project / "evil.sh").write_text(f"#!/bin/sh\ntouch {mark}\necho '{{}}'\n")
    (guarded.project / "evil.sh").chmod(0o755)
    answers = run(guarded, ("Bash", {"command": command}), ("Bash", {"command": "echo hi"}))
    assert (len(answers), answers[-1], mark.exists()) == (2, "hi", False)
    assert (guarded.project / "hooks/guard.sh").read_text() == GUARD


@pytest.mark.parametrize(
    ("named", "command"),
    [
        ("sh ./ci/check.sh || true", "mkdir -p ci; cp evil.sh ci/check.sh"),  # neither the file nor its folder is there
        ("sh ./docs/check || true", "cp evil.sh docs/check"),
        ("cd . && bash check.sh || true", "cp evil.sh check.sh"),
    ],
)
def test_a_command_cannot_make_the_file_that_a_hook_names(
    shell: Shell, tmp_path: Path, named: str, command: str
) -> None:
    mark = tmp_path / "escaped"
    (shell.project / "docs").mkdir()
    (shell.project / "evil.sh").write_text(f"touch {mark}\n")
    (shell.project / "ra.yaml").write_text(
        json.dumps({"agent": {"middleware": {"beforeModelCall": [{"shell": named}]}}})
    )
    answers = run(shell, ("Bash", {"command": command}), ("Bash", {"command": "cp evil.sh docs/other.sh; ls docs"}))
    assert "is a protected name" in answers[0] or "Read-only file system" in answers[0]
    assert "other.sh" in answers[1]
    assert not mark.exists()


def test_a_file_tool_does_not_rewrite_a_hook_without_a_word(guarded: Shell) -> None:
    call = ("Write", {"path": "hooks/../hooks/guard.sh", "content": "evil"})
    assert run(guarded, call, flags=("--write",))[0].startswith(
        "Refused: hooks/../hooks/guard.sh is protected: ra runs it."
    )
    assert (guarded.project / "hooks/guard.sh").read_text() == GUARD


@pytest.mark.parametrize("form", ["{path}", "../{name}", "sub/../../{name}"])
def test_patterns_that_lead_out_of_the_project_touch_nothing_there(shell: Shell, form: str) -> None:
    path = shell.project.parent / "service.sock"
    pattern = form.format(path=path, name=path.name)
    (shell.project / "ra.yaml").write_text(json.dumps({"agent": {"context": {"patterns": [pattern, "*.rules"]}}}))
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(os.path.relpath(path))
        assert run(shell, ("Bash", {"command": "ls -d *.rules"})) == [
            "ls: cannot access '*.rules': No such file or directory\n[exit code 2]"
        ]
        assert path.is_socket()


def test_files_that_a_pattern_with_a_star_names_are_protected(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agent: {context: {patterns: ['*.rules']}}")
    (shell.project / "team.rules").write_text("be kind")
    run(shell, ("Bash", {"command": "echo evil > team.rules"}))
    assert (shell.project / "team.rules").read_text() == "be kind"


def test_without_a_sandbox_a_command_is_refused_and_an_exact_rule_allows_it(shell: Shell, tmp_path: Path) -> None:
    without_bubblewrap(shell, tmp_path / "bin")
    refused = "Refused: there is no sandbox to run it in. "
    for flags in ((), ("--allow", "Bash(echo:*)")):
        assert [answer.startswith(refused) for answer in run(shell, ("Bash", {"command": "echo hi"}), flags=flags)] == [
            True
        ]
    assert run(shell, ("Bash", {"command": "echo hi"}), flags=("--allow", "Bash(echo hi)")) == ["hi"]


def test_a_ra_that_was_killed_in_a_command_leaves_a_project_that_works(shell: Shell) -> None:
    """The box holds names such as ra.yaml with sockets; whoever comes by meanwhile, or afterwards, is not kept out."""
    script, calm = shell.home / "script.json", shell.home / "calm.json"
    script.write_text(json.dumps([{"calls": [{"name": "Bash", "args": {"command": "touch begun; sleep 60"}}]}]))
    calm.write_text(json.dumps([{"text": "Fine."}]))
    asked = ("--provider", "scripted", "--model", str(calm), "hi")
    running = subprocess.Popen(
        [RA, "--provider", "scripted", "--model", str(script), "go"],
        cwd=shell.project,
        env=shell.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        late = time.monotonic() + 30
        while not (shell.project / "begun").exists():
            assert time.monotonic() < late
            time.sleep(0.02)
        beside = shell.ra(*asked)
    finally:
        running.kill()
        running.wait()
    after = shell.ra(*asked)
    assert [(done.returncode, done.stdout, done.stderr) for done in (beside, after)] == [(0, b"Fine.\n", b"")] * 2
    assert shell.ra("config", "init").returncode == 0
    assert (shell.project / "ra.yaml").is_file()
