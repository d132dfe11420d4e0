"""Does every command answer a wrong call with one line, and fail when its output is lost?"""

import json
import re
from pathlib import Path

import pytest

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recall"], "Missing argument 'QUERY|REF'; write: ra recall QUERY|REF"),
        (["entry", "set", "a"], "Missing argument 'TEXT'; write: ra entry set a TEXT"),
        (["cost", "quote"], "Missing option '--model' / '-m'; see ra cost --help."),
        (["compact", "--compaction", "digest"], "--compaction goes before the command: ra --compaction … compact"),
        (["context", "--sesion", "x"], "No such option: --sesion (Possible options: --json, --session)"),
        (["sessions", "prune"], "Say what to prune: --older 30d, or --keep 20 for all but the newest 20."),
    ],
)
def test_a_wrong_call_of_a_command_is_exit_2_and_one_line(shell: Shell, words: list[str], said: str) -> None:
    done = shell.ra(*words)

    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (2, b"", 1)
    assert lines[0].startswith(f"ra: {said}")


def test_a_position_behind_the_end_of_a_session_is_refused(shell: Shell, hello: LoopbackServer) -> None:
    session = shell.json("hi")["session"]

    done = shell.ra("context", "--at", "999")

    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"ra: Session {session} ends at position ")


def test_a_command_whose_output_is_lost_fails(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("hi")
    with Path("/dev/full").open("wb") as full:
        done = shell.ra("context", capture_output=False, stdout=full)

    assert done.returncode == 1


def test_the_scripted_provider_asks_for_its_script(shell: Shell) -> None:
    done = shell.ra("--provider", "scripted", "hi")

    assert done.returncode == 2
    assert "name it with --model SCRIPT.yaml" in done.stderr.decode()


def test_a_dry_run_says_what_it_cannot_know(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "mine.py").write_text("async def handler(ctx, wake):\n    await ctx.agent.run()\n")

    planned = shell.ra("--context-strategy", "planner", "--dry-run", "hi").stderr.decode()
    handled = shell.ra("--agent-file", "mine.py", "--dry-run", "hi").stderr.decode()

    assert planned.startswith("ra: a plan would have to be asked for")
    assert "a preview does not run it" in handled
    assert hello.requests == []


def test_one_request_has_one_size_wherever_it_is_shown(shell: Shell) -> None:
    (shell.project / "rows.txt").write_text("\n".join(f"row {row} name_{row}" for row in range(900)))
    steps = [Step(calls=(Call("Read", {"path": "rows.txt", "offset": at}),)) for at in range(1, 6)]
    with LoopbackServer("anthropic", [*steps, Step(text="Done.")]) as server:
        shell.serve(server)
        shell.ra("--no-write", "read them")

        shown = json.loads(shell.ra("context", "--json").stdout)
        planned = shell.json("-c", "--dry-run", " ")
        compacted = json.loads(shell.ra("compact", "--dry-run", "--json").stdout)

    assert (planned["total"], compacted["before"]) == (shown["total"], shown["total"])
    assert sum(row["tokens"] for row in shown["sections"]) == shown["total"]


def test_a_dry_run_that_goes_on_knows_what_the_provider_holds(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("hi")
    shown = json.loads(shell.ra("context", "--json").stdout)

    again, other, new = (
        shell.json(*flags, "--dry-run", "and now?") for flags in (["-c"], ["-c", "-m", "claude-opus-4-6"], [])
    )

    assert again["cached"] == shown["cached"] > 0
    assert (other["cached"], new["cached"]) == (0, 0)


@pytest.mark.parametrize("strategy", ["truncate", "digest", "auto"])
def test_a_compaction_is_what_its_dry_run_said(shell: Shell, strategy: str) -> None:
    for number in range(8):
        names = "\n".join(f"row {number}-{row} name_{number}_{row}" for row in range(200))
        (shell.project / f"{number}.txt").write_text(names)
    steps = [Step(calls=(Call("Read", {"path": f"{number}.txt"}),)) for number in range(8)]
    flags = ("--compaction", strategy, "--set", "agent.compaction.contextWindow=60000")
    with LoopbackServer("anthropic", [*steps, Step(text="Done.")]) as server:
        shell.serve(server)
        shell.ra(*flags, "--no-write", "read them")

        said = shell.ra(*flags, "compact", "--dry-run").stdout.decode()
        done = shell.ra(*flags, "compact").stderr.decode()

    sizes = [re.search(r"[\d,]+ → [\d,]+ tokens", text) for text in (said, done)]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[0][0] == sizes[1][0]
