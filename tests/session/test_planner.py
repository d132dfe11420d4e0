"""Does the planner read any answer, end in time, retrieve only what was asked for, and fall back to layered?"""

import json
import time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compose.planner import Plan, Unplanned, read, request
from ra.core.facts import Configured, EntryRemoved, EntrySet, Spent
from ra.core.messages import say
from ra.core.model import Usage
from ra.core.secrets import REDACTED, redact
from ra.costs.prices import Prices
from ra.providers.script import Fault, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.billing import prompt_cache
from tests.session.talk import Talk, answering, shown

PLAN = '{"recentTurns": 2, "memory": {"include": true, "query": "role"}, "crossChat": false, "reasoning": "asks back"}'
NOTHING = '{"recentTurns": 0, "memory": {"include": false}, "crossChat": false, "reasoning": "stands alone"}'


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        (PLAN, Plan(2, "role", reasoning="asks back")),
        (f"```json\n{PLAN}\n```", Plan(2, "role", reasoning="asks back")),
        (f"Sure! Here {{is}} the plan: {PLAN} Hope it helps.", Plan(2, "role", reasoning="asks back")),
        ('{"recentTurns": 9}', Plan(6)),
        ('{"recentTurns": -3}', Plan(0)),
        ('{"recentTurns": "abc"}', Plan(3)),
        ('{"recentTurns": "4"}', Plan(4)),
        ('{"recentTurns": null, "crossChat": "yes"}', Plan(3, cross_chat=True)),
        ('{"recentTurns": true}', Plan(3)),
        ('{"recentTurns": NaN}', Plan(3)),
        ('{"recentTurns": 1e999}', Plan(6)),
        (f'{{"recentTurns": 1{"0" * 400}}}', Plan(6)),  # more digits than a float holds
        ('{"memory": {"include": true}}', Plan(3)),
        ('{"memory": "yes"}', Plan(3)),
        ("{}", Plan(3)),
    ],
)
def test_every_answer_that_holds_a_plan_is_read(answer: str, plan: Plan) -> None:
    assert read(answer) == plan


@pytest.mark.parametrize(
    "answer", ["", "   ", "I cannot do that.", "[1, 2]", '{"error": "overloaded"}', '{"recentTurns":']
)
def test_an_answer_without_a_plan_is_none(answer: str) -> None:
    with pytest.raises(Unplanned):
        read(answer)


@given(st.text(max_size=200) | st.text('{}[]":,recntTus 0123456789', max_size=80))
@settings(max_examples=100, deadline=None)
def test_no_answer_breaks_the_reader(answer: str) -> None:
    try:
        plan = read(answer)
    except Unplanned:
        return
    assert 0 <= plan.recent_turns <= 6


