"""No run spends more than its limit, whatever it starts: random trees of sub-agents against the server's own meter."""

import asyncio
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ra.core.events import RunEnded
from ra.core.facts import Spent
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.providers.script import Call, Step
from ra.testing import LoopbackServer, session

TREES = 12
MODEL = "claude-sonnet-4-6"


class Meter:
    """Answers at random, never with more than it was allowed, and adds up what that costs as the provider would."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rate = self.random.uniform(0.8, 1.3)  # its tokens for one of ours
        self.usage = Usage()
        self.dollars = Decimal(0)
        self.turns = 0
        self._prices = Prices({}, None)

    def answer(self, body: dict[str, Any]) -> Step:
        choose = self.random
        is_main = any(tool["name"] == "Agent" for tool in body.get("tools", []))
        input_tokens = int(
            len(str(body["messages"]) + str(body.get("system")) + str(body.get("tools"))) / 4 * self.rate
        )
        output = choose.randint(1, min(body["max_tokens"], choose.choice([50, 500, 16_000])))
        read = choose.choice([0, input_tokens // 2])
        written = choose.choice([0, input_tokens - read])
        usage = Usage(input_tokens - read - written, output, read, written)
        self.usage += usage
        self.turns += 1
        self.dollars += self._prices.price(body["model"], usage) or 0
        calls: list[Call] = []
        if is_main and choose.random() < 0.6:
            calls = [Call("Agent", {"task": f"look at {choose.random()}"}) for _ in range(choose.randint(1, 4))]
        elif choose.random() < 0.4:
            calls = [Call("Glob", {"pattern": f"*{choose.random()}"})]
        return Step(text="word " * min(output, 2000), calls=tuple(calls), usage=usage)


def limits(choose: random.Random) -> dict[str, Any]:
    named = {
        "maxCost": round(10 ** choose.uniform(-2, 0.5), 4),
        "maxTokenBudget": int(10 ** choose.uniform(3.5, 5.5)),
        "maxIterations": choose.randint(1, 12),
    }
    return {name: named[name] for name in choose.sample(sorted(named), choose.randint(1, 2))}


async def grown(folder: Path, seed: int) -> tuple[dict[str, Any], Meter, RunEnded, list[Spent]]:
    choose, meter = random.Random(seed), Meter(seed)
    chosen = limits(choose)
    settings = {"compaction__strategy": choose.choice(["truncate", "summarize"])}
    if choose.random() < 0.3:
        settings["compaction__contextWindow"] = 12_000
    if choose.random() < 0.3:
        settings["session__contextStrategy"] = "planner"
    with LoopbackServer("anthropic", meter.answer) as server:
        talk = session(folder, server, **chosen, **settings)
        run = talk.prompt(say("user", "Look around. " * choose.choice([1, 1000])))
        async for _ in run:
            pass
        bills = [event.fact for event in talk.events() if isinstance(event.fact, Spent)]
        await talk.close()
    assert run.ended is not None
    return chosen, meter, run.ended, bills


@pytest.mark.parametrize("seed", range(TREES))
def test_no_tree_passes_its_limit_and_all_meters_agree(tmp_path: Path, seed: int) -> None:
    chosen, meter, end, bills = asyncio.run(grown(tmp_path, seed))
    if limit := chosen.get("maxCost"):
        assert meter.dollars <= Decimal(str(limit))
    if limit := chosen.get("maxTokenBudget"):
        assert meter.usage.total_input + meter.usage.output <= limit
    assert end.usage == meter.usage
    assert sum((bill.usage for bill in bills), Usage()) == meter.usage
    if end.dollars:
        assert Decimal(end.dollars) == meter.dollars
    assert end.outcome in ("answered", "limit", "failed")
