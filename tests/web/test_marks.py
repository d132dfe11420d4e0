"""What happened between the calls is told in words, the care for the provider's cache included."""

import asyncio
import json
from pathlib import Path

import pytest

from ra.core.facts import Failed, TimelineEvent
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from ra.web.model import Recording
from ra.web.sessions import ShownSessions
from tests.cli.conftest import Shell
from tests.session.billing import prompt_cache
from tests.session.talk import Talk

OPUS = "claude-opus-4-5"
LONG = "Remember this.\n" + "\n".join(f"Rule {n}: check host{n}.example first." for n in range(900))
BRIDGE_S = 270  # before the five minutes of the cache end


def settle(chat: Talk) -> None:
    async def once() -> None:
        app = chat.app("timeline")
        session = app.open(resume=chat.session)
        await session.settle_cache()
        await session.close()
        app.store.close()

    asyncio.run(once())


def recording(chat: Talk) -> Recording:
    app = chat.app("timeline")
    return ShownSessions(app).recording(app.store.sessions(None, 1)[0].id)


@pytest.fixture
def bridged(tmp_path: Path) -> Talk:
    """Two prompts eight minutes apart, with a small call between them that kept the cache, and one after the end."""
    chat: Talk | None = None

    def now() -> float:
        return chat.now if chat else 0.0

    with LoopbackServer("anthropic", lambda _: Step(text="Yes."), cache=prompt_cache(OPUS, clock=now)) as server:
        chat = Talk(Shell(tmp_path), server, agent__model=OPUS, agent__cache__keepWarm="auto")
        chat.say(LONG, "timeline")
        chat.now += BRIDGE_S
        settle(chat)
        chat.now += BRIDGE_S - 60
        chat.say("Go on.", "timeline")
        chat.now += BRIDGE_S
        settle(chat)
        return chat


def test_small_calls_that_keep_the_cache_and_their_decisions_are_named(bridged: Talk) -> None:
    marks = recording(bridged).session().marks
    assert [(mark.call, mark.kind, mark.text.partition(" cost $")[0].partition(" ($")[0]) for mark in marks] == [
        (1, "aside", "A small call that kept the cache"),
        (1, "cache", "The cache was kept by a small call"),
        (1, "aside", "Afterwards: A small call that kept the cache"),
        (1, "cache", "Afterwards: The cache was kept by a small call"),
    ]  # and no pause: the prefix had been used 210 s before


def test_small_calls_are_in_the_sum_and_in_every_table_as_in_ra_cost(bridged: Talk) -> None:
    shown = recording(bridged)
    (row,) = json.loads(bridged.shell.ra("cost", "--json").stdout)
    assert f"{shown.session().total:.6f}" == f"{float(row['dollars']):.6f}"
    assert shown.session().total > sum(shown.session().calls.dollars)
    for by, lines in shown.lines().items():
        rows = json.loads(bridged.shell.ra("cost", "--by", by, "--json").stdout)
        assert [(line.key, f"{line.dollars:.6f}") for line in lines] == [
            (row["key"], f"{float(row['dollars']):.6f}") for row in rows
        ]


def test_a_failure_after_the_last_answer_is_shown(bridged: Talk) -> None:
    whole = recording(bridged)
    failed = TimelineEvent(len(whole.source.events) + 1, bridged.now, Failed("provider", "The server is gone."))
    source = whole.source._replace(events=[*whole.source.events, failed])
    last = Recording(source, whole.prices).session().marks[-1]
    assert (last.call, last.kind, last.text) == (1, "failure", "Afterwards: Failed (provider): The server is gone.")
