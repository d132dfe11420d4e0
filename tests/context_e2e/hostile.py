"""Sessions that want to break the context: generated from a seed and run through the real loop."""

import asyncio
import base64
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from ra.app import App
from ra.context.engine import Engine
from ra.context.ranks import encoder
from ra.core.events import Event, RunEnded, Streamed
from ra.core.facts import TimelineEvent
from ra.core.messages import Message, Text
from ra.core.model import Reply, Request
from ra.core.ports import Provider
from ra.core.value import JsonObject, encode
from ra.providers.retry import Retries
from ra.providers.script import Call, Step
from ra.providers.settings import ProviderName
from ra.session.session import Session
from ra.testing.kit import PatientProviders
from ra.testing.server import DialectName, LoopbackServer, Received, ServerAnswer
from ra.testing.wires.wire import countable
from tests.context.sessions import text_of
from tests.session.scenario import world

DIALECTS: tuple[DialectName, ...] = ("anthropic", "openai", "openai-chat", "google")
STRATEGIES = ("truncate", "digest", "summarize", "auto")
BUILTIN = ("Read", "Write", "Edit", "Bash", "Glob", "Grep", "LS", "WebFetch", "Agent", "Recall", "Entry")
KEEP = r"KEEP-\d+"
LEAST = 64  # tokens of o200k_base: two prompts and a marker, all of them as short as they can be
SMALL = 6000  # a window that the built-in tools would fill

TOOL = '''
from pathlib import Path

def dump(number: int) -> str:
    """Print what is stored under a number."""
    return (Path(__file__).parent / f"dump-{number}.txt").read_text()
'''

Kind = tuple[Callable[[random.Random], str], float]
KINDS: tuple[Kind, ...] = (  # a piece of text, and about how many tokens it has
    (lambda rng: rng.choice(("alpha ", "retry ", "config ", "parser ", "window ")), 1),
    (lambda rng: rng.choice(("缓存前缀必须保持不变。", "コンテキストの予算。", "컨텍스트 창입니다. ")), 7),
    (lambda rng: f"if(a{rng.randrange(99)}&&b[{rng.randrange(9)}]){{return e?.t||(e.t={{}});}}\n", 19),
    (lambda rng: base64.b64encode(rng.randbytes(48)).decode(), 45),
    (lambda rng: rng.choice(("🧑‍🚀", "🚀✨", "👩🏽‍💻")), 6),
    (lambda rng: f"src/mod_{rng.randrange(999)}.py:{rng.randrange(999)}: x = {rng.random()}\n", 24),
    (lambda rng: '{"a": "\\n\\t\\"\\u0001"}\n', 16),
)


class Play(NamedTuple):
    """What one seed stands for."""

    dialect: DialectName
    strategy: str
    window: int
    known: str
    rate: float
    whole: bool  # does the answer's room count?
    tools: tuple[str, ...]
    rules: str
    schemas: int
    keep: bool
    entries: tuple[str, ...]
    prompts: tuple[str, ...]
    turns: tuple[tuple[Step, ...], ...]
    outputs: tuple[str, ...]
    session: str  # the strategy that composes
    sources: tuple[tuple[str, str, int], ...]  # tier, text, max
    blocks: int  # of the first prompt
    nested: tuple[str, ...]  # rules of subdirectories
    shrinks: bool  # does the second run have a smaller model?
    resumes: bool  # is every run a process of its own?


def text(rng: random.Random, tokens: int) -> str:
    """About so many tokens of something that tokenizers differ about."""
    piece, size = rng.choice(KINDS)
    return "".join(piece(rng) for _ in range(max(1, int(tokens / size))))


