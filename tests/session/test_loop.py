"""One prompt, from the user's words to the answer: calls, limits, interruptions and what is left behind by each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ra.app import App
from ra.config.options import Options
from ra.core.events import Event, RunEnded, RunStopped, TextDelta, ToolEnded, ToolOutput, ToolStarted, TurnEnded, Warned
from ra.core.facts import Cut, Interrupted, Said, Spent
from ra.core.messages import ToolResult, say
from ra.core.value import JsonObject
from ra.providers.script import Call, Fault, Step
from ra.testing.server import LoopbackServer
from tests.session.scenario import ended, interrupted, run, world

DONE = Step(text="Done.")


def reads(*paths: str) -> Step:
    return Step(calls=tuple(Call("Read", {"path": path}) for path in paths))


def writes(*paths: str) -> Step:
    return Step(calls=tuple(Call("Write", {"path": path, "content": "x"}) for path in paths))


def started_and_ended(events: list[Event]) -> str:
    """`S` and `E` for each call, in the order of the events."""
    return "".join("S" if isinstance(e, ToolStarted) else "E" for e in events if isinstance(e, ToolStarted | ToolEnded))


def results(body: JsonObject) -> list[JsonObject]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] == "tool_result"]


def facts(app: App, session: str) -> list[Any]:
    return [event.fact for event in app.store.open(session, write=False).events()]


def play(folder: Path, steps: list[Step], prompt: str = "Go.", **settings: Any) -> tuple[list[Event], LoopbackServer]:
    with LoopbackServer("anthropic", steps) as server:
        return run(world(folder, server, "anthropic", **settings), prompt), server


# --- calls ---


@pytest.mark.parametrize(
    ("step", "settings", "order"),
    [
        (reads("a", "b", "c"), {}, "SSSEEE"),
        (reads("a", "b"), {"parallelToolCalls": False}, "SESE"),
        (writes("a", "b"), {}, "SESE"),
        (Step(calls=(*reads("a", "b").calls, *writes("c").calls, *reads("c").calls)), {}, "SSEESESE"),
    ],
)
def test_calls_that_only_read_run_at_once(tmp_path: Path, step: Step, settings: dict[str, Any], order: str) -> None:
    for name in ("a", "b", "c"):  # from Python 3.12 on a thread that is done at once does not suspend who waits for it
        (tmp_path / "project").mkdir(exist_ok=True)
        (tmp_path / "project" / name).write_text("some words\n" * 200_000)
    events, server = play(tmp_path, [step, DONE], **settings)
    assert started_and_ended(events) == order
    asked = [block["id"] for block in server.bodies[1]["messages"][1]["content"] if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in results(server.bodies[1])] == asked


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call("Fly", {}), "Fly"),
        (Call("Read", {"path": 7}), "path"),
        (Call("Read", raw='{"path": "a'), "JSON"),
        (Call("Read", {"path": "missing.txt"}), "missing.txt"),
    ],
)
def test_a_mistake_of_the_model_is_an_error_result_and_the_run_goes_on(tmp_path: Path, call: Call, words: str) -> None:
    events, server = play(tmp_path, [Step(calls=(call,)), DONE])
    assert ended(events).answer == "Done."
    [told] = results(server.bodies[1])
    assert told["is_error"]
    assert words in str(told["content"])


def test_reads_of_a_job_may_be_repeated(tmp_path: Path) -> None:
    events, _ = play(tmp_path, [*[Step(calls=(Call("Job", {"job": 1}),))] * 4, DONE])
    assert ended(events).answer == "Done."


def test_deeply_nested_arguments_are_an_error_result(tmp_path: Path) -> None:
    deep = Call("Read", raw='{"path":' * 800 + "1" + "}" * 800)
    events, _ = play(tmp_path, [Step(calls=(deep,)), DONE])
    assert ended(events).answer == "Done."


def test_three_identical_calls_in_a_row_end_the_run_and_the_session_goes_on(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", [reads("a")] * 3 + [DONE]) as server:
        app = world(tmp_path, server, "anthropic")
        last = ended(run(app, "Go."))
        assert (last.outcome, last.iterations) == ("limit", 3)
        assert "the same call to Read" in last.error
        assert ended(run(app, "Try something else.", resume=last.session)).answer == "Done."


def test_similar_calls_are_not_the_same(tmp_path: Path) -> None:
    events, _ = play(tmp_path, [reads("a"), reads("a"), reads("b"), reads("a"), reads("a"), DONE])
    assert ended(events).answer == "Done."


# --- limits ---


@pytest.mark.parametrize(
    ("settings", "words", "calls"),
    [
        ({"maxIterations": 2}, "maxIterations: 2 model calls", 2),
        ({"maxCost": 0.000001}, "maxCost", 0),
        ({"maxTokenBudget": 3000}, "maxTokenBudget", 2),
        ({"maxTokenBudget": 500}, "the next call needs about", 0),
    ],
)
def test_limits_stop_a_run_before_money_is_spent(
    tmp_path: Path, settings: dict[str, Any], words: str, calls: int
) -> None:
    events, server = play(tmp_path, [*(reads(f"{n}") for n in range(9)), DONE], **settings)
    last = ended(events)
    assert (last.outcome, last.iterations, len(server.requests)) == ("limit", calls, calls)
    assert words in last.error


def test_a_limit_counts_for_each_prompt_anew(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", [reads("a"), DONE, reads("b"), DONE]) as server:
        app = world(tmp_path, server, "anthropic", maxIterations=2)
        first = ended(run(app, "Go."))
        assert (first.outcome, ended(run(app, "Again.", resume=first.session)).outcome) == ("answered", "answered")


def test_the_time_limit_ends_a_tool_that_is_running(tmp_path: Path) -> None:
    script = "echo begun >> log; sleep 60; echo ended >> log"
    for limit_s in (1.5, 6, 24):  # a busy machine may need longer to come to the tool
        with LoopbackServer("anthropic", [Step(calls=(Call("Bash", {"command": script}),)), DONE]) as server:
            app = world(
                tmp_path,
                server,
                "anthropic",
                maxDuration=limit_s,
                options=Options(allow=("Bash",), sandbox="off", edits="auto"),
            )
            last = ended(run(app, "Go."))
            if not (app.resolved.root / "log").exists():
                continue
            assert (last.outcome, last.seconds < limit_s + 10) == ("limit", True)
            assert "maxDuration" in last.error
            told = [fact.message.blocks[0] for fact in facts(app, last.session) if isinstance(fact, Said)][-1]
            assert isinstance(told, ToolResult)
            assert "may or may not have run" in str(told.content)
            assert ended(run(world(tmp_path, server, "anthropic"), "Go on.", resume=last.session)).answer == "Done."
            break
    assert (app.resolved.root / "log").read_text() == "begun\n"


# --- how it ends ---


def test_an_interrupted_answer_is_kept_and_the_next_prompt_sees_it(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", [Step(text="Once upon a time " * 50, pace_s=0.01), DONE]) as server:
        app = world(tmp_path, server, "anthropic")
        last = interrupted(app)
        assert last.outcome == "interrupted"
        assert [type(fact) for fact in facts(app, last.session)[-3:]] == [Said, Interrupted, Spent]
        run(app, "Go on.", resume=last.session)
        assert "Once upon" in str(server.bodies[1]["messages"])
        assert "[interrupted]" in str(server.bodies[1]["messages"])


def test_the_model_sees_what_an_interrupted_call_had_printed(tmp_path: Path) -> None:
    async def stop_when_heard(app: App) -> RunEnded:
        session = app.open()
        run = session.prompt(say("user", "Build."))
        async for event in run:
            if isinstance(event, ToolOutput) and "step 2" in event.text:
                run.interrupt()
        await session.close()
        assert run.ended is not None
        return run.ended

    command = "echo step 1; echo step 2; exec sleep 60"
    with LoopbackServer("anthropic", [Step(calls=(Call("Bash", {"command": command}),)), DONE]) as server:
        app = world(tmp_path, server, "anthropic")
        last = asyncio.run(stop_when_heard(app))
        run(app, "Go on.", resume=last.session)
    (text,) = [block["text"] for result in results(server.bodies[1]) for block in result["content"]]
    assert text == "step 1\nstep 2\n[interrupted by the user; it may or may not have run]"


def test_a_stop_is_told_before_it_is_priced_and_a_second_one_loses_no_bill(tmp_path: Path) -> None:
    async def stop_twice(app: App) -> tuple[list[Event], list[Any]]:
        session, events, kept = app.open(), [], []
        run = session.prompt(say("user", "Tell me a story."))
        async for event in run:
            events.append(event)
            if isinstance(event, TextDelta):
                run.interrupt()
            if isinstance(event, RunStopped):
                kept = facts(app, session.id)
                run.interrupt()
        await session.close()
        return events, kept

    with LoopbackServer("anthropic", [Step(text="Once upon a time " * 50, pace_s=0.01)]) as server:
        app = world(tmp_path, server, "anthropic")
        events, kept = asyncio.run(stop_twice(app))
    assert "[interrupted]" in kept[-2].message.text
    assert isinstance(kept[-1], Interrupted)  # a process that ends while it counts leaves no answer without its end
    assert [type(event) for event in events[-3:]] == [RunStopped, TurnEnded, RunEnded]
    assert [type(fact) for fact in facts(app, ended(events).session)[-3:]] == [Said, Interrupted, Spent]


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (Step(text="Here."), "answered"),
        (Step(text=" \n"), "empty"),
        (Step(), "empty"),
        (Step(text="I will not.", stop="refused"), "refused"),
        (Step(text="A long", stop="length"), "answered"),
    ],
)
def test_answers_empty_answers_and_refusals_are_told_apart(tmp_path: Path, step: Step, outcome: str) -> None:
    events, _ = play(tmp_path, [step])
    assert ended(events).outcome == outcome
    cut = [event.text for event in events if isinstance(event, Warned)]
    assert any("was cut at" in text for text in cut) == (step.stop == "length")


def test_a_failed_run_says_what_it_cost(tmp_path: Path) -> None:
    faults = {1: Fault("status", 401, message="bad key")}
    with LoopbackServer("anthropic", [reads("a"), DONE], faults=faults) as server:
        last = ended(run(world(tmp_path, server, "anthropic"), "Go."))
    assert (last.outcome, last.iterations, last.usage.total_input > 0, float(last.dollars) > 0) == (
        "failed", 2, True, True,
    )  # fmt: skip


def test_a_cut_answer_is_billed_recorded_and_not_sent_back(tmp_path: Path) -> None:
    faults = {0: Fault("cut", after_bytes=1500)}
    with LoopbackServer("anthropic", [Step(text="These words come twice. " * 20)], faults=faults) as server:
        app = world(tmp_path, server, "anthropic")
        events = run(app, "Go.")
        last = ended(events)
    kinds = [type(fact) for fact in facts(app, last.session) if isinstance(fact, Cut | Spent)]
    assert kinds == [Cut, Spent, Spent]
    assert server.bodies[1] == server.bodies[0]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.answer
