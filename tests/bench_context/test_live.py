"""Does `agentx bench context --message …` measure both strategies alike, in process and by a daemon?"""

import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.providers.catalog import cheapest_model
from ra.providers.script import Call, Fault, Step
from ra.testing.server import LoopbackServer
from tests.bench_context.conftest import NO_PLAN, Fake
from tests.cli.conftest import RA, Shell
from tests.server.conftest import Daemon
from tests.session.talk import answering

AGENTX = RA.removesuffix("ra") + "agentx"
MESSAGE = "In one short sentence, what is your role?"
# As the page prints it.
SEED = (
    *("bench", "context", "--agent", "devops-agent", "--message", MESSAGE),
    *("--channel", "bench", "--chat-id", "bench-1", "--runs", "1"),
)
PRICES = Prices({}, None)
HAIKU = cheapest_model("anthropic")


def agentx(shell: Shell, *words: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [AGENTX, *words],
        cwd=shell.project,
        env=shell.env | {"COLUMNS": "140"} | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def measured(shell: Shell, *words: str) -> dict[str, Any]:
    done = agentx(shell, *words, "--json")
    assert done.stderr == ""
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def arm(told: dict[str, Any], strategy: str) -> dict[str, Any]:
    (found,) = (one for one in told["strategies"] if one["strategy"] == strategy)
    assert isinstance(found, dict)
    return found


def billed(usage: dict[str, Any]) -> Decimal:
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreateTokens")
    cost = PRICES.price("claude-opus-4-6", Usage(*(usage[name] for name in names)))
    assert cost is not None
    return cost


@pytest.fixture
def daemon(shell: Shell, opus: LoopbackServer) -> Iterator[Daemon]:
    made = Daemon(shell)
    yield made
    made.end()


# --- what is measured ---


def test_the_command_of_the_page_prints_both_strategies_side_by_side(shell: Shell, opus: LoopbackServer) -> None:
    done = agentx(shell, *SEED)
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split("  ")[0].strip(): line for line in done.stdout.splitlines() if line.startswith(" ")}
    labels = ["input", "output", "cache read", "cache create", "total input", "est. cost", "duration", "errors"]
    assert [label for label in rows if label in labels] == labels
    assert re.search(r"layered\s+planner\s+delta", done.stdout)
    assert "layered: I look after servers." in done.stdout
    assert "planner: I look after servers." in done.stdout
    assert [body["model"] for body in opus.bodies] == ["claude-opus-4-6", HAIKU, "claude-opus-4-6"]


def test_over_five_turns_layered_grows_and_planner_stays_flat(shell: Shell, opus: LoopbackServer) -> None:
    told = measured(shell, *SEED, "--turns", "5", "--warm")
    layered, planner = arm(told, "layered")["turns"], arm(told, "planner")["turns"]
    sizes = [turn["totalInputTokens"] for turn in layered]
    assert all(after > before for before, after in pairwise(sizes))
    plans = [turn["totalInputTokens"] for turn in planner]  # a plan sees at most four messages
    assert max(plans) - min(plans) < (sizes[-1] - sizes[0]) / 2
    assert len(set(plans[2:])) == 1
    assert all(turn["cacheReadTokens"] > 0.9 * turn["totalInputTokens"] for turn in layered[1:])


def test_costs_are_those_of_the_price_table(shell: Shell, opus: LoopbackServer) -> None:
    told = measured(shell, *SEED, "--turns", "5")
    layered, planner = arm(told, "layered"), arm(told, "planner")
    for turn in layered["turns"]:
        assert Decimal(str(turn["cost"])) == billed(turn)
    assert layered["cost"] == pytest.approx(float(sum(billed(turn) for turn in layered["turns"])), abs=1e-9)
    (delta,) = told["delta"]
    assert delta["cost"] == pytest.approx(planner["cost"] - layered["cost"], abs=1e-9)
    assert delta["totalInputTokens"] == planner["totalInputTokens"] - layered["totalInputTokens"]


def test_a_plan_is_paid_for_at_the_price_of_its_model(shell: Shell) -> None:
    turn, plan = Usage(10, 100, 27_000, 1_300), Usage(400, 60)

    def step(body: dict[str, Any]) -> Step:
        return Step(text=NO_PLAN, usage=plan) if body["model"] == HAIKU else Step(text="Servers.", usage=turn)

    with LoopbackServer("anthropic", step) as server:
        shell.serve(server)
        told = measured(shell, *SEED)
    price = PRICES.price(HAIKU, plan)
    assert price is not None
    assert arm(told, "layered")["cost"] == 0.024175
    assert Decimal(str(arm(told, "planner")["cost"])) == Decimal("0.024175") + price
    assert arm(told, "planner")["totalInputTokens"] == turn.total_input + plan.total_input