def test_the_small_call_is_small() -> None:
    tail = [say("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 1000) for n in range(10)]
    made = request("small", tail, say("user", "y" * 5000), max_output=256)
    text = made.messages[0].text
    assert made.max_output == 256
    assert [line[:12] for line in text.splitlines()[1:5]] == [
        "user: 6 xxxx",
        "assistant: 7",
        "user: 8 xxxx",
        "assistant: 9",
    ]
    assert all(len(line) <= 211 for line in text.splitlines()[1:5])
    assert text.count("y") == 1500


# --- in the running agent ---


def talk(shell: Shell, server: LoopbackServer, **more: object) -> Talk:
    return Talk(shell, server, agent__model="claude-opus-4-6", session__contextStrategy="planner", **more)


def strategies(chat: Talk) -> list[str]:
    return [fact.strategy for fact in chat.facts() if isinstance(fact, Configured)]


def test_a_plan_decides_what_the_turn_sees(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering(PLAN)) as server:
        chat = talk(shell, server)
        for number in range(4):
            chat.say(f"question number {number}")
    last = chat.bodies[-1]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert "question number 0" not in shown(last)
    assert [shown(last).count(f"question number {n}") for n in (1, 2, 3)] == [1, 1, 1]
    assert chat.lines[-1].startswith("[ops] planner: turns=2, mem=yes, xchat=no (")
    assert chat.lines[-1].endswith("ms) — asks back")
    for section in ("[Channel]", "[Scope]", "[Landscape]", "[Identity]", "[Intent]"):
        assert shown(last).count(section) == 1
    assert server.bodies[0]["max_tokens"] == 256
    assert "tools" not in server.bodies[0]


def test_its_cost_is_in_the_ledger(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering(NOTHING)) as server:
        chat = talk(shell, server)
        ended = chat.say("hello")
    bills = [fact for fact in chat.facts() if isinstance(fact, Spent)]
    assert [(bill.purpose, bill.model) for bill in bills] == [
        ("planner", "claude-haiku-5-5"),
        ("turn", "claude-opus-4-6"),
    ]
    assert Decimal(ended.dollars) == sum(Decimal(bill.dollars) for bill in bills)
    assert Decimal(bills[0].dollars) > 0


@pytest.mark.parametrize(
    "plan",
    [
        Step(text="no plan at all"),
        Step(text=""),
        Step(fault=Fault("status", status=500)),
        Step(fault=Fault("status", status=401)),
        Step(fault=Fault("cut", after_bytes=10)),
        Step(text=PLAN, delay_s=20),
        Step(text=PLAN, fault=Fault("stall", after_bytes=300)),
    ],
    ids=["prose", "empty", "500", "401", "cut", "slow", "stalled"],
)
def test_any_failure_makes_the_turn_layered(shell: Shell, plan: Step) -> None:
    shell.env["AGENTX_PLANNER_DEBUG"] = "1"
    with LoopbackServer("anthropic", answering(plan)) as server:
        chat = talk(shell, server, session__planner__timeout=1)
        chat.say("the first question")
        began = time.monotonic()
        ended = chat.say("the second question")
        assert time.monotonic() - began < 15
    assert ended.outcome == "answered"
    assert strategies(chat)[-1] == "layered"
    assert [shown(chat.bodies[-1]).count(f"the {which} question") for which in ("first", "second")] == [1, 1]
    assert chat.lines[-1].startswith("[ops] planner failed, layered for this turn: ")


def test_turns_without_a_plan_rotate_as_layered_ones_do(shell: Shell) -> None:
    """Where no plan ever comes, every turn is replayed: it must not grow for ever, and the log must not lie."""
    with LoopbackServer("anthropic", answering("prose")) as server:
        chat = talk(shell, server, session__maxTurnsPerSession=2)
        for number in range(5):
            chat.say(f"question {number}")
    rotations = [line for line in chat.lines if "rotation" in line]
    assert rotations == ["[ops] max-turns rotation for telegram:42 — 2 turns"] * 2


def test_a_turn_that_fails_is_not_told_the_tokens_of_the_one_before(shell: Shell) -> None:
    answers = iter([Step(text="fine"), Step(fault=Fault("status", 400))])

    def step(body: dict[str, object]) -> Step:
        return Step(text=NOTHING) if "haiku" in str(body["model"]) else next(answers)

    with LoopbackServer("anthropic", step) as server:
        chat = talk(shell, server, session__tierTwoThresholdTokens=50_000)
        outcomes = [chat.say(prompt).outcome for prompt in ("word " * 50_000, "and now?")]
    assert outcomes == ["answered", "failed"]
    assert len([line for line in chat.lines if "TIER-2 HIT" in line]) == 1


def test_one_turn_without_a_plan_among_planned_ones_does_not_rotate(shell: Shell) -> None:
    plans = iter([NOTHING, NOTHING, NOTHING, "prose", NOTHING])

    def step(body: dict[str, object]) -> Step:
        return Step(text=next(plans)) if "haiku" in str(body["model"]) else Step(text="fine")

    with LoopbackServer("anthropic", step) as server:
        chat = talk(shell, server, session__maxTurnsPerSession=3)
        for number in range(5):
            chat.say(f"question {number}")
    assert [line for line in chat.lines if "rotation" in line] == []


def test_without_the_debug_switch_a_failure_is_silent(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering("prose")) as server:
        chat = talk(shell, server)
        chat.say("hello")
    assert (chat.lines, chat.warnings) == ([], [])


def test_after_a_failure_history_holds_what_the_replay_does_not(shell: Shell) -> None:
    plans = iter([NOTHING, NOTHING, "prose"])

    def step(body: dict[str, object]) -> Step:
        return Step(text=next(plans)) if "haiku" in str(body["model"]) else Step(text="fine")

    with LoopbackServer("anthropic", step) as server:
        chat = talk(shell, server)
        for prompt in ("my cat is called Momo", "what is two and two", "what is the name of my cat"):
            chat.say(prompt)
    assert "Momo" not in shown(chat.bodies[1])
    assert shown(chat.bodies[2]).count("my cat is called Momo") == 1
    assert "[Earlier in this chat]" in shown(chat.bodies[2])
    assert shown(chat.bodies[2]).count("what is the name of my cat") == 1


def test_a_script_plays_plan_and_answer_in_turn(shell: Shell) -> None:
    (shell.project / "play.yaml").write_text(f"- text: '{NOTHING}'\n- text: the answer\n")
    done = shell.ra("--provider", "scripted", "-m", "play.yaml", "--context-strategy", "planner", "hello")
    assert (done.stdout, done.returncode) == (b"the answer\n", 0)


def test_a_dry_run_asks_nobody(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering(PLAN)) as server:
        shell.serve(server)
        done = shell.ra("--dry-run", "--context-strategy", "planner", "hello")
    assert (done.returncode, server.bodies) == (0, [])
    assert b"channel" in done.stdout


# --- memory ---


def remembering(query: str) -> str:
    return json.dumps({"recentTurns": 0, "memory": {"include": True, "query": query}, "crossChat": True})


def test_memory_is_searched_over_sessions_and_entries_in_every_script(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering(remembering("数据库 端口"), "ok")) as server:
        old = talk(shell, server)
        old.say("数据库的端口是 5433")
        app = old.app()
        timeline = app.store.open(old.session or "", write=True)
        timeline.append(EntrySet("db", "数据库 端口: 6000"), EntryRemoved("db"), EntrySet("db2", "数据库 端口: 7000"))
        timeline.close()
        new = talk(shell, server)
        new.say("which port?")
    last = shown(new.bodies[-1])
    assert "[Memory" in last
    assert "5433" in last
    assert "7000" in last
    assert "6000" not in last  # it was removed
    assert "[Other conversations of this project]" in last
    assert last.count("which port?") == 1


def test_memory_does_not_repeat_the_turns_that_are_there_word_for_word(shell: Shell) -> None:
    plan = json.dumps({"recentTurns": 1, "memory": {"include": True, "query": "port"}})
    with LoopbackServer("anthropic", answering(plan, "fine")) as server:
        chat = talk(shell, server)
        for prompt in ("the old port is 5432", "the new port is 5433", "which port?"):
            chat.say(prompt)
    last = shown(chat.bodies[-1])
    assert (last.count("the old port is 5432"), last.count("the new port is 5433")) == (1, 1)


def test_half_a_character_in_a_plan_does_not_end_the_run(shell: Shell) -> None:
    plan = '{"recentTurns": 1, "memory": {"include": true, "query": "\\ud800 port"}, "reasoning": "\\udc00"}'
    with LoopbackServer("anthropic", answering(plan, "ok")) as server:
        chat = talk(shell, server)
        assert chat.say("which port?").outcome == "answered"


def test_at_most_five_hits_and_no_secrets(shell: Shell) -> None:
    with LoopbackServer("anthropic", answering(remembering("deploy token"), "ok")) as server:
        for number in range(8):
            talk(shell, server).say(f"deploy {number}: the token is sk-ant-{'a1B2' * 8}{number}")
        chat = talk(shell, server)
        chat.say("go on")
    memory = next(
        block["text"]
        for message in chat.bodies[-1]["messages"]
        for block in message["content"]
        if block["text"].startswith("[Memory")
    )
    assert len(memory.splitlines()) == 6
    assert "sk-ant" not in shown(chat.bodies[-1])
    assert REDACTED in memory


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-AbCdEfGhIjKl",
        "ghp_abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_nature",
        "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lz",
    ],
)
def test_what_looks_like_a_secret_is_redacted(secret: str) -> None:
    assert secret not in redact(f"use {secret} for it")
    assert redact("password: hunter2!") == f"password: {REDACTED}"
    assert redact("postgres://ana:geheim@db/x") == f"postgres://{REDACTED}@db/x"


