"""Does a conversation go on in a new segment when, and only when, its limits say so? And is nothing lost?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compose.rotation import RotationLimits, Segment, due, limits, rotate
from ra.context.recall import recall
from ra.context.settings import SessionSettings
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.events import Rotated as RotatedEvent
from ra.core.facts import EntrySet, Fact, Rotated, Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say
from ra.core.model import Usage
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.talk import Talk, shown

ALL = RotationLimits(stale_s=45 * 60, tokens=180_000, turns=15)
NOW = 1_000_000.0


def segment(*, turns: int = 1, idle_s: float = 0.0, tokens: int = 0) -> Segment:
    made = Segment()
    made.turns, made.heard, made.last = turns, NOW - idle_s, Usage(cache_read=tokens)
    return made


@pytest.mark.parametrize(
    ("given_segment", "reason"),
    [
        (segment(idle_s=44 * 60), None),
        (segment(idle_s=45 * 60), None),
        (segment(idle_s=45 * 60 + 1), "stale"),
        (segment(idle_s=46 * 60), "stale"),
        (segment(tokens=179_999), None),
        (segment(tokens=180_000), "tier-2"),
        (segment(turns=14), None),
        (segment(turns=15), "max-turns"),
        (segment(turns=15, tokens=180_000, idle_s=46 * 60), "stale"),
        (segment(turns=15, tokens=180_000), "tier-2"),
        (segment(turns=0, idle_s=46 * 60), None),
    ],
)
def test_triggers_in_their_order_with_their_bounds(given_segment: Segment, reason: str | None) -> None:
    assert due(given_segment, ALL, now=NOW) == reason


def test_which_limits_hold_under_which_strategy() -> None:
    unset, some = SessionSettings(), SessionSettings(stale_minutes=10, max_turns_per_session=3)
    assert limits(unset, "layered") == RotationLimits(2700, 180_000, 15)
    assert limits(some, "layered") == RotationLimits(600, 180_000, 3)
    assert limits(unset, "timeline") == RotationLimits()
    assert limits(some, "timeline") == RotationLimits(600, None, 3)
    assert limits(some, "planner") == RotationLimits()


def test_what_a_tool_or_a_note_records_is_no_sign_of_life() -> None:
    fold = Segment()
    call = ToolCall("c", "Bash", {})
    for time, fact in [
        (1.0, Said(say("user", "go"))),
        (2.0, Said(Message("assistant", (call,)))),
        (9.0, Said(result(call, "interrupted"))),
        (9.5, EntrySet("a", "b")),
    ]:
        fold.apply(TimelineEvent(int(time), time, fact))
    assert fold.heard == 2.0


# --- the hand-over ---

estimator = Estimator()


def view(*facts: Fact) -> View:
    made = View(estimator)
    for at, fact in enumerate(facts, 1):
        made.apply(TimelineEvent(at, 0.0, fact))
    return made


def turn(number: int, words: int = 5) -> list[Fact]:
    return [
        Said(say("user", f"question {number} " + "why " * words)),
        Said(say("assistant", f"answer {number} " + "so " * words)),
    ]


def test_the_newest_whole_turns_stay_and_the_rest_is_indexed() -> None:
    before = view(*(fact for number in range(10) for fact in turn(number, 60)))
    fact = rotate(before, "max-turns", Segment(), history=400, estimator=estimator)
    after = before.after(fact)
    texts = [message.text for message in after.messages]
    assert texts[0].startswith("[A new segment of this conversation begins here. What came before (#1-")
    assert [text.split(" why")[0] for text in texts[1::2]] == ["question 8", "question 9"]
    assert "question 0" not in " ".join(texts[1:])


def test_a_newest_turn_that_is_too_large_is_there_in_words_without_its_tools() -> None:
    call = ToolCall("c", "Bash", {"command": "cat big"})
    before = view(
        Said(say("user", "look at the big file")),
        Said(Message("assistant", (Text("Looking."), call))),
        Said(result(call, "x " * 5000)),
        Said(say("assistant", "It holds the letter x.")),
    )
    fact = rotate(before, "tier-2", Segment(), history=300, estimator=estimator)
    assert fact.keep_from == 5
    assert "user: look at the big file" in fact.handover
    assert "assistant: It holds the letter x." in fact.handover
    assert "x x x" not in fact.handover
    assert 'recall("#N")' in fact.handover


sizes = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=12)


@given(sizes, st.integers(20, 1500))
@settings(max_examples=80, deadline=None)
def test_a_new_segment_is_small_and_has_the_newest_turn(turns: list[tuple[int, int]], history: int) -> None:
    facts: list[Fact] = []
    for number, (asked, answered) in enumerate(turns):
        facts += [
            Said(say("user", f"question {number} " + "why " * asked)),
            Said(say("assistant", f"answer {number} " + "so " * answered)),
        ]
    before = view(EntrySet("k", "kept words"), *facts)
    fact = rotate(before, "stale", Segment(), history=history, estimator=estimator, window=20_000)
    after = before.after(fact)
    everything = " ".join(message.text for message in after.messages)
    assert "kept words" in " ".join(section.content for section in after.sections)
    assert estimator.messages(after.messages) <= history + 1_500 + 2_000 + 250  # digest and quotes besides
    if history >= 100:
        assert f"question {len(turns) - 1}" in everything
        assert f"answer {len(turns) - 1}" in everything


# --- in the running agent ---


def talk(shell: Shell, server: LoopbackServer, **settings: object) -> Talk:
    return Talk(shell, server, agent__model="claude-opus-4-6", **settings)


def rotations(given_talk: Talk) -> list[str]:
    return [fact.reason for fact in given_talk.facts() if isinstance(fact, Rotated)]


def test_idle_minutes_over_restarts_and_midnight(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text=f"answer {len(body['messages'])}")) as server:
        chat = talk(shell, server)
        chat.now += 16 * 3600 - 20 * 60  # 23:40 UTC
        chat.say("first words", "layered")
        chat.now += 44 * 60  # past midnight
        chat.say("second words", "layered")
        assert rotations(chat) == []
        chat.now += 46 * 60
        chat.say("third words", "layered")
    assert rotations(chat) == ["stale"]
    assert [type(event) for event in chat.events].count(RotatedEvent) == 1
    last = shown(chat.bodies[-1])
    assert all(words in last for words in ("first words", "second words", "third words"))
    assert last.count("third words") == 1
    assert chat.lines == ["[ops] stale rotation for telegram:42 — idle for 46 minutes"]


@pytest.mark.parametrize(("tokens", "reasons"), [(179_999, []), (180_000, ["tier-2"])])
def test_the_last_turn_s_total_input(shell: Shell, tokens: int, reasons: list[str]) -> None:
    usage = Usage(input=9, output=5, cache_read=tokens - 100, cache_write=91)
    with LoopbackServer("anthropic", lambda body: Step(text="ok", usage=usage)) as server:
        chat = talk(shell, server)
        chat.say("one", "layered")
        chat.say("two", "layered")
    assert rotations(chat) == reasons
    expected = [
        "[ops] TIER-2 HIT on telegram:42: 180000 total input tokens (input=9, cacheRead=179900, cacheCreate=91) "
        "— next turn will rotate",
        "[ops] tier-2 rotation for telegram:42 — prior turn had 180000 total input tokens",
    ]
    assert chat.lines[:2] == (expected if reasons else [])


def test_the_fifteenth_turn_goes_on_and_the_sixteenth_opens_a_segment(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="yes, sir")) as server:
        chat = talk(shell, server)
        for number in range(1, 16):
            chat.say(f"order number {number}", "layered")
        assert rotations(chat) == []
        chat.say("order number 16", "layered")
    assert rotations(chat) == ["max-turns"]
    assert chat.lines == ["[ops] max-turns rotation for telegram:42 — 15 turns"]
    last = shown(chat.bodies[-1])
    assert "order number 15" in last
    assert last.count("order number 16") == 1


def test_entries_are_in_the_first_request_of_the_new_segment_and_all_can_be_recalled(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="noted")) as server:
        chat = talk(shell, server, session__maxTurnsPerSession=2)
        chat.say("a secret handshake " + "word " * 3000)
        app = chat.app()
        timeline = app.store.open(chat.session or "", write=True)
        timeline.append(EntrySet("tone", "Answer like a pirate."))
        timeline.close()
        chat.say("second")
        chat.say("third")
        assert rotations(chat) == ["max-turns"]
        assert "Answer like a pirate." in shown(chat.bodies[-1])
        assert shown(chat.bodies[-1]).count("word") < 450
        read = recall("#1", app.store.open(chat.session or "", write=False))
    assert "a secret handshake" in read
    assert read.count("word ") >= 2990


def test_a_rotation_keeps_the_system_part_as_it_was(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="ok")) as server:
        chat = talk(shell, server, session__maxTurnsPerSession=2)
        for prompt in ("one", "two", "three"):
            chat.say(prompt, "layered")
    systems = [[block["text"] for block in body["system"]] for body in chat.bodies]
    assert systems[0] == systems[2]