def test_every_strategy_and_run_has_a_chat_of_its_own(shell: Shell, opus: LoopbackServer) -> None:
    told = measured(shell, *SEED[:-1], "2", "--turns", "2", "--strategies", "timeline,layered")
    chats = {(one["strategy"], turn["run"]): turn["chatId"] for one in told["strategies"] for turn in one["turns"]}
    assert len(set(chats.values())) == len(chats) == 4
    assert all(re.fullmatch(rf"bench-1-{name}-{run}-\w+", chat) for (name, run), chat in chats.items())
    questions = [json.dumps(body["messages"]).count(MESSAGE) for body in opus.bodies]
    assert questions == [1, 2] * 4


def test_messages_follow_each_other_in_a_chat(shell: Shell, opus: LoopbackServer) -> None:
    words = ("bench", "context", "--message", "What is one?", "--message", "And two?", "--strategies", "layered")
    told = measured(shell, "-m", "claude-opus-4-6", *words)
    assert [turn["turn"] for turn in arm(told, "layered")["turns"]] == [1, 2]
    assert "And two?" in json.dumps(opus.bodies[1]["messages"][-1])
    assert told["delta"] == []


def test_a_strategy_file_is_a_strategy(shell: Shell, opus: LoopbackServer) -> None:
    (shell.project / "brief.py").write_text(
        "async def on_context_build(ctx):\n"
        "    ctx.slots.add('system', 'Be brief.', role='system')\n"
        "    ctx.slots.add('input', ctx.input)\n"
        "    return ctx.slots.render()\n"
    )
    told = measured(shell, *SEED, "--strategies", "brief.py,layered")
    brief, layered = told["strategies"]
    assert brief["strategy"] == str(shell.project / "brief.py")
    assert brief["totalInputTokens"] < layered["totalInputTokens"] / 2


def test_nothing_of_it_is_in_the_user_s_history(shell: Shell, opus: LoopbackServer) -> None:
    measured(shell, *SEED)
    assert agentx(shell, "sessions", "list", "--json").stdout.strip() in ("[]", '{"sessions":[]}')


def test_an_unequal_start_is_said_and_a_warm_one_is_equal(shell: Shell, opus: LoopbackServer) -> None:
    (cold,) = measured(shell, *SEED)["notes"]
    assert cold.startswith("Not a fair start: planner found ")
    warm = measured(shell, *SEED, "--warm")
    assert warm["notes"] == []
    assert arm(warm, "layered")["cacheReadTokens"] == arm(warm, "planner")["cacheReadTokens"] > 0


def test_bars_are_drawn(shell: Shell, opus: LoopbackServer) -> None:
    measured(shell, *SEED, "--turns", "3", "--plot", "out.svg")
    drawn = ET.parse(shell.project / "out.svg").getroot()
    bars = drawn.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + 2 * 2 * 3 + 2  # ground, two panels of two strategies and three turns, legend


# --- what the agent may do ---


def writing(body: dict[str, Any]) -> Step:
    """A model that wants to change something, and then tells what came of it."""
    last = body["messages"][-1]["content"][0]
    if last["type"] == "tool_result":
        return Step(text=json.dumps(last["content"])[:200])
    calls = (Call("Bash", {"command": "touch by-bash"}), Call("Write", {"path": "by-write", "content": "x"}))
    return Step(calls=calls)


@pytest.mark.parametrize("where", ["in process", "by a daemon"])
def test_nothing_is_carried_out_unless_told(shell: Shell, where: str) -> None:
    with LoopbackServer("anthropic", writing) as server:
        shell.serve(server)
        words = ["--write", *SEED, "--strategies", "layered,timeline"]
        daemon = Daemon(shell, "--write") if where == "by a daemon" else None
        try:
            done = agentx(shell, *words, "--json", *(["--url", daemon.url] if daemon else []))
            assert done.returncode == 0, done.stderr
            assert sorted(path.name for path in shell.project.iterdir()) == [".git"]
            done = agentx(shell, *words, "--tools", "all", *(["--url", daemon.url] if daemon else []))
            assert (shell.project / "by-write").read_text() == "x"
        finally:
            if daemon:
                daemon.stop()


