"""`ra cost` agrees with what the runs themselves said, whatever was forked."""

import json
from pathlib import Path

from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


def costs(shell: Shell, *args: str) -> list[dict[str, object]]:
    rows = json.loads(shell.ra("cost", "--json", *args).stdout)
    assert isinstance(rows, list)
    return rows


def test_what_a_fork_was_begun_with_is_paid_once(shell: Shell, hello: LoopbackServer) -> None:
    first = shell.json("one")
    forked = shell.json("--resume", str(first["session"]), "--fork", "two")
    rows = costs(shell, "--by", "session")
    assert {row["key"]: row["calls"] for row in rows} == {first["session"]: 1, forked["session"]: 1}
    assert costs(shell, "--by", "session", "--session", str(forked["session"])) == [
        row for row in rows if row["key"] == forked["session"]
    ]
    assert {str(row["dollars"]) for row in rows} == {str(ended["cost"]) for ended in (first, forked)}


def test_every_division_adds_up_to_the_same_bill(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("one")
    totals = [
        round(sum(float(str(row["dollars"])) for row in costs(shell, "--by", by)), 9)
        for by in ("session", "model", "source", "tool", "day")
    ]
    assert totals[0] > 0
    assert len(set(totals)) == 1


def test_an_unknown_division_names_the_legal_ones(shell: Shell) -> None:
    done = shell.ra("cost", "--by", "colour")
    assert (done.returncode, done.stderr) == (
        2,
        b"ra: --by 'colour': write session, model, source, tool or day.\n",
    )


def test_calls_without_a_price_are_told_and_not_shown_as_free(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("one")
    shell.ra("-m", "nobody-knows-it", "two")
    shown = shell.ra("cost")
    unknown = next(line for line in shown.stdout.decode().splitlines() if line.startswith("nobody-knows-it"))
    assert unknown.split("\t")[4] == "–"
    assert shown.stderr.decode().startswith("ra: 1 of 2 calls have no known price and are not in the sum")


def test_the_total_counts_each_call_once_however_it_is_divided(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("one")
    shell.ra("-c", "two")
    totals = {shell.ra("cost", "--by", by).stdout.decode().splitlines()[-1] for by in ("model", "source", "session")}
    assert [line.split("\t")[:2] for line in totals] == [["total", "2"]]


def test_an_imported_session_is_priced_and_a_call_without_a_price_is_named(shell: Shell, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    for model in ("gpt-4o", "nobody-knows-it"):
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "ho", "model": model, "usage": usage},
        ]
        (tmp_path / f"{model}.json").write_text(json.dumps({"messages": messages}))
        assert shell.ra("sessions", "import", str(tmp_path / f"{model}.json")).returncode == 0
    done = shell.ra("cost", "--by", "tool")
    shown = {line.split("\t")[0]: line.split("\t")[1:5] for line in done.stdout.decode().splitlines()[1:]}
    assert shown == {
        "other input": ["2", "2,000,000", "0", "$2.50"],
        "total": ["2", "2,000,000", "0", "$2.50"],
    }
    assert b"1 of 2 calls have no known price and are not in the sum" in done.stderr
    by_model = shell.ra("cost").stdout.decode().splitlines()
    assert [line.split("\t")[4] for line in by_model[1:]] == ["$2.50", "\N{EN DASH}", "$2.50"]


def claude_log(folder: Path, name: str, *, calls: range, sidechain: bool = False) -> None:
    """A transcript of Claude Code, as far as a bill needs it."""
    lines = []
    for number in calls:
        shared = {"sessionId": "s1", "cwd": "/home/ann/shop", "isSidechain": sidechain}
        time = f"2026-11-17T10:00:{number * 2:02}Z"
        usage = {"input_tokens": 100, "cache_read_input_tokens": 5_000, "cache_creation_input_tokens": 300}
        message = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-5"}
        message |= {"content": [{"type": "text", "text": "Yes."}], "usage": usage | {"output_tokens": 50}}
        asked = {"role": "user", "content": "And?"}
        lines += [
            shared
            | {"type": "user", "uuid": f"u{number}", "timestamp": time, "message": asked}
            | {"parentUuid": f"a{number - 1}" if number > calls.start else None},
            shared
            | {"type": "assistant", "uuid": f"a{number}", "requestId": f"r{number}", "timestamp": time}
            | {"message": message, "parentUuid": f"u{number}"},
        ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(map(json.dumps, lines)))


def test_other_agents_logs_are_counted_once_whatever_is_repeated(shell: Shell) -> None:
    claude, archive = shell.home / ".claude/projects/shop", shell.home / "archive"
    claude_log(claude, "s1.jsonl", calls=range(2))
    claude_log(claude, "s2.jsonl", calls=range(3))  # resumed: it repeats the first
    claude_log(claude, "agent-x.jsonl", calls=range(10, 12), sidechain=True)
    claude_log(archive, "agent-x.jsonl", calls=range(10, 12), sidechain=True)
    for by in ("session", "project", "day", "model"):
        rows = costs(shell, "--from", str(claude), str(archive), "--by", by)
        assert sum(int(str(row["calls"])) for row in rows) == 5
    told = json.loads(shell.ra("cost", "--from", str(claude), str(archive), "--what-if", "auto", "--json").stdout)
    assert told["sessions"] == 2
