"""No run spends more than its limit, whatever it starts: random trees of sub-agents against the server's own meter."""

import asyncio
import random
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ra.core.events import RunEnded
from ra.core.facts import Spent
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.providers.retry import Retries
from ra.providers.script import Call, Fault, Step
from ra.session.run import Run
from ra.testing import LoopbackServer, app, session

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


async def grown(folder: Path, seed: int, *, breaks: float = 0) -> tuple[dict[str, Any], Meter, RunEnded, list[Spent]]:
    choose, meter = random.Random(seed), Meter(seed)
    chosen = limits(choose)
    settings = {"compaction__strategy": choose.choice(["truncate", "summarize"])}
    if choose.random() < 0.3:
        settings["compaction__contextWindow"] = 12_000
    if choose.random() < 0.3:
        settings["session__contextStrategy"] = "planner"
        # One that is given up while it is answered is billed by estimate.
        settings["session__planner__timeout"] = choose.choice([0.05, 0.5]) if breaks else 30
    faults = random.Random(seed)

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        # The meter has counted the whole answer: it was generated to its end, whoever heard it, and is charged for.
        return Fault("cut", after_bytes=faults.choice([None, 0])) if faults.random() < breaks else None

    with LoopbackServer("anthropic", meter.answer, faults=fault) as server:
        retries = Retries(sleep=lambda _: asyncio.sleep(0))
        talk = session(folder, server, retries=retries, **chosen, **settings)
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


