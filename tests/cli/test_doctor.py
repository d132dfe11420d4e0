"""`ra doctor`: a verdict for each thing, a fix for each that is not in order, and an exit code."""

import contextlib
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

NAMES = {
    *("config", "keys", "model", "local", "sandbox", "rules"),
    *("terminal", "store", "trust", "files", "mcp", "programs"),
}


def told(shell: Shell, *before: str, **kwargs: Any) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    done = shell.ra(*before, "doctor", "--json", **kwargs)
    checks: dict[str, list[dict[str, Any]]] = {}
    for check in json.loads(done.stdout)["checks"]:
        checks.setdefault(check["name"], []).append(check)
    assert json.loads(done.stdout)["ok"] == (done.returncode == 0)
    return done.returncode, checks


def verdict(checks: dict[str, list[dict[str, Any]]], name: str) -> tuple[str, str]:
    order = ("ok", "warning", "problem")
    worst = max(checks[name], key=lambda check: order.index(check["verdict"]))
    return worst["verdict"], worst["words"]


def test_all_is_well_and_nothing_is_sent(shell: Shell, hello: LoopbackServer) -> None:
    code, checks = told(shell)
    assert (code, set(checks)) == (0, NAMES)
    assert {verdict(checks, name)[0] for name in NAMES - {"sandbox", "programs"}} == {"ok"}
    assert "claude-sonnet-5-5" in checks["model"][0]["words"]
    assert hello.requests == []


def test_without_a_model_it_is_a_problem_with_the_ways_on(shell: Shell) -> None:
    code, checks = told(shell)
    assert (code, verdict(checks, "model")[0]) == (1, "problem")
    assert any("ANTHROPIC_API_KEY" in line for line in checks["model"][0]["details"])
    done = shell.ra("doctor")
    assert done.returncode == 1
    assert "→ set a provider's API key, or `ra local install`" in done.stdout.decode()


def test_a_key_is_never_shown_and_a_damaged_one_is_a_problem(shell: Shell) -> None:
    done = shell.ra("doctor", env={"ANTHROPIC_API_KEY": "sk-secret-1"})
    assert (done.returncode, b"sk-secret-1" in done.stdout) == (0, False)
    code, checks = told(shell, env={"ANTHROPIC_API_KEY": "sk secret"})
    assert (code, verdict(checks, "keys")[0]) == (1, "problem")


def test_a_server_of_ones_own_that_does_not_listen_is_a_problem(shell: Shell) -> None:
    env = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "k"}
    code, checks = told(shell, env=env)
    assert (code, verdict(checks, "model")[0]) == (1, "problem")
    assert "127.0.0.1:9" in verdict(checks, "model")[1]


def test_a_configuration_that_cannot_be_read_is_a_problem(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agent:\n  modle: x\n")
    code, checks = told(shell)
    assert (code, set(checks)) == (1, {"config"})
    assert "ra.yaml:2" in checks["config"][0]["words"]


def test_what_is_not_trusted_is_a_warning(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "hook.py").write_text("def before_model_call(ctx): ...\n")
    (shell.project / "ra.yaml").write_text(
        "agent:\n  middleware: {beforeModelCall: [./hook.py]}\napp: {logLevel: info}\n"
    )
    code, checks = told(shell)
    assert (code, verdict(checks, "trust")[0], verdict(checks, "config")[0]) == (0, "warning", "warning")
    assert "ra trust" in checks["trust"][0]["fix"]


def test_a_store_that_is_damaged_or_open_to_others_is_told(shell: Shell, hello: LoopbackServer) -> None:
    data = Path(shell.env["RA_HOME"])
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    _, checks = told(shell)
    assert verdict(checks, "store") == ("warning", "others can look into it")
    (data / "ra.db").write_bytes(b"rubbish" * 1000)
    code, checks = told(shell)
    assert (code, verdict(checks, "store")[0]) == (1, "problem")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("DELETE FROM words_data WHERE id = 10", "search index"),
        ("UPDATE words_data SET block = x'ff' WHERE id > 10", "search index"),
        (None, "is damaged"),
    ],
)
def test_damage_that_no_listing_of_sessions_meets_is_a_problem(
    shell: Shell, hello: LoopbackServer, damage: str | None, words: str
) -> None:
    assert shell.ra("-p", " ".join(map(str, range(2000)))).returncode == 0
    code, checks = told(shell)
    assert (code, verdict(checks, "store")) == (0, ("ok", checks["store"][0]["words"]))
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'keepers'").fetchone()
        connection.execute(damage or "PRAGMA wal_checkpoint(TRUNCATE)")
    if damage is None:
        with store.open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(b"\xa5" * 4096)
    code, checks = told(shell)
    assert (code, verdict(checks, "store")[0], words in checks["store"][0]["words"]) == (1, "problem", True)


@pytest.mark.skipif(os.getuid() == 0, reason="root can write everywhere")
def test_a_store_that_cannot_be_written_is_a_problem(shell: Shell, hello: LoopbackServer) -> None:
    code, checks = told(shell, env={"RA_HOME": "/proc/nowhere"})
    assert (code, verdict(checks, "store")[0]) == (1, "problem")


def test_the_sandbox_is_tried_out_and_its_limits_are_told(shell: Shell, hello: LoopbackServer) -> None:
    _, checks = told(shell)
    (box,) = checks["sandbox"]
    if shutil.which("bwrap"):
        assert box["words"].startswith("bubblewrap, tested")
        assert box["details"][0].startswith("cannot stop this: ")
    _, checks = told(shell, "--sandbox", "off")
    assert verdict(checks, "sandbox")[0] == "warning"


def test_without_bubblewrap_there_is_no_sandbox_and_the_fix_is_told(shell: Shell, hello: LoopbackServer) -> None:
    _, checks = told(shell, env={"PATH": str(Path(os.__file__).parent)})  # a folder without programs
    (box,) = checks["sandbox"]
    assert box["verdict"] == "warning"
    assert "bubblewrap" in box["fix"]


def test_servers_are_judged_by_what_is_known_of_them(shell: Shell, hello: LoopbackServer) -> None:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    servers = "- {name: a, command: no-such-program}\n    - {name: b, command: sh}\n    - {name: c}\n"
    (folder / "ra.yaml").write_text(f"agent:\n  mcpServers:\n    {servers}")
    code, checks = told(shell)
    assert code == 1
    assert [(check["verdict"], check["words"].partition(":")[0]) for check in checks["mcp"]] == [
        ("problem", "a"),
        ("ok", "b"),
        ("problem", "c"),
    ]


def test_a_rule_that_opens_everything_is_warned_of(shell: Shell, hello: LoopbackServer) -> None:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    (folder / "ra.yaml").write_text("agent:\n  permissions:\n    rules: [{allow: Bash}]\n")
    _, checks = told(shell)
    assert verdict(checks, "rules") == ("warning", "allow Bash gives every command the network")