def test_a_command_gets_a_warning_only_if_it_may_be_carried_out(shell: Shell, opus: LoopbackServer) -> None:
    words = ("bench", "context", "--agent", "devops-agent", "--message", "Please restart daemond", "--json")
    assert agentx(shell, *words).stderr == ""
    assert "reads like a command" in agentx(shell, *words, "--tools", "all").stderr


def test_what_the_project_would_run_must_be_trusted(shell: Shell, opus: LoopbackServer) -> None:
    (shell.project / "ra.yaml").write_text("agent: {middleware: {beforeModelCall: [./hook.py]}}\n")
    (shell.project / "hook.py").write_text("def before_model_call(ctx): pass\n")
    done = agentx(shell, *SEED)
    assert (done.returncode, opus.requests) == (4, [])
    assert "ra trust" in done.stderr


# --- by a daemon ---


def test_a_daemon_is_asked_in_chats_of_its_own(shell: Shell, daemon: Daemon) -> None:
    first = measured(shell, *SEED, "--turns", "5", "--url", daemon.url)
    layered, planner = arm(first, "layered"), arm(first, "planner")
    sizes = [turn["totalInputTokens"] for turn in layered["turns"]]
    assert all(after > before for before, after in pairwise(sizes))
    for turn in layered["turns"]:
        assert Decimal(str(turn["cost"])) == billed(turn)
    assert {turn["strategy"] for turn in planner["turns"]} == {"planner"}
    again = measured(shell, *SEED, "--turns", "1", "--url", daemon.url)
    assert arm(again, "layered")["turns"][0]["totalInputTokens"] - sizes[0] in range(-5, 6)  # not the old chat
    chats = [one["chatId"] for one in daemon.get("/sessions?limit=50")["sessions"]]
    assert len(set(chats)) == len(chats) == 4


def test_a_token_of_this_machine_is_found_and_a_wrong_one_is_refused(shell: Shell, opus: LoopbackServer) -> None:
    daemon = Daemon(shell, "--token", "a-token-of-the-user")
    try:
        wrong = agentx(shell, *SEED, "--url", daemon.url, "--token", "wrong-wrong-wrong-wrong")
        assert wrong.returncode == 4
        assert wrong.stderr.splitlines() == [
            f"agentx: {daemon.url}: The token is wrong. Give the daemon's token with --token or RA_SERVE_TOKEN."
        ]
        right = agentx(shell, *SEED, "--url", daemon.url, env={"RA_SERVE_TOKEN": "a-token-of-the-user"})
        assert right.returncode == 0
    finally:
        daemon.stop()


def test_the_stored_token_is_shown_only_to_who_asks_for_it(shell: Shell) -> None:
    asked: list[str] = []
    usage = {"inputTokens": 3, "outputTokens": 1, "cacheReadTokens": 0, "cacheCreateTokens": 0}
    told = {"content": "hi", "duration": 0.1, "usage": usage, "cost": None, "strategy": "layered"}
    (Path(shell.env["RA_HOME"])).mkdir()
    (Path(shell.env["RA_HOME"]) / "serve.token").write_text("stored-stored-stored\n")

    def answer(headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked.append(headers.get("authorization", ""))
        return (200, told) if asked[-1] else (401, {"error": "This needs the token."})

    with Fake(answer) as fake:
        done = agentx(shell, *SEED, "--url", fake.url, "--json")
    assert done.returncode == 0
    assert asked == ["", "Bearer stored-stored-stored", "Bearer stored-stored-stored"]
    assert arm(json.loads(done.stdout), "layered")["cost"] is None


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("http://127.0.0.1:9", 1, "No daemon answers at http://127.0.0.1:9: Connection refused. Start one"),
        ("http://host.invalid", 1, "No daemon answers at http://host.invalid"),
        ("127.0.0.1:18800", 2, "is not a daemon's address; write it like"),
        ("http://127.0.0.1:port", 2, "is not a daemon's address; write it like"),
        ("http://[::1", 2, "is not a daemon's address; write it like"),
    ],
)
def test_a_daemon_that_is_not_there(shell: Shell, url: str, code: int, said: str) -> None:
    done = agentx(shell, *SEED, "--url", url)
    assert (done.returncode, len(done.stderr.splitlines()), done.stdout) == (code, 1, "")
    assert said in done.stderr


