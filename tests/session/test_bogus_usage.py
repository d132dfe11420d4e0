"""What a provider reports is checked before it is believed."""

import asyncio
from pathlib import Path

import pytest

from ra.context.size import Meter, credible
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.events import Warned
from ra.core.facts import Said, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Request, Usage
from ra.providers.script import Fault, Step
from ra.testing import LoopbackServer, app
from tests.session.scenario import ended, run

WINDOW = 200_000


def test_a_figure_above_the_window_is_estimated_and_does_not_block_the_session(tmp_path: Path) -> None:
    bogus = Usage(input=50_000_000, output=5)
    with LoopbackServer("anthropic", [Step(text="one", usage=bogus), Step(text="two")]) as server:
        session = app(tmp_path, server).open()

        async def main() -> list[str]:
            answers = []
            for prompt in ("hi", "again"):
                run = session.prompt(say("user", prompt))
                events = [event async for event in run]
                assert run.ended is not None
                answers.append(run.ended.answer)
                warnings.extend(event.text for event in events if isinstance(event, Warned))
            bills = [event.fact for event in session.events() if isinstance(event.fact, Spent)]
            assert bills[0].estimated
            assert bills[0].usage.total_input < WINDOW
            await session.close()
            return answers

        warnings: list[str] = []
        assert asyncio.run(main()) == ["one", "two"]
        assert any("50,000,000 tokens in" in warning for warning in warnings)


def test_what_can_be_is_believed() -> None:
    request = Request("m", (), (say("user", "word " * 100_000),), max_output=8192)
    estimator = Estimator()
    assert credible(Usage(input=100_000, output=8192), request, WINDOW, estimator)
    assert credible(Usage(input=300_000, output=8192), request, WINDOW, estimator)  # our window may be wrong
    assert not credible(Usage(input=3_000_000), request, WINDOW, estimator)
    assert not credible(Usage(input=3_000_000), request, None, estimator)
    assert not credible(Usage(input=10, output=900_000), request, WINDOW, estimator)


def test_a_bogus_bill_that_is_stored_already_is_not_the_size_of_the_next_request() -> None:
    view = View(Estimator())
    meter = Meter(view, Estimator())
    facts = (Said(say("user", "hi")), Said(say("assistant", "one")), Spent("m", Usage(input=50_000_000, output=5)))
    for at, fact in enumerate(facts, 1):
        meter.apply(TimelineEvent(at, 0.0, fact))
    assert (meter.measure(window=WINDOW) or 0) < 100


@pytest.mark.parametrize("told", ["9 tokens > 5 maximum", "9 tokens > 200000 maximum", "210000 tokens > 5 maximum"])
def test_a_window_that_cannot_be_is_not_learned(tmp_path: Path, told: str) -> None:
    refusal = Fault("status", 400, message=f"prompt is too long: {told}")
    with LoopbackServer("anthropic", [Step(text="two")], faults=[refusal]) as server:
        world = app(tmp_path, server)
        first = ended(run(world, "hi"))
        assert (first.outcome, told in first.error) == ("failed", True)
        assert world.services.store.all_learned() == []
        assert ended(run(world, "again", resume=first.session)).answer == "two"