def test_plain_words_are_left_as_they_are() -> None:
    text = "commit 8ca7a14d1f0e3b5a9c2d4e6f8a0b1c2d3e4f5a6b changed ra/session/loop.py; tokens: 12 of 200"
    assert redact(text) == text


# --- the five turns of the page ---

ROLE = "You are devops-agent. You look after servers.\n" + "\n".join(
    f"Rule {n}: check host{n}.example first." for n in range(900)
)


def five_turns(shell: Shell, strategy: str, *, rotate_at: int | None = None) -> tuple[Talk, list[list[Spent]]]:
    with LoopbackServer("anthropic", answering(NOTHING), cache=prompt_cache("claude-opus-4-6")) as server:
        more = {"session__maxTurnsPerSession": rotate_at} if rotate_at else {}
        chat = Talk(shell, server, agent__model="claude-opus-4-6", agent__systemPrompt=ROLE, **more)
        bills: list[list[Spent]] = []
        for _ in range(5):
            known = sum(map(len, bills))
            chat.say("In one short sentence, what is your role?", strategy)
            bills.append([fact for fact in chat.facts() if isinstance(fact, Spent)][known:])
    return chat, bills


def totals(bills: list[list[Spent]]) -> list[int]:
    return [bill.usage.total_input for turn in bills for bill in turn if bill.purpose == "turn"]