@pytest.mark.parametrize("seed", range(100, 100 + TREES // 2))
def test_no_tree_passes_its_limit_when_answers_break_off_and_are_asked_for_again(tmp_path: Path, seed: int) -> None:
    chosen, meter, end, bills = asyncio.run(grown(tmp_path, seed, breaks=0.4))
    if limit := chosen.get("maxCost"):
        assert meter.dollars <= Decimal(str(limit))
    if limit := chosen.get("maxTokenBudget"):
        assert meter.usage.total_input + meter.usage.output <= limit
    assert sum((bill.usage for bill in bills), Usage()) == end.usage


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_call_is_billed_once_it_has_left_and_not_before(tmp_path: Path, scheme: str) -> None:
    """A server that takes the request and is silent may be at work on it; one that cannot be reached is not."""

    async def go() -> tuple[RunEnded, list[Spent]]:
        reached = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # Plain HTTP: the request. Below TLS: the client's first words, which nobody answers.
            await reader.readuntil(b"}]") if scheme == "http" else await reader.read(1)
            reached.set()
            await asyncio.sleep(60)

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        url = f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        talk = app(tmp_path, Silent(url), maxCost=1).open()
        run = talk.prompt(say("user", "Hello."))
        waiting = asyncio.create_task(_ended(run))
        await reached.wait()
        run.interrupt()
        end = await waiting
        bills = [event.fact for event in talk.events() if isinstance(event.fact, Spent)]
        await talk.close()
        listener.close()
        return end, bills

    end, bills = asyncio.run(asyncio.wait_for(go(), 60))
    assert end.outcome == "interrupted"
    assert len(bills) == (1 if scheme == "http" else 0)
    assert end.usage == sum((bill.usage for bill in bills), Usage())


def test_an_answer_of_which_nothing_came_counts_against_the_limit(tmp_path: Path) -> None:
    meter = Meter(3)
    with LoopbackServer("anthropic", meter.answer, faults=lambda *_: Fault("cut", after_bytes=0)) as server:
        talk = session(tmp_path, server, retries=Retries(sleep=lambda _: asyncio.sleep(0)), maxTokenBudget=9_000)

        async def go() -> RunEnded:
            end = await _ended(talk.prompt(say("user", "Look around. " * 400)))
            await talk.close()
            return end

        end = asyncio.run(go())
    assert 1 <= meter.turns < 5  # another attempt could have passed the limit
    assert meter.usage.total_input + meter.usage.output <= 9_000
    assert end.usage.total_input > 0


def test_a_side_call_whose_use_is_not_told_or_cannot_be_is_estimated(tmp_path: Path) -> None:
    told = {"haiku": Usage(50_000_000, 1)}

    def answer(body: dict[str, Any]) -> Step:
        return Step(
            text="{}" if "haiku" in body["model"] else "Fine.", usage=told.get(body["model"][7:12], Usage(1000, 10))
        )

    async def go(folder: Path) -> list[Spent]:
        with LoopbackServer("anthropic", answer) as server:
            talk = session(folder, server, session__contextStrategy="planner", maxCost=1)
            end = await _ended(talk.prompt(say("user", "Go.")))
            bills = [event.fact for event in talk.events() if isinstance(event.fact, Spent)]
            await talk.close()
        assert end.outcome == "answered"
        return bills

    for usage in (Usage(50_000_000, 1), Usage()):
        told["haiku"] = usage
        plan, _ = asyncio.run(go(tmp_path / str(usage.input)))
        assert (plan.purpose, plan.estimated) == ("planner", True)
        assert 100 < plan.usage.total_input < 10_000


def test_a_plan_that_came_too_late_is_billed_with_what_was_heard_of_it(tmp_path: Path) -> None:
    plan = Step(text="I think that " * 60, pace_s=0.5, usage=Usage(600, 200))

    def answer(body: dict[str, Any]) -> Step:
        return plan if "haiku" in body["model"] else Step(text="Fine.", usage=Usage(1000, 10))

    async def go() -> tuple[RunEnded, list[Spent]]:
        with LoopbackServer("anthropic", answer) as server:
            talk = session(tmp_path, server, session__contextStrategy="planner", session__planner__timeout=3, maxCost=1)
            end = await _ended(talk.prompt(say("user", "Go.")))
            bills = [event.fact for event in talk.events() if isinstance(event.fact, Spent)]
            await talk.close()
        return end, bills

    end, bills = asyncio.run(go())
    late = next(bill for bill in bills if bill.purpose == "planner")
    assert late.estimated or (late.usage.input == 600 and late.usage.output > 5)
    assert sum((bill.usage for bill in bills), Usage()) == end.usage


@pytest.mark.parametrize("purpose", ["agent", "summary"])
def test_what_ran_under_an_interrupted_run_is_billed(tmp_path: Path, purpose: str) -> None:
    begun = threading.Event()

    def answer(body: dict[str, Any]) -> Step:
        if "haiku" in body["model"] or not any(tool["name"] == "Agent" for tool in body["tools"]):
            begun.set()
            return Step(text="slowly " * 400, pace_s=0.02, usage=Usage(700, 400))
        if purpose == "agent":
            return Step(calls=(Call("Agent", {"task": "look"}), Call("Agent", {"task": "see"})), usage=Usage(1000, 10))
        return Step(text="word " * 6000, usage=Usage(9000, 6000))

    async def go() -> tuple[RunEnded, list[Spent]]:
        settings: dict[str, Any] = {"compaction__strategy": "summarize", "compaction__model": "claude-haiku-4-5"}
        with LoopbackServer("anthropic", answer) as server:
            talk = session(tmp_path, server, **settings, compaction__contextWindow=16_000)
            if purpose == "summary":
                await _ended(talk.prompt(say("user", "Say something long. " * 100)))
            run = talk.prompt(say("user", "Go on."))

            async def interrupt() -> None:
                while not begun.is_set():
                    await asyncio.sleep(0.01)
                run.interrupt()

            await asyncio.gather(_ended(run), interrupt())
            bills = [event.fact for event in talk.events() if isinstance(event.fact, Spent)]
            await talk.close()
        assert run.ended is not None
        return run.ended, bills

    end, bills = asyncio.run(asyncio.wait_for(go(), 60))
    assert end.outcome == "interrupted"
    assert [bill.purpose for bill in bills].count(purpose) >= 1
    ended_run = [bill.usage for bill in bills[0 if purpose == "agent" else 1 :]]
    assert sum(ended_run, Usage()) == end.usage


class Silent(LoopbackServer):
    """The address of a server that never answers."""

    def __init__(self, url: str) -> None:
        super().__init__("anthropic", [])
        self._url = url

    @property
    def url(self) -> str:
        return self._url


async def _ended(run: Run) -> RunEnded:
    async for _ in run:
        pass
    assert run.ended is not None
    return run.ended
