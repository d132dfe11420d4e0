"""What users of other libraries write first is refused with what does the same here."""

import asyncio
import inspect
from typing import Any

import pytest

import ra
from ra import Agent, Answer, Question, Usage, UserError
from ra.library import guesses
from ra.testing import Call, ScriptedProvider, Step


def agent(*steps: Step, **options: Any) -> Agent:
    return Agent(provider=ScriptedProvider(steps or [Step(text="Fine.")]), save=False, **options)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("instructions", "Agent() takes no 'instructions'; use system_prompt="),
        ("max_turns", "use max_iterations="),
        ("deps_type", "the model does not see"),
        ("temperature", "leave it out: ra leaves it to the provider"),
        ("modle", "did you mean model?"),
        ("sistem_prompt", "did you mean system_prompt?"),
        ("frobnicate", "Agent() takes no 'frobnicate'"),
    ],
)
def test_a_keyword_of_another_library_is_answered_with_ours(name: str, words: str) -> None:
    with pytest.raises(TypeError) as raised:
        agent(**{name: "x"})
    assert words in str(raised.value)
    with pytest.raises(TypeError, match=f"takes no '{name}'"):
        ra.ask("hi", **{name: "x"})


@pytest.mark.parametrize("method", ["ask", "answer", "run", "stream", "show"])
def test_what_belongs_to_the_agent_is_no_keyword_of_a_prompt(method: str) -> None:
    for name, words in (("output_type", "use Agent(output_type=…)"), ("instructions", "use Agent(system_prompt=…)")):
        with pytest.raises(TypeError) as raised:
            getattr(agent(), method)("hi", **{name: int})
        assert words in str(raised.value)


def test_a_method_of_another_library_is_answered_with_ours() -> None:
    for name, words in (("run_sync", "use agent.ask("), ("usage", "agent.ended.usage"), ("histori", "mean history?")):
        with pytest.raises(AttributeError) as raised:
            getattr(agent(), name)
        assert words in str(raised.value)
    assert not hasattr(agent(), "nothing_of_the_kind")


def test_a_name_of_another_library_is_answered_where_it_is_imported() -> None:
    with pytest.raises(ImportError, match=r"ra has no 'Runner'; use agent\.ask"):
        from ra import Runner  # type: ignore[attr-defined]  # noqa: F401 - that is what is wrong with it
    assert not hasattr(ra, "frobnicate")
    assert not set(guesses.NAMES) & set(ra.__all__)


def test_the_tables_name_nothing_that_is_there() -> None:
    own = set(inspect.signature(Agent).parameters)
    assert own == set(guesses.GIVEN_TO_AGENTS)
    assert not own & set(guesses.ARGUMENTS)
    assert not [name for name in guesses.METHODS if hasattr(Agent, name)]


def test_the_events_of_a_run_are_not_awaited_and_say_so() -> None:
    async def awaited() -> None:
        await agent().run("hi")  # type: ignore[misc]  # that is what is wrong with it

    with pytest.raises(TypeError, match=r"await agent.answer"):
        asyncio.run(awaited())
    with pytest.raises(TypeError, match=r"agent.stream"):
        list(agent().run("hi"))  # type: ignore[call-overload]  # that is what is wrong with it


# --- what decides about permissions ---

WRITE = (Step(calls=(Call("Write", {"path": "x.txt", "content": "x"}),)), Step(text="Done."))


@pytest.fixture
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plain_function_may_decide(folder: Any) -> None:
    def decide(question: Question) -> Answer:
        return Answer("once")

    assert agent(*WRITE, ask=decide).ask("go") == "Done."
    assert (folder / "x.txt").read_text() == "x"


@pytest.mark.parametrize("answer", ["once", True, None, "deny"])
def test_what_is_no_answer_allows_nothing(folder: Any, answer: Any) -> None:
    def decide(question: Question) -> Any:
        return Answer(answer) if answer == "deny" else answer

    asked = agent(*WRITE, ask=decide)
    asked.ask("go")
    assert not (folder / "x.txt").exists()
    assert "Answer" in str(asked.history[-2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deny": ["bash(rm)"]}, "did you mean Bash?"),
        ({"ask": 3}, "not int"),
        ({"session": True}, "it must be text"),
        ({"write": "yes"}, "it must be True or False"),
        ({"settings": "x"}, "it must be a mapping"),
    ],
)
def test_a_value_of_another_kind_is_refused_when_the_agent_is_made(options: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        agent(**options)


def test_thinking_is_an_argument() -> None:
    asked = agent(Step(text="Fine.", usage=Usage(input=1, output=1)), thinking="low")
    assert asked.app.config.agent.thinking == "low"
