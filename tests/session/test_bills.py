"""An answer that was interrupted, stopped or broken off was paid for: the bill, the ledger and limits know it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ra.app import App
from ra.core.events import Warned
from ra.core.facts import Cut, Said, Spent
from ra.core.model import Usage
from ra.providers.retry import Retries
from ra.providers.script import Fault, Step
from ra.testing.server import LoopbackServer
from tests.session.scenario import ended, interrupted, run, world

DIALECTS = ("anthropic", "openai", "openai-chat", "google")
TELL_AT_ONCE = ("anthropic", "google")  # the others tell the usage with the last event
STORY = Step(text="Once upon a time " * 50, pace_s=0.01, usage=Usage(1000, 200))


def bills(app: App, session: str) -> list[Spent]:
    return [e.fact for e in app.store.open(session, write=False).events() if isinstance(e.fact, Spent)]


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_interrupted_answer_is_billed(tmp_path: Path, dialect: Any, transport: str) -> None:
    with LoopbackServer(dialect, [STORY]) as server:
        app = world(tmp_path, server, dialect, transport=transport)
        last = interrupted(app)
        [bill] = bills(app, last.session)
    assert (last.usage, last.outcome) == (bill.usage, "interrupted")
    assert last.answer.startswith("Once upon")
    assert bill.estimated == (dialect not in TELL_AT_ONCE)
    assert bill.usage.input == 1000 if dialect in TELL_AT_ONCE else bill.usage.input > 500


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_the_time_limit_ends_is_billed_and_shown(tmp_path: Path, dialect: Any) -> None:
    with LoopbackServer(dialect, [Step(text="word " * 500, pace_s=0.05, usage=Usage(1000, 200))]) as server:
        app = world(tmp_path, server, dialect, maxDuration=1.5)
        last = ended(run(app, "Go."))
    assert (last.outcome, last.usage.input > 500) == ("limit", True)
    assert last.answer.startswith("word word")


@pytest.mark.parametrize("dialect", TELL_AT_ONCE)
def test_every_attempt_of_an_answer_that_always_breaks_is_billed(tmp_path: Path, dialect: Any) -> None:
    half = Step(text="half of it " * 20, usage=Usage(1000, 200))
    with LoopbackServer(dialect, [half], faults=[Fault("cut")] * 5) as server:
        app = world(tmp_path, server, dialect, retries=Retries(sleep=lambda _: asyncio.sleep(0)))
        last = ended(run(app, "Go."))
        told = [e.fact for e in app.store.open(last.session, write=False).events()]
    assert (last.outcome, len(server.requests), last.usage.input) == ("failed", 5, 5000)
    assert [type(fact) for fact in told if isinstance(fact, Cut | Spent)] == [Cut, Spent] * 5


def test_an_error_inside_an_answer_that_is_not_retried_is_billed(tmp_path: Path) -> None:
    fault = Fault("error", status=402, message="credit balance is too low")
    with LoopbackServer("anthropic", [Step(text="half " * 20, usage=Usage(1000, 200), fault=fault)]) as server:
        last = ended(run(world(tmp_path, server, "anthropic"), "Go."))
    assert (last.outcome, len(server.requests), last.usage.input) == ("failed", 1, 1000)


@pytest.mark.parametrize("hook", ["afterModelResponse", "onStreamChunk"])
def test_an_answer_that_a_hook_stops_is_billed_and_kept(tmp_path: Path, hook: str) -> None:
    file = tmp_path / "stop.py"
    file.write_text("def middleware(ctx):\n    ctx.stop('enough')\n")
    with LoopbackServer("anthropic", [Step(text="An answer.", usage=Usage(1000, 200))]) as server:
        app = world(tmp_path, server, "anthropic", middleware={hook: [str(file)]})
        last = ended(run(app, "Go."))
        told = [e.fact for e in app.store.open(last.session, write=False).events()]
    assert (last.outcome, last.usage.input) == ("limit", 1000)
    assert [fact.message.text for fact in told if isinstance(fact, Cut)] != []
    assert [fact.message.role for fact in told if isinstance(fact, Said)] == ["user"]


def test_a_server_that_tells_no_usage_is_billed_by_estimate_so_that_limits_hold(tmp_path: Path) -> None:
    with LoopbackServer("openai-chat", lambda _: Step(text="Fine.", usage=Usage())) as server:
        app = world(tmp_path, server, "openai-chat")
        events = run(app, "Go.")
        [bill] = bills(app, ended(events).session)
    assert bill.estimated
    assert ended(events).usage == bill.usage
    assert bill.usage.input > 500
    assert [event.text for event in events if isinstance(event, Warned)] == [
        "openai-chat did not report what the call used; tokens and cost are estimated."
    ]


def test_a_request_that_nobody_answered_costs_nothing(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", [STORY], faults=[Fault("status", status=400)]) as server:
        app = world(tmp_path, server, "anthropic")
        last = ended(run(app, "Go."))
    assert (last.usage, bills(app, last.session)) == (Usage(), [])
