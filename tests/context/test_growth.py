"""Work grows with the length of a session and not with its square: function calls are counted, no time is measured."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from ra.context.compose.rotation import Segment
from ra.context.size import Meter, Refusals
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, Clip, Configured, Fact, Said, Spent, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, ToolResult, say
from ra.core.model import Usage
from ra.costs.lifetime import CacheLifetime
from ra.costs.prices import Prices
from ra.costs.promptcache import rules_for
from ra.timeline.folds import Repairs

MODEL = "claude-opus-4-5"
PRICES = Prices({}, None)
CYCLE = 10  # rounds between two compactions


def calls(work: Callable[[], object]) -> int:
    count = 0

    def heard(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def session(compactions: int) -> list[TimelineEvent]:
    """Prompts, calls and their results; each compaction hides all but the newest few, and clips a result."""
    facts: list[Fact] = [Configured("anthropic", MODEL, "timeline")]
    for number in range(compactions * CYCLE):
        call = ToolCall(f"c{number}", "Read", {"path": "a.py"})
        facts += [
            Said(say("user", f"question {number}")),
            Said(Message("assistant", (call,), model=MODEL)),
            Spent(MODEL, Usage(cache_read=1_000, cache_write=50)),
            Said(Message("tool", (ToolResult(call.id, "Read", (Text("a line\n" * 5),)),))),
        ]
        if number % CYCLE == CYCLE - 1:
            end = len(facts) - 8
            clips = (Clip(len(facts), 0, 3),)
            facts.append(Checkpointed("truncate", "threshold", ((2, end),), clips, f"[#2-{end}]"))
    return [TimelineEvent(at, 1_000.0 + at, fact) for at, fact in enumerate(facts, 1)]


def resumed(events: list[TimelineEvent]) -> None:
    """What opening a session folds; the request is made once, at the end."""
    estimator = Estimator()
    view = View(estimator)
    folds = (Meter(view, estimator), Refusals(), Segment(), Repairs())
    lifetime = CacheLifetime(PRICES.row, rules_for)
    for event in events:
        for fold in folds:
            fold.apply(event)
        lifetime.observe(event)
    assert len(view.hidden) > len(events) / 4
    assert len(view.request().messages) < 4 * CYCLE


@pytest.mark.parametrize("work", [resumed])
def test_twice_the_length_is_twice_the_work(work: Callable[[list[TimelineEvent]], None]) -> None:
    short, long = session(30), session(60)
    work(short)  # what is loaded once is loaded now
    assert calls(lambda: work(long)) < 2.2 * calls(lambda: work(short))
