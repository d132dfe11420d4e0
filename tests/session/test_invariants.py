"""What needs a whole session: what is previewed is what is sent, and what is pinned stays, over generated sessions."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ra.core.facts import Checkpointed
from ra.core.messages import say
from ra.core.value import encode
from ra.providers.script import Step
from ra.testing import session
from ra.testing.server import LoopbackServer

prompts = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(
            str.strip
        ),
        st.integers(1, 700),  # how often the text is repeated
    ),
    min_size=1,
    max_size=6,
)


async def follow(folder: Path, said: list[tuple[str, int]], strategy: str) -> int:
    """Preview and send each prompt. Says how many compactions there were."""
    with LoopbackServer("anthropic", [Step(text="Seen. " * 300)] * len(said)) as server:
        talk = session(folder, server, compaction__strategy=strategy, compaction__contextWindow=9000)
        try:
            talk.pin("rule", "Port 8099 is taken.", name="rules")
            for number, (text, times) in enumerate(said):
                message = say("user", f"{text} " * min(times, 4000 // len(text)))
                preview = await talk.preview(message)
                assert len(server.bodies) == number  # a preview sends nothing
                async for _ in talk.prompt(message):
                    pass
                assert preview.body() == server.bodies[number]
                assert "Port 8099 is taken." in encode(server.bodies[number]).decode()
            return sum(isinstance(event.fact, Checkpointed) for event in talk.events())
        finally:
            await talk.close()


@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(prompts, st.sampled_from(["truncate", "digest", "auto"]))
def test_what_is_previewed_is_what_is_sent_and_pins_stay(said: list[tuple[str, int]], strategy: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(follow(Path(folder), said, strategy))


def test_a_preview_is_what_is_sent_where_the_prompt_makes_it_compact(tmp_path: Path) -> None:
    assert asyncio.run(follow(tmp_path, [(f"alpha beta {number}", 300) for number in range(6)], "digest")) > 0
