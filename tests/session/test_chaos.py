"""A fifth of all answers goes wrong in some way: runs finish all the same, and what a server asks for is kept."""

import os
import random
import statistics
import time
from collections import Counter
from email.utils import formatdate
from pathlib import Path

import pytest

from ra.core.value import JsonObject
from ra.providers.retry import Retries
from ra.providers.script import Call, Fault, Step
from ra.testing.server import DialectName, LoopbackServer
from tests.session.scenario import ended, run, world

TURNS = int(os.environ.get("RA_TURNS", "160"))
DIALECTS: tuple[DialectName, ...] = ("anthropic", "openai", "openai-chat", "google")
STEPS = 9  # of one run; the tenth turn is its answer
ANSWER = "All nine files are written, and these are words enough to be cut in the middle of them."
SHARE = 0.2
SILENCE_S = 0.25  # after which a server counts as stalled
STATUSES = (408, 429, 500, 502, 503, 504, 529)


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Chaos:
    """Chooses what goes wrong. By number of request: `asked` is what it was told to wait, `came` when it came."""

    def __init__(self, seed: str, clock: Time) -> None:
        self.chance = random.Random(seed)
        self.clock = clock
        self.kinds: Counter[str] = Counter()
        self.asked: dict[int, float] = {}
        self.came: list[float] = []

    def __call__(self, number: int, _: JsonObject) -> Fault | None:
        self.came.append(self.clock.now)
        if self.chance.random() >= SHARE:
            return None
        kind = self.chance.choice(("status", "asked", "page", "error", "cut", "stall", "garbage"))
        self.kinds[kind] += 1
        after = self.chance.choice((None, 0, self.chance.randrange(3000)))
        match kind:
            case "status":
                return Fault("status", self.chance.choice(STATUSES))
            case "asked":
                return self._asked(number)
            case "page":
                return Fault("status", 502, message="<html><body>Bad gateway</body></html>")
            case "error":
                return Fault("error", after_bytes=after)
            case "cut":
                return Fault("cut", after_bytes=after)
            case "stall":
                return Fault("stall", after_bytes=after, seconds=4 * SILENCE_S)
            case _:
                return Fault("garbage", after_bytes=after)

    def waited(self) -> list[tuple[float, float]]:
        """How long was asked for, and how long it was until the next request."""
        last = len(self.came) - 1
        return [(seconds, self.came[n + 1] - self.came[n]) for n, seconds in self.asked.items() if n < last]

    def _asked(self, number: int) -> Fault:
        seconds = self.chance.choice((0.5, 2.0, 7.0, 20.0))
        self.asked[number] = seconds
        status = self.chance.choice((429, 503, 529))
        match self.chance.randrange(3):
            case 0:
                return Fault("status", status, retry_after_ms=str(int(seconds * 1000)))
            case 1 if seconds >= 7:
                return Fault("status", status, retry_after=formatdate(time.time() + seconds, usegmt=True))
            case _:
                return Fault("status", status, retry_after=f"{seconds:g}")


def step(answers: int) -> Step:
    if answers == STEPS:
        return Step(text=ANSWER)
    line = Call("Write", {"path": f"file-{answers}", "content": f"line {answers}\n" * 20})
    return Step(text=f"Turn {answers}.", calls=(line, Call("Read", {"path": f"file-{answers}"})))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_turns_finish_although_a_fifth_of_all_answers_goes_wrong(tmp_path: Path, dialect: DialectName) -> None:
    clock = Time()
    chaos = Chaos(dialect, clock)
    turns = failed = 0
    with LoopbackServer(dialect, lambda body: step(server.wire.turns(body)), faults=chaos) as server:
        retries = Retries(sleep=clock.sleep, clock=lambda: clock.now)
        app = world(tmp_path, server, dialect, retries=retries, timeout_s=SILENCE_S)
        while turns < TURNS // len(DIALECTS):
            last = ended(run(app, "Write nine files, please."))
            turns += last.iterations
            if last.outcome == "answered":
                assert (last.answer, last.iterations) == (ANSWER, STEPS + 1)
            else:
                assert (last.outcome, last.error != "") == ("failed", True)
                failed += 1
                chaos.asked.pop(len(chaos.came) - 1, None)  # nobody waits after the last try
    written = [(app.resolved.root / f"file-{number}").read_text() for number in range(STEPS)]
    assert written == [f"line {number}\n" * 20 for number in range(STEPS)]
    assert failed <= 0.005 * max(turns, 200)
    waited = chaos.waited()
    assert [(asked, real) for asked, real in waited if real < asked - (asked >= 7)] == []  # a date has whole seconds
    assert statistics.median([real / asked for asked, real in waited] or [1]) <= 1.2
    print(f"{dialect}: {turns} turns, {failed} failed, {sum(chaos.kinds.values())} faults {dict(chaos.kinds)}")


def test_what_a_server_asks_for_is_kept_in_real_time(tmp_path: Path) -> None:
    asked_s = [0.5, 0.8, 1.0, 0.6, 0.7]
    faults: dict[int, Fault] = {}
    for number, seconds in enumerate(asked_s):  # every second request is told to come again
        faults[2 * number] = Fault("status", 429, retry_after_ms=f"{seconds * 1000:g}")
    steps = [Step(calls=(Call("LS", {"path": ".", "n": number}),)) for number in range(len(asked_s) - 1)]
    with LoopbackServer("anthropic", [*steps, Step(text=ANSWER)], faults=faults) as server:
        assert ended(run(world(tmp_path, server, "anthropic"), "Look five times.")).answer == ANSWER
        times = [request.at for request in server.requests]
    gaps = [after - before for before, after in zip(times[::2], times[1::2], strict=True)]
    assert [gap for gap, asked in zip(gaps, asked_s, strict=True) if gap < asked] == []
    late_s = [gap - asked for gap, asked in zip(gaps, asked_s, strict=True)]
    assert statistics.median(late_s) < 2  # a wait of our own would be added to it; a busy machine adds less