@pytest.mark.parametrize("answer", [(200, {}), (404, {"detail": "Not Found"}), (302, None), (200, ["x"])])
def test_a_server_that_is_no_daemon(shell: Shell, answer: tuple[int, Any]) -> None:
    with Fake(lambda _: answer) as fake:
        done = agentx(shell, *SEED, "--url", fake.url)
    assert done.returncode == 2
    assert f"{fake.url} answered {answer[0]} and is not an agentx daemon" in done.stderr


def test_a_busy_daemon_is_waited_for(shell: Shell) -> None:
    busy = iter([(429, {"error": "Busy."})])
    with Fake(lambda _: next(busy, (200, {"content": "hi", "cost": 0.5}))) as fake:
        told = measured(shell, *SEED, "--url", fake.url)
    assert [one["cost"] for one in told["strategies"]] == [0.5, 0.5]


# --- mistakes and failures ---


@pytest.mark.parametrize("remote", [False, True])
def test_an_unknown_agent_is_one_line(shell: Shell, daemon: Daemon, remote: bool) -> None:
    words = [word.replace("devops-agent", "nobody") for word in SEED]
    done = agentx(shell, *words, *(["--url", daemon.url] if remote else []))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "No agent is named 'nobody'" in done.stderr
    assert "devops-agent" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--strategies", "planer"), "--strategies is 'planer'; use timeline, layered, planner"),
        (("--strategies", "layered,layered"), "names 'layered' twice"),
        (("--strategies", "mine.py", "--url", "http://127.0.0.1:9"), "a daemon runs no files"),
        (("--strategies", "mine.py"), "There is no file"),
        (("--plot", "out.pdf"), "its name must end in .svg"),
        (("--trace", "x.jsonl"), "--message asks a live agent"),
        (("--message", " "), "--message is empty"),
        (("--runs", "0"), "--runs"),
    ],
)
def test_mistakes_name_their_fix(shell: Shell, opus: LoopbackServer, words: tuple[str, ...], said: str) -> None:
    done = agentx(shell, *SEED, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert opus.requests == []


def test_errors_are_counted_and_only_turns_that_all_answered_are_compared(shell: Shell) -> None:
    second = {1: Fault("status", status=404, message="no such thing")}
    with LoopbackServer("anthropic", answering(NO_PLAN), faults=second) as server:
        shell.serve(server)
        told = measured(shell, *SEED, "--turns", "3")
    layered, planner = told["strategies"]
    assert (layered["errors"], planner["errors"]) == (1, 0)
    assert (layered["compared"], planner["compared"]) == (2, 2)
    assert [bool(turn.get("error")) for turn in layered["turns"]] == [False, True, False]
    assert "no such thing" in layered["turns"][1]["error"]
    assert told["notes"][0] == "Sums are over the 2 turns that every strategy answered."


def test_a_strategy_without_any_answer_is_a_failure(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="x"), api_key="another") as server:
        shell.serve(server)
        done = agentx(shell, *SEED)
    assert done.returncode == 1
    assert re.search(r"layered failed \(run 1, turn 1\): \S+", done.stdout)


def test_a_turn_without_a_plan_is_said(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering("I cannot plan.")) as server:
        shell.serve(server)
        told = measured(shell, *SEED, "--turns", "2")
    assert arm(told, "planner")["fallbacks"] == 2
    assert "planner had no plan and was layered in 2 of 2 turns" in told["notes"][0]


def test_ctrl_c_prints_what_was_measured(shell: Shell) -> None:
    def step(body: dict[str, Any]) -> Step:
        late = json.dumps(body["messages"]).count(MESSAGE) > 2
        return Step(text="Servers.", delay_s=30 if late else 0)

    with LoopbackServer("anthropic", step) as server:
        shell.serve(server)
        words = [AGENTX, *SEED, "--turns", "5", "--json"]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, cwd=shell.project, env=shell.env, stdout=pipe, stderr=pipe) as process:
            end = time.monotonic() + 20
            while len(server.requests) < 3 and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")
    told = json.loads(out)
    assert told["interrupted"]
    assert told["notes"] == [
        "Interrupted after 2 of 10 turns.",
        "There is nothing to compare: planner answered no turn.",
    ]
    assert told["delta"][0]["cost"] is None
    assert [len(one["turns"]) for one in told["strategies"]] == [2, 0]
