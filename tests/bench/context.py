"""The engine's figures: assembling a long session, counting, memory. Ratios in one run."""

import asyncio
import statistics
import time
import tracemalloc
from collections.abc import Callable

from ra.context.engine import Engine
from ra.context.settings import CompactionSettings
from ra.context.size import Window
from ra.context.tokens import Estimator
from ra.core.facts import Configured, Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, ToolResult, say
from ra.core.model import ModelInfo, Section

WORDS = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
)


def text(number: int, words: int) -> str:
    return f"{number}: " + " ".join(WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(words))


def session(messages: int, words: int) -> list[TimelineEvent]:
    """A tool session: a prompt, then calls and results in turn."""
    facts = [
        Configured("scripted", "m", "timeline", (Section("system", "pinned", "Be brief."),)),
        Said(say("user", "Go.")),
    ]
    for n in range(messages // 2):
        call = ToolCall(f"c{n}", "Read", {"path": f"src/file{n}.py"})
        facts.append(Said(Message("assistant", (call,), model="m")))
        result = ToolResult(f"c{n}", "Read", (Text(text(n, words)),))
        facts.append(Said(Message("tool", (result,))))
    return [TimelineEvent(at, float(at), fact) for at, fact in enumerate(facts, 1)]


def engine_for(events: list[TimelineEvent]) -> Engine:
    info = ModelInfo("m", 4_000_000)
    engine = Engine(CompactionSettings(), estimator=Estimator(), window=Window(4_000_000, "configured"), info=info)
    for event in events:
        engine.apply(event)
    return engine


def step_ms(engine: Engine, at: int, rounds: int = 30) -> float:
    """One more message, then the next request; the median of some rounds."""
    times = []
    for n in range(rounds):
        event = TimelineEvent(at + n, 0.0, Said(say("user", text(n, 20))))
        began = time.perf_counter()
        engine.apply(event)
        asyncio.run(assemble(engine))
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


async def assemble(engine: Engine) -> None:
    await engine.assemble()


def main() -> None:
    Estimator().text("warm")  # the ranks are the program's, not the session's
    small = engine_for(session(100, 130))
    tracemalloc.start()
    events = session(10_000, 130)
    size = sum(len(block.text) for e in events for block in _texts(e))
    large = engine_for(events)
    del events
    asyncio.run(large.assemble())
    large.view.tokens()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    asyncio.run(small.assemble())
    small.view.tokens()
    total = large.estimator.request(large.view.request())
    a, b = step_ms(small, 200), step_ms(large, 20_000)
    print(f"next request, 100 messages {a:7.2f} ms")
    print(f"10 000 messages, {total / 1e6:.1f}M tok. {b:7.2f} ms   {b / a:4.1f} × the small one   (aim ≤ 3 ×, < 50 ms)")
    print(f"its memory                 {held / size:7.2f} × its text of {size / 1e6:.1f} MB   (aim ≤ 3, text included)")
    counting()


def _texts(event: TimelineEvent) -> list[Text]:
    if not isinstance(event.fact, Said):
        return []
    results = [block for block in event.fact.message.blocks if isinstance(block, ToolResult)]
    return [part for block in results for part in block.content if isinstance(part, Text)]


def counting() -> None:
    from ra.context.ranks.encoder import encoding

    sample = text(1, 150_000)
    raw = best(lambda: encoding().encode_ordinary(sample))
    ours = best(lambda: Estimator().text(sample))
    estimator = Estimator()
    estimator.text(sample)
    again = best(lambda: estimator.text(sample))
    print(f"counting new text          {raw / ours:7.0%} of raw tiktoken's speed   (aim ≥ 90 %)")
    print(f"counting it again          {ours / again:7.0f} × faster   (aim > 100)")


def best(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
