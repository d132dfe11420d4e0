"""ra's own sessions, billed by a server with a prompt cache, replay to their bill under every compaction."""

from pathlib import Path
from typing import Any

import pytest

from ra.bench.runs import Conditions, compare
from ra.core.facts import Checkpointed, Rotated, Spent, TimelineEvent
from ra.costs.prices import Prices
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.billing import prompt_cache
from tests.session.talk import NOON, Talk

OPUS = "claude-opus-4-5"
PARTS = 12  # files that the model reads, in three runs


def reading(body: dict[str, Any]) -> Step:
    """A model that reads one more file in each turn, until it has read as many as the last prompt names."""
    text = str(body["messages"])
    wanted = max(number for number in range(PARTS + 1) if f"up to {number}." in text)
    newest = next((n for n in range(PARTS, 0, -1) if f"part{n}.txt" in text), 0)
    if newest >= wanted:
        return Step(text=f"All {wanted} parts are read.")
    call = Call("Read", {"path": f"part{newest + 1}.txt"})
    return Step(text=f"Reading part {newest + 1}.", calls=(call,))


@pytest.mark.parametrize("compaction", ["truncate", "digest", "auto", "summarize"])
def test_a_session_of_ra_replays_to_its_bill(tmp_path: Path, compaction: str) -> None:
    events = session(tmp_path, agent__compaction__strategy=compaction, agent__compaction__contextWindow=24_000)
    assert any(isinstance(event.fact, Checkpointed) for event in events)
    check(events)


def test_a_rotated_session_replays_to_its_bill(tmp_path: Path) -> None:
    events = session(tmp_path, session__maxTurnsPerSession=2)
    assert any(isinstance(event.fact, Rotated) for event in events)
    check(events)


def session(tmp_path: Path, **settings: Any) -> list[TimelineEvent]:
    """Three prompts, each in a process of its own: the session is resumed."""
    shell = Shell(tmp_path)
    for number in range(1, PARTS + 1):
        lines = (f"order_{number}_{line} shipped by carrier{line % 7} to depot {line * number}" for line in range(140))
        (shell.project / f"part{number}.txt").write_text("\n".join(lines))
    with LoopbackServer("anthropic", reading, cache=prompt_cache(OPUS, clock=lambda: chat.now)) as server:
        chat = Talk(shell, server, agent__model=OPUS, **settings)
        for wanted in (4, 8, PARTS):
            chat.now += 60
            chat.say(f"Read the parts up to {wanted}.", "timeline")
    return [TimelineEvent(at, NOON + at, fact) for at, fact in enumerate(chat.facts(), 1)]


def check(events: list[TimelineEvent]) -> None:
    assert sum(isinstance(event.fact, Spent) for event in events) >= PARTS
    result = compare("f", "n", OPUS, events, Conditions(Prices({}, None), ()))
    assert result is not None
    assert result.calibration is not None
    assert abs(result.calibration.difference) <= 0.01
    assert abs(result.calibration.predicted_difference) <= 0.01
    assert result.calibration.outside == 0


def test_what_lies_between_two_bills_is_measured_by_them_also_where_calls_between_have_none(tmp_path: Path) -> None:
    events = session(tmp_path, agent__compaction__contextWindow=24_000)
    bills = [event for event in events if isinstance(event.fact, Spent)]
    half = compare(
        "x", "x", OPUS, [e for e in events if e not in bills[1::2]], Conditions(Prices({}, None), strategies=())
    )
    assert half is not None
    assert half.calibration is not None
    assert half.calibration.unbilled == len(bills) // 2
    assert abs(half.calibration.predicted / half.calibration.billed - 1) < 0.03