def play_of(seed: int, *, windows: tuple[int, int] = (1000, 200_000)) -> Play:
    rng = random.Random(seed)
    low, high = windows
    window = int(low * (high / low) ** rng.random())
    tiny = window < SMALL
    few: tuple[tuple[str, ...], ...] = ((), ("Recall",), ("Recall", "Entry"))
    many: tuple[tuple[str, ...], ...] = (BUILTIN, ("Read", "Recall", "Entry"))
    tools = rng.choice(few if tiny else many)
    outputs: list[str] = []

    def call() -> Call:
        roll = rng.random()
        if roll < 0.12 and "Entry" in tools:
            id = rng.choice("abcdef")
            if rng.random() < 0.25:
                return Call("Entry", {"action": "remove", "id": id})
            content = text(rng, rng.choice((3, 10, max(4, window // 60))))
            return Call("Entry", {"action": "set", "id": id, "content": content})
        if roll < 0.2 and "Recall" in tools:
            return Call(
                "Recall",
                {"query": rng.choice((f"#{rng.randrange(9)}-{rng.randrange(10, 99)}", f"alpha {rng.randrange(999)}"))},
            )
        share = rng.choice((0.001, 0.01, 0.05, 0.05, 0.2, 0.5, 1.5, 6))
        size = min(60_000, max(2, int(window * share)))
        keep = f"KEEP-{rng.randrange(100)} " if rng.random() < 0.1 else ""
        outputs.append(keep + text(rng, size))
        extra = {"why": text(rng, min(20_000, int(window * rng.choice((0.1, 0.7)))))} if rng.random() < 0.07 else {}
        return Call("dump", {"number": len(outputs) - 1, **extra})

    def step() -> Step:
        many = rng.choice((1, 1, 1, 2, 3, 8))
        said = text(rng, rng.choice((1, 5, 20, max(1, window // 10)))) if rng.random() < 0.5 else ""
        thought = text(rng, max(1, window // 30)) if rng.random() < 0.15 else ""
        return Step(text=said, thinking=thought, calls=tuple(call() for _ in range(many)))

    shape = rng.choice(("few", "many", "talk"))
    runs = {"few": 2, "many": 1, "talk": 8}[shape]
    turns = []
    for _ in range(runs):
        steps = rng.randrange(1, {"few": 6, "many": 28, "talk": 2}[shape])
        turns.append((*(step() for _ in range(steps)), Step(text=text(rng, rng.choice((3, 30, max(3, window // 12)))))))
    sizes = [rng.choice((0.002, 0.01, 0.1, 0.3, 0.8, 3.0)) for _ in range(runs)]
    prompts = [f"PROMPT-{number} " + text(rng, min(80_000, int(window * share))) for number, share in enumerate(sizes)]
    entries = [text(rng, rng.choice((3, max(4, window // 80)))) for _ in range(rng.choice((0, 0, 1, 4)))]
    nested = [text(rng, int(window * rng.choice((0.01, 0.1, 0.4)))) for _ in range(3)] if "Read" in tools else []
    if nested:
        for number in range(len(nested)):
            at = rng.randrange(len(turns))
            read = Step(calls=(Call("Read", {"path": f"sub{number}/file.txt"}),))
            turns[at] = (read, *turns[at])
    sources = [
        (
            rng.choice(("pinned", "stable", "slow-changing")),
            text(rng, window // 20),
            max(1, window // rng.choice((15, 40))),
        )
        for _ in range(rng.choice((0, 0, 0, 2)))
    ]
    return Play(
        session="timeline" if sources else rng.choice(("timeline", "timeline", "layered")),
        sources=tuple(sources),
        blocks=rng.choice((1, 1, 1, 2, 40)),
        nested=tuple(nested),
        shrinks=rng.random() < 0.15,
        resumes=rng.random() < 0.3,
        dialect=rng.choice(DIALECTS),
        strategy=rng.choice(STRATEGIES),
        window=window,
        known=rng.choice(("configured", "unknown", "unknown", "too large")),
        rate=rng.uniform(0.8, 1.8),
        whole=rng.random() < 0.3,
        tools=tools,
        rules=text(rng, int(window * rng.choice((0, 0, 0.02, 0.15, 0.3)))) if rng.random() < 0.5 else "",
        schemas=rng.choice((0, 0, 0, 1, 3)) if window > 2500 else 0,
        keep=rng.random() < 0.3,
        entries=tuple(entries),
        prompts=tuple(prompts),
        turns=tuple(turns),
        outputs=tuple(outputs),
    )


class Strict(LoopbackServer):
    """Takes what fits in its own count, answers from a play, and keeps the sizes."""

    def __init__(self, play: Play) -> None:
        rate = play.rate
        super().__init__(
            play.dialect, self._step, window=play.window, count=lambda text: int(encoder.count(text) * rate)
        )
        self.play = play
        self.run = self.turn = 0
        self.refused: list[str] = []
        self.summaries = 0

    def answer(self, received: Received) -> ServerAnswer:
        body = received.body
        room = body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens") or 0
        room = room or (body.get("generationConfig") or {}).get("maxOutputTokens") or 0
        sent = self._count(encode(countable(body)).decode())
        assert self.window is not None
        if self.play.whole and sent <= self.window < sent + room:
            words = f"input length and `max_tokens` exceed context limit: {sent} + {room} > {self.window}, decrease it"
            self.refused.append(words)
            return ServerAnswer(status=400, payload=encode(self.wire.refusal(400, words, {})))
        made = super().answer(received)
        if made.status != 200:
            self.refused.append(made.payload.decode())
        return made

    def _step(self, body: JsonObject) -> Step:
        written = encode(body).decode()
        if "Sum up the conversation above" in written or "You sum up conversations" in written:
            self.summaries += 1
            return Step(text=f"<summary>Part {self.summaries}: went on.</summary><pending_work></pending_work>")
        steps = self.play.turns[self.run]
        step = steps[min(self.turn, len(steps) - 1)]
        self.turn += 1
        return step


class Taken(NamedTuple):
    """A request that was answered, and how many events there were when it went out."""

    at: int
    request: Request


class Watched:
    """A provider whose answered requests are kept, summaries apart."""

    def __init__(self, inner: Provider, app: "Watching") -> None:
        self.inner = inner
        self.name = inner.name
        self.app = app

    async def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        at = self.app.events()
        async with aclosing(self.inner.stream(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Reply) and "Sum up the conversation above" not in text_of(request):
                    self.app.taken.append(Taken(at, request))
                yield delta

    async def close(self) -> None:
        await self.inner.close()


class Watching(PatientProviders):
    """Connects providers that are watched. `events` counts what is recorded."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.taken: list[Taken] = []
        self.events: Callable[[], int] = lambda: 0

    def connect(self, provider: ProviderName, model: str, *, retries: Retries | None = None) -> Provider:
        return Watched(super().connect(provider, model, retries=retries), self)


class Result(NamedTuple):
    play: Play
    ended: tuple[RunEnded, ...]
    events: tuple[TimelineEvent, ...]
    taken: tuple[Taken, ...]
    refused: tuple[str, ...]
    heard: tuple[Event, ...]
    engine: Engine


def perform(play: Play, folder: Path) -> Result:
    """Run all prompts of a play in one session."""
    server = Strict(play)
    with server:
        return asyncio.run(_perform(play, _world(play, folder, server), server))


def _world(play: Play, folder: Path, server: Strict) -> App:
    root = folder / "project"
    root.mkdir(parents=True)
    for number, rules in enumerate(play.nested):
        below = root / f"sub{number}"
        below.mkdir()
        (below / "AGENTS.md").write_text(f"RULE-{number} {rules}")
        (below / "file.txt").write_text("Nothing much.\n")
    if play.rules:
        (root / "AGENTS.md").write_text(play.rules)
    home = folder / "tools"
    home.mkdir(parents=True)
    more = "\n".join(
        f'def more_{n}(path: str, lines: int) -> str:\n    """{"Does a thing. " * 12}"""\n' for n in range(play.schemas)
    )
    (home / "dump.py").write_text(TOOL + "\n" + more)
    for number, output in enumerate(play.outputs):
        (home / f"dump-{number}.txt").write_text(output)
    told: dict[str, Any] = {"compaction__strategy": play.strategy}
    if play.known != "unknown":
        told["compaction__contextWindow"] = play.window * (3 if play.known == "too large" else 1)
    if play.keep:
        told["context__mustKeep"] = [KEEP]
    told["session__contextStrategy"] = play.session
    if play.sources:
        told["context__sourceBudget"] = play.window
        told["context__sources"] = {
            **{
                f"s{n}": {"text": text, "cache": tier, "max": most} for n, (tier, text, most) in enumerate(play.sources)
            },
            "talk": {"timeline": True, "max": max(1, play.window // 2)},
        }
    for name in BUILTIN:
        if name not in play.tools:
            told[f"tools__{name}"] = {"enabled": False}
    custom = [str(home / "dump.py")]
    return world(folder, server, play.dialect, providers=Watching, tools__custom=custom, **told)


async def _perform(play: Play, app: App, server: Strict) -> Result:
    session: Session = app.open()
    watching = app.services.providers
    assert isinstance(watching, Watching)
    watching.events = lambda: len(list(session.events()))
    heard: list[Event] = []
    ended: list[RunEnded] = []
    for number, content in enumerate(play.entries):
        session.pin(f"pin{number}", content)
    for number, prompt in enumerate(play.prompts):
        server.run, server.turn = number, 0
        if number and play.resumes:
            await session.close()
            session = app.open(resume=session.id)
        if number == 1 and play.shrinks and play.known == "configured" and server.window and server.window > 4 * SMALL:
            server.window //= 2
            compaction = replace(session.recipe.compaction, context_window=server.window)
            await session.use(replace(session.recipe, compaction=compaction))
        size = len(prompt) // (play.blocks if number == 0 else 1) + 1
        blocks = tuple(Text(prompt[at : at + size]) for at in range(0, len(prompt), size))
        heard += [event async for event in session.prompt(Message("user", blocks))]
        last = heard[-1]
        assert isinstance(last, RunEnded)
        ended.append(last)
    events = tuple(session.events())
    engine = session.loop.engine
    await session.close()
    return Result(play, tuple(ended), events, tuple(watching.taken), tuple(server.refused), tuple(heard), engine)
