"""`from ra import Agent`: a conversation in a Python program, with the events, rights and errors of the rest."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import ra
from ra import Agent, Unanswered
from ra.core.asking import Answer, Question
from ra.core.errors import ConfigError, Refused, UsageError, UserError
from ra.core.events import CallDelta, RunEnded, TextDelta, ToolEnded, ToolStarted, TurnEnded, TurnStarted
from ra.core.value import JsonObject
from ra.providers.script import Call, Step
from ra.testing import ScriptedProvider
from ra.testing.server import LoopbackServer


def answer(body: JsonObject) -> Step:
    said = [message["content"][0].get("text", "") for message in body["messages"] if message["role"] == "user"]
    match said[-1]:
        case "count":
            return Step(text=str(len(said)))
        case "nothing":
            return Step(text="")
        case "write":
            return Step(calls=(Call("Write", {"path": "new.txt", "content": "x"}),))
        case "list":
            return Step(calls=(Call("LS", {"path": "."}),))
        case "slow":
            return Step(text="word " * 200, pace_s=0.02)
        case _:
            return Step(text="Hello, world.")


class Place:
    """Where a program with ra in it runs."""

    def __init__(self, folder: Path, server: LoopbackServer) -> None:
        self.server = server
        self.folder = folder / "project"
        (self.folder / ".git").mkdir(parents=True)
        self.env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "RA_HOME": str(folder / "data"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "k",
        }

    def agent(self, **options: Any) -> Agent:
        return Agent(**({"cwd": self.folder, "env": self.env} | options))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with LoopbackServer("anthropic", answer) as server:
        yield Place(tmp_path, server)


def test_one_question_one_answer(place: Place) -> None:
    assert ra.ask("hi", cwd=place.folder, env=place.env) == "Hello, world."


def test_everything_that_happens_is_an_event_and_the_last_is_the_end(place: Place) -> None:
    async def main() -> list[Any]:
        async with place.agent() as agent:
            return [event async for event in agent.run("list")]

    events = asyncio.run(main())
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [TurnStarted, CallDelta, TurnEnded, ToolStarted, ToolEnded, TurnStarted, TurnEnded, RunEnded]
    assert (events[-1].outcome, events[-1].answer, events[-1].iterations) == ("answered", "Hello, world.", 2)


@pytest.mark.parametrize("save", [True, False])
def test_a_conversation_goes_on_from_prompt_to_prompt(place: Place, save: bool) -> None:
    agent = place.agent(save=save)
    assert [agent.ask("count") for _ in range(3)] == ["1", "2", "3"]


def test_another_agent_goes_on_with_a_session_that_was_saved(place: Place) -> None:
    first = place.agent()
    first.ask("hi")
    assert place.agent(session=first.session).ask("count") == "2"
    assert place.agent(session=first.session, save=False).ask("count") == "3"
    assert place.agent(session=first.session).ask("count") == "3"  # what was not saved is not there


def test_what_is_not_saved_leaves_nothing_on_the_disk(place: Place) -> None:
    place.agent(save=False).ask("hi")
    assert not (Path(place.env["RA_HOME"]) / "ra.db").exists()


def test_ask_works_inside_a_running_event_loop(place: Place) -> None:
    async def notebook() -> list[str]:
        agent = place.agent()
        return [agent.ask("count"), await agent.answer("count"), agent.ask("count")]

    assert asyncio.run(notebook()) == ["1", "2", "3"]


def test_many_agents_work_side_by_side(place: Place) -> None:
    async def main() -> list[str]:
        return await asyncio.gather(*(place.agent().answer(f"hi {number}") for number in range(8)))

    assert asyncio.run(main()) == ["Hello, world."] * 8


def test_one_agent_does_one_thing_at_a_time(place: Place) -> None:
    async def main() -> None:
        agent = place.agent()
        await asyncio.gather(agent.answer("slow"), agent.answer("hi"))

    with pytest.raises(UsageError, match="still answering"):
        asyncio.run(main())


def test_closing_the_stream_interrupts_the_run_and_keeps_what_was_said(place: Place) -> None:
    async def main() -> str:
        async with place.agent() as agent:
            async with aclosing(agent.run("slow")) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        break
            return await agent.answer("count")

    assert asyncio.run(main()) == "2"


def test_no_answer_is_an_error_that_knows_the_run(place: Place) -> None:
    with pytest.raises(Unanswered) as caught:
        place.agent().ask("nothing")
    assert (caught.value.ended.outcome, caught.value.ended.usage.output > 0) == ("empty", True)


def test_limits_hold_and_say_so(place: Place) -> None:
    with pytest.raises(Unanswered, match="maxIterations"):
        place.agent(settings={"agent.maxIterations": 1}).ask("list")


def test_a_run_may_write_only_if_it_was_told_so(place: Place) -> None:
    with pytest.raises(Unanswered):
        place.agent(settings={"agent.maxIterations": 1}).ask("write")
    assert not (place.folder / "new.txt").exists()
    with pytest.raises(Unanswered):
        place.agent(write=True, settings={"agent.maxIterations": 1}).ask("write")
    assert (place.folder / "new.txt").read_text() == "x"


def test_a_program_can_be_asked_for_permission(place: Place) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("once")

    (place.folder / "AGENTS.md").write_text("Be kind.")
    with LoopbackServer(
        "anthropic", [Step(calls=(Call("Write", {"path": "AGENTS.md", "content": "Be brief."}),)), Step(text="Done.")]
    ) as server:
        agent = place.agent(ask=ask, write=True, env=place.env | {"ANTHROPIC_BASE_URL": server.url})
        assert agent.ask("Change the rules.") == "Done."
    assert [question.call.name for question in asked] == ["Write"]
    assert (place.folder / "AGENTS.md").read_text() == "Be brief."


def test_files_and_references_are_attached(place: Place) -> None:
    (place.folder / "a.txt").write_text("alpha")
    (place.folder / "b.txt").write_text("beta")
    place.agent().ask("compare @a.txt", files=[place.folder / "b.txt"])
    sent = str(place.server.bodies[0]["messages"])
    assert ("alpha" in sent, "beta" in sent) == (True, True)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"settings": {"agent.modle": "x"}}, ConfigError, "did you mean model"),
        ({"settings": {"agent.maxCost": "much"}}, ConfigError, "agent.maxCost"),
        ({"provider": "nope"}, ConfigError, "agent.provider"),
        ({"env": {"HOME": "/nonexistent", "RA_HOME": "/nonexistent"}}, UserError, "No model to talk to"),
        ({"agent": "nobody"}, UserError, "nobody"),
    ],
)
def test_what_is_wrong_is_said_when_the_agent_is_made(
    place: Place, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        place.agent(**options)


def test_a_session_that_does_not_exist_is_named(place: Place) -> None:
    with pytest.raises(UserError, match="no session 'nope'"):
        place.agent(session="nope").ask("hi")


def test_what_a_project_would_run_is_refused_until_it_is_trusted(place: Place) -> None:
    (place.folder / "hook.py").write_text("def after_loop_complete(ctx):\n    open('ran', 'w').close()\n")
    (place.folder / "ra.yaml").write_text("agent:\n  middleware:\n    afterLoopComplete: [./hook.py]\n")
    with pytest.raises(Refused, match="ra trust"):
        place.agent()
    assert place.agent(untrusted="ignore").ask("hi") == "Hello, world."
    assert not Path("ran").exists()


def test_a_system_prompt_and_a_model_of_ones_own(place: Place) -> None:
    place.agent(system_prompt="You are a pirate.", model="claude-haiku-4-5", tools=False).ask("hi")
    body = place.server.bodies[0]
    assert (body["model"], body.get("tools", [])) == ("claude-haiku-4-5", [])
    assert body["system"][0]["text"] == "You are a pirate."


# --- what a program brings ---


def shout(words: str) -> str:
    """Say it loudly."""
    return words.upper()


def Read(path: str) -> str:
    """Read."""
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": "weather"}, "a list of functions, True or False, not str"),
        ({"tools": [3]}, r"another agent's as_tool\(\), not int"),
        ({"tools": {"a": 1}}, "a list of functions, True or False, not dict"),
        ({"tools": [shout, shout]}, "tools has two functions named shout; rename one"),
        ({"tools": [Read]}, "the name of a built-in tool; rename the function"),
        ({"builtin_tools": ["Raed"]}, "builtin_tools names 'Raed'"),
        ({"builtin_tools": "Read"}, "use a list, such as .'Read'."),
        ({"allow": "Bash(ls)"}, "use a list, such as"),
        ({"edits": "yes"}, "edits is 'yes'; use one of 'ask', 'auto', 'off'"),
        ({"untrusted": "no"}, "use one of 'refuse', 'ignore', 'trust'"),
        ({"model": 3}, "model must be a name, not int"),
        ({"cwd": "/nowhere"}, "cwd '/nowhere' is not a folder"),
        ({"provider": ScriptedProvider}, "not the class ScriptedProvider"),
        ({"provider": 3}, "an object with `stream` and `close`, not int"),
        ({"history": ["hi"]}, "history holds 'hi'"),
        ({"history": [{"role": "robot", "content": "x"}]}, "history holds"),
        ({"output_type": asyncio.Task}, "no answer can become"),
        ({"output_type": {"type": 3}}, "The schema is wrong at type"),
        ({"session": "x", "history": [{"role": "user", "content": "y"}]}, "either session or history"),
    ],
)
def test_what_an_agent_cannot_take_is_refused_when_it_is_made(
    place: Place, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        place.agent(**options)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [(3, "text or a Message, not int"), ([{"role": "user"}], "not list"), (" ", "the prompt is empty")],
)
def test_what_is_no_prompt_is_refused_before_anything_is_sent(place: Place, prompt: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        place.agent().ask(prompt)
    with pytest.raises(UserError, match="use a list, such as"):
        place.agent().ask("hi", files="notes.txt")
    assert place.server.bodies == []


def test_an_unknown_argument_is_refused(place: Place) -> None:
    with pytest.raises(TypeError, match="tolls"):
        place.agent(tolls=[])


def test_a_function_without_a_docstring_or_hints_is_refused(place: Place) -> None:
    def silent(city: str) -> str:
        return city

    def unhinted(city):  # type: ignore[no-untyped-def]  # that is what is wrong with it
        """Says it."""
        return city

    for function, words in ((silent, "needs a docstring"), (unhinted, "needs a type hint")):
        with pytest.raises(ConfigError, match=words):
            place.agent(tools=[function])


def test_a_limit_holds_for_agents_that_tools_ask(tmp_path: Path) -> None:
    def answer(body: JsonObject) -> Step:
        nested = "nested" in str(body["messages"])
        return Step(text="done") if nested or len(body["messages"]) > 1 else Step(calls=(Call("helper", {}),))

    with LoopbackServer("anthropic", answer) as server:
        place = Place(tmp_path, server)

        def helper() -> str:
            """Helps."""
            return "; ".join(place.agent(save=False).ask(f"nested {n}") for n in range(5))

        agent = place.agent(tools=[helper], max_iterations=3)
        with pytest.raises(Unanswered, match="maxIterations"):
            agent.ask("go")
        assert len(server.requests) == 3
