"""What does not fit is shortened, or refused in a sentence that says what does not fit: never a loop, never a crash."""

from pathlib import Path

import pytest

from ra.context.settings import COMPACTIONS
from ra.core.value import JsonObject, encode
from ra.providers.script import Call, Fault, Step
from ra.testing.server import DialectName, LoopbackServer
from tests.context_e2e.longrun import ANSWER, PROMPT, Strict, counted, plant, reading
from tests.session.scenario import ended, run, world

DIALECTS: tuple[DialectName, ...] = ("anthropic", "openai-chat")
MOST_REFUSALS = 1  # it teaches the window

TOOL = '''
def dump(size: int) -> str:
    """Prints much text.

    size: how many lines
    """
    return "".join(f"{line} the quick brown fox jumps over the lazy dog\\n" for line in range(size))
'''


def answering(_: int, body: JsonObject) -> Step:
    return Step(text=ANSWER)


@pytest.mark.parametrize("strategy", COMPACTIONS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_first_prompt_five_times_the_window_is_answered(tmp_path: Path, dialect: DialectName, strategy: str) -> None:
    prompt = "BEGIN " + "all the words of a long book " * 6000 + " END"
    with Strict(dialect, answering, 8000) as server:
        last = ended(run(world(tmp_path, server, dialect, compaction__strategy=strategy), prompt))
    assert (last.outcome, last.answer) == ("answered", ANSWER)
    assert len(server.refused) <= MOST_REFUSALS
    assert all(word in server.turns[0] for word in ("BEGIN", "END"))


@pytest.mark.parametrize("strategy", COMPACTIONS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tool_result_twenty_times_the_window_is_answered(tmp_path: Path, dialect: DialectName, strategy: str) -> None:
    steps = [Step(calls=(Call("dump", {"size": 14_000}),)), Step(calls=(Call("dump", {"size": 14_001}),))]
    (tmp_path / "dump.py").write_text(TOOL)
    with Strict(dialect, lambda turn, _: [*steps, Step(text=ANSWER)][turn - 1], 8000) as server:
        app = world(tmp_path, server, dialect, compaction__strategy=strategy, tools__custom=[str(tmp_path / "dump.py")])
        last = ended(run(app, "Dump it, twice."))
    assert (last.outcome, last.answer, last.error) == ("answered", ANSWER, "")
    assert len(server.refused) <= MOST_REFUSALS
    assert "13999 the quick" in server.turns[1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_of_2000_with_1500_tokens_of_tools_is_refused_with_a_sentence(
    tmp_path: Path, dialect: DialectName
) -> None:
    (tmp_path / "more.py").write_text(
        "\n".join(f'def tool_{n}(path: str, lines: int) -> str:\n    """{"Does a thing. " * 8}"""\n' for n in range(10))
    )
    with Strict(dialect, answering, 2000) as server:
        app = world(tmp_path, server, dialect, tools__custom=[str(tmp_path / "more.py")])
        last = ended(run(app, "Hello? " * 400))
    assert (last.outcome, last.answer) == ("failed", "")
    assert "tool definitions" in last.error
    assert "--no-tools" in last.error
    assert len(server.refused) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_of_2000_without_tools_is_enough_for_a_talk_of_any_length(
    tmp_path: Path, dialect: DialectName
) -> None:
    with Strict(dialect, answering, 2000) as server:
        app = world(tmp_path, server, dialect)
        app.options = type(app.options)(tools=False)
        session = ended(run(app, "First: " + "word " * 100)).session
        for number in range(12):
            last = ended(run(app, f"And {number}? " + "more words " * 120, resume=session))
            assert (last.outcome, last.answer) == ("answered", ANSWER)
    assert len(server.refused) <= MOST_REFUSALS
    assert all("First: " in text for text in server.turns)


def test_a_server_that_refuses_everything_as_too_long_is_not_asked_for_ever(tmp_path: Path) -> None:
    with Strict("anthropic", answering, 1) as server:
        last = ended(run(world(tmp_path, server, "anthropic"), "Hello " * 500))
    assert last.outcome == "failed"
    assert len(server.refused) <= 4
    assert encode(last.error) != b'""'


def test_a_server_that_names_no_limit_is_fitted_all_the_same(tmp_path: Path) -> None:
    def too_large(_: int, body: JsonObject) -> Fault | None:
        refused = counted(8000, 1.3)(encode(body).decode()) > 8000
        return Fault("status", 400, message="Input is too long for requested model.") if refused else None

    steps = reading(40)
    turns = iter(range(1, 100))
    with LoopbackServer("anthropic", lambda body: steps(next(turns), body), faults=too_large) as server:
        app = world(tmp_path, server, "anthropic")
        plant(app.resolved.root, 40, 400)
        last = ended(run(app, PROMPT))
        sizes = [counted(8000, 1.3)(encode(body).decode()) for body in server.bodies]
    assert (last.outcome, last.answer) == ("answered", ANSWER)
    assert sum(size > 8000 for size in sizes) == 1