def price(usage: Usage) -> Decimal:
    """The page's table: dollars per million tokens of Opus 4.6."""
    rates = ((usage.input, "5"), (usage.output, "25"), (usage.cache_read, "0.5"), (usage.cache_write, "6.25"))
    return sum((count * Decimal(rate) for count, rate in rates), Decimal(0)) / 1_000_000


def test_layered_grows_by_the_turn_and_its_replay_is_cached(shell: Shell) -> None:
    chat, bills = five_turns(shell, "layered")
    sizes = totals(bills)
    assert sizes == sorted(set(sizes))
    growth = [b - a for a, b in pairwise(sizes)]
    assert max(growth) < 100
    for turn in bills[1:]:
        assert turn[0].usage.cache_read > 0.95 * turn[0].usage.total_input
    for turn in bills:
        assert Decimal(turn[0].dollars) == price(turn[0].usage)
    assert all(shown(body).count("[Channel]") == 1 for body in chat.bodies)


def test_planner_stays_flat(shell: Shell) -> None:
    chat, bills = five_turns(shell, "planner")
    assert len(set(totals(bills))) == 1
    assert [[bill.purpose for bill in turn] for turn in bills] == [["planner", "turn"]] * 5
    for turn in bills:
        assert Decimal(turn[1].dollars) == price(turn[1].usage)
    assert all(shown(body).count("In one short sentence, what is your role?") == 1 for body in chat.bodies)


def test_layered_with_a_rotation_in_the_middle(shell: Shell) -> None:
    chat, bills = five_turns(shell, "layered", rotate_at=3)
    sizes = totals(bills)
    assert "[ops] max-turns rotation for telegram:42 — 3 turns" in chat.lines
    assert sizes[:3] == sorted(sizes[:3])
    assert bills[3][0].usage.cache_read > 0.8 * sizes[3]  # the system part is still in the cache
    for turn in bills:
        assert Decimal(turn[0].dollars) == price(turn[0].usage)


def test_the_price_table_is_the_page_s(tmp_path: Path) -> None:
    usage = Usage(10, 100, 27_000, 1_300)
    assert Prices({}, tmp_path / "prices.json").price("claude-opus-4-6", usage) == price(usage) == Decimal("0.024175")
