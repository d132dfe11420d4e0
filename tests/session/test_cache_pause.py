"""The provider's cache over a pause: what goes over the wire, and what is recorded of it."""

import asyncio
from pathlib import Path

from ra.core.facts import CacheDecided, Spent
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.billing import prompt_cache
from tests.session.talk import Talk

OPUS = "claude-opus-4-5"
LONG = "Remember this.\n" + "\n".join(f"Rule {n}: check host{n}.example first." for n in range(900))


def talk(tmp_path: Path, server: LoopbackServer, **settings: str) -> Talk:
    return Talk(Shell(tmp_path), server, agent__model=OPUS, **settings)


def test_the_hour_is_asked_for_and_paid(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", lambda _: Step(text="Yes."), cache=prompt_cache(OPUS)) as server:
        chat = talk(tmp_path, server, agent__cache__ttl="1h")
        chat.say(LONG, "timeline")
        assert '"cache_control": {"type": "ephemeral", "ttl": "1h"}' in str(chat.bodies[0]).replace("'", '"')
        (bill,) = (fact for fact in chat.facts() if isinstance(fact, Spent))
        assert bill.long_lived
        usage = bill.usage
        dollars = (usage.input * 5 + usage.output * 25 + usage.cache_read * 0.5 + usage.cache_write * 10) / 1e6
        assert abs(float(bill.dollars) - dollars) < 1e-9


def test_a_pause_is_bridged_by_a_small_call_that_reads_the_prefix(tmp_path: Path) -> None:
    with LoopbackServer("anthropic", lambda _: Step(text="Yes."), cache=prompt_cache(OPUS)) as server:
        chat = talk(tmp_path, server, agent__cache__keepWarm="auto")
        chat.say(LONG, "timeline")

        async def pause() -> tuple[float | None, CacheDecided]:
            app = chat.app("timeline")
            session = app.open(resume=chat.session)
            due_s = session.cache_due_s
            messages = len(session.messages())
            decision = await session.settle_cache()
            assert len(session.messages()) == messages  # nothing of it is said
            chat.now += 280
            await session.close()
            app.store.close()
            return due_s, decision

        due_s, decision = asyncio.run(pause())
        assert due_s is not None
        assert 270 <= due_s <= 280
        assert decision.action == "bridge"
        assert chat.bodies[1]["max_tokens"] == 16
        bridge = next(fact for fact in chat.facts() if isinstance(fact, Spent) and fact.purpose == "bridge")
        assert bridge.usage.cache_read > 10_000
        assert bridge.usage.cache_write < 100
