"""A long tool session through the real loop, against a server that enforces its window in its own token count."""

import base64
import os
import random
from collections.abc import Callable
from pathlib import Path

from ra.app import App
from ra.context.ranks import encoder
from ra.core.events import Event
from ra.core.value import JsonObject, encode
from ra.providers.script import Call, Step
from ra.testing.server import DialectName, LoopbackServer, Received, ServerAnswer
from tests.session.scenario import run, world

STEPS = int(os.environ.get("RA_STEPS", "60"))
PROMPT = "Read every file of this project, remember the codes of the vaults, and tell me when you are done. (ticket 7)"
ANSWER = "I have read all of it."
FACTS = 10
WORDS = ("alpha", "retry", "config", "parser", "window", "cache", "token", "buffer", "socket", "thread", "queue")


def counted(window: int, rate: float) -> Callable[[str], int]:
    """The server's own tokens: other than o200k_base counts; by bytes for a large window, where counting takes long."""
    if window > 50_000:
        return lambda text: len(text.encode()) * 10 // 36
    return lambda text: int(encoder.count(text) * rate)


class Strict(LoopbackServer):
    """Keeps what it refused, and the text of what it took for a turn or for a summary."""

    def __init__(
        self, dialect: DialectName, steps: Callable[[int, JsonObject], Step], window: int, *, rate: float = 1.15
    ) -> None:
        super().__init__(dialect, self._next, window=window, count=counted(window, rate))
        self.refused: list[str] = []
        self.turns: list[str] = []
        self.bodies_taken: list[JsonObject] = []
        self.summaries = 0
        self._steps = steps

    def answer(self, received: Received) -> ServerAnswer:
        made = super().answer(received)
        if made.status != 200:
            self.refused.append(made.payload.decode())
        return made

    def _next(self, body: JsonObject) -> Step:
        text = encode(body).decode()
        if "Sum up the conversation above" in text:
            self.summaries += 1
            return Step(text=f"<summary>Read files, part {self.summaries}.</summary><pending_work></pending_work>")
        self.turns.append(text)
        self.bodies_taken.append(body)
        return self._steps(len(self.turns), body)


def fact(number: int) -> str:
    return f"vault{number:02d} opens with {random.Random(number).randrange(10**8):08d}"


def words(rng: random.Random) -> str:
    return f"{rng.randrange(10**6)} {' '.join(rng.choices(WORDS, k=12))}"


def mixed(rng: random.Random) -> str:
    """Text that tokenizers differ about."""
    return rng.choice(
        (
            "缓存前缀必须保持不变，否则每次调用都要重新付费。",
            "コンテキストの予算を超えないでください。",
            "🧑‍🚀🚀✨" * 4,
            f"function a{rng.randrange(99)}(e,t){{return e&&t?e[t]||(e[t]={{}}):null}}var n=[].slice;",
            base64.b64encode(rng.randbytes(48)).decode(),
        )
    )


def plant(folder: Path, steps: int, size: int, line: Callable[[random.Random], str] = words) -> dict[int, int]:
    """A file for every step, of about so many tokens, ten of them with a fact in the middle: step → fact."""
    rng = random.Random(3)
    planted = {1 + number * (steps - 1) // FACTS: number for number in range(FACTS)}
    for step in range(1, steps + 1):
        lines = [
            f"{rng.randrange(10**6)} " + " ".join(rng.choice(WORDS) for _ in range(12))
            for _ in range(max(4, size // 17))
        ]
        if step in planted:
            lines[len(lines) // 2] = fact(planted[step])
        (folder / f"file{step}.txt").write_text("\n".join(lines) + "\n")
    return planted


def reading(steps: int) -> Callable[[int, JsonObject], Step]:
    """Read a file per turn; then ask for what cannot be seen any more; then answer."""
    asked: list[int] = []

    def step(turn: int, body: JsonObject) -> Step:
        if turn <= steps:
            return Step(text=f"Step {turn}.", calls=(Call("Read", {"path": f"file{turn}.txt"}),))
        text = encode(body).decode()
        hidden = [number for number in range(FACTS) if fact(number) not in text and number not in asked]
        if not hidden:
            return Step(text=ANSWER)
        asked.append(hidden[0])
        return Step(calls=(Call("Recall", {"query": f"vault{hidden[0]:02d}"}),))

    return step


class Long:
    """One long run and what is left of it."""

    def __init__(
        self,
        folder: Path,
        dialect: DialectName,
        window: int,
        strategy: str,
        *,
        line: Callable[[random.Random], str] = words,
        rate: float = 1.15,
    ) -> None:
        with Strict(dialect, reading(STEPS), window, rate=rate) as self.server:
            self.app: App = world(folder, self.server, dialect, compaction__strategy=strategy)
            plant(self.app.resolved.root, STEPS, min(8000, window // (20 if STEPS <= 60 else 40)), line)
            self.events: list[Event] = run(self.app, PROMPT)

    def seen(self) -> set[int]:
        """The facts that were visible, at first sight or recalled, after the last file had been read."""
        late = self.server.turns[STEPS:]
        return {number for number in range(FACTS) if any(fact(number) in text for text in late)}


def prompt_in(body: JsonObject) -> bool:
    """Is the first prompt there, word for word?"""
    return PROMPT in encode(body).decode()
