"""Sessions made up for tests: a log that hands out positions, and runs of tools on an engine without any server."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ra.context.engine import Assembly, Engine
from ra.context.settings import CompactionSettings
from ra.context.size import Window
from ra.context.tokens import Estimator
from ra.core.facts import Configured, Edited, EntryRemoved, EntrySet, Fact, Noticed, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, ToolResult, say
from ra.core.model import ModelInfo, Reply, Request, Section, ToolSpec, Usage

PROMPT = "Find the bug and mend it."
SYSTEM = Section("system", "pinned", "You are a careful engineer. Answer in short sentences.")
TOOLS = (
    ToolSpec("Read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("Bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}),
)
CONFIGURED = Configured("scripted", "script-1", "timeline", (SYSTEM,), TOOLS, max_output=1000)
WORDS = ("alpha", "beta", "retry", "config", "parser", "window", "cache", "token", "buffer", "socket", "thread")


class Log:
    """A timeline in a list, with the folds that stand on it."""

    session = "test"

    def __init__(self, *folds: Callable[[TimelineEvent], None]) -> None:
        self.written: list[TimelineEvent] = []
        self.folds = folds

    def record(self, *facts: Fact) -> None:
        for fact in facts:
            event = TimelineEvent(len(self.written) + 1, 0.0, fact)
            self.written.append(event)
            for fold in self.folds:
                fold(event)

    def say(self, *messages: Message) -> None:
        self.record(*map(Said, messages))

    def facts(self, *kinds: type) -> list[Any]:
        return [event.fact for event in self.written if isinstance(event.fact, kinds)]


class Recorded:
    """A Timeline over a log, to read from. `found` are the hits of every search, `texts` what was kept."""

    session = "test"

    def __init__(self, log: Log, *, found: Sequence[Any] = (), texts: dict[str, str] | None = None) -> None:
        self._log = log
        self._found = found
        self._texts = texts or {}

    def events(self, since: int = 0) -> list[TimelineEvent]:
        return self._log.written[since:]

    def append(self, *facts: Fact) -> list[TimelineEvent]:
        raise AssertionError("nothing is written here")

    def search(self, query: str, limit: int = 20) -> Sequence[Any]:
        return self._found[:limit]

    def keep(self, text: str) -> str:
        raise AssertionError("nothing is written here")

    def kept(self, ref: str) -> str | None:
        return self._texts.get(ref)

    def close(self) -> None:
        pass


def engine(limit: int | None = 8000, *, factor: float = 1.0, **how: Any) -> Engine:
    """`how` are settings of compaction, or what else an Engine takes."""
    own = {key: how.pop(key) for key in ("must_keep", "summarize", "summary_info", "price", "economy") if key in how}
    return Engine(
        CompactionSettings(**how),
        estimator=Estimator(factor),
        window=Window(limit, "catalog" if limit else "unknown"),
        info=ModelInfo("script-1", limit),
        **own,
    )


def assemble(one: Engine, **how: Any) -> Assembly:
    return asyncio.run(one.assemble(**how))


def started(one: Engine, prompt: str = PROMPT, configured: Configured = CONFIGURED) -> Log:
    log = Log(one.apply)
    log.record(configured)
    log.say(say("user", prompt))
    return log


def replayed(events: Sequence[TimelineEvent], **how: Any) -> Engine:
    """A new engine that was told these events."""
    one = engine(**how)
    for event in events:
        one.apply(event)
    return one


def call_of(number: int | str, tool: str = "Read", **args: Any) -> ToolCall:
    return ToolCall(f"call-{number}", tool, args or {"path": f"src/module_{number}.py"})


def asks(*calls: ToolCall, text: str = "") -> Message:
    return Message("assistant", (*([Text(text)] if text else []), *calls), model="script-1")


def answers(call: ToolCall, text: str, *, is_error: bool = False) -> Message:
    return Message("tool", (ToolResult(call.id, call.name, (Text(text),), is_error),))


def step(number: int, output: str, *, tool: str = "Read", **args: Any) -> tuple[Message, Message]:
    """A call and its result."""
    call = call_of(number, tool, **(args or {"path": f"src/module_{number % 7}.py"}))
    return asks(call, text=f"Step {number}."), answers(call, output)


def prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def run(
    one: Engine,
    log: Log,
    steps: int,
    *,
    words: int = 120,
    bill: float | None = 1.0,
    output: Callable[[int], str] | None = None,
) -> Iterator[Request]:
    """A tool session of so many steps; yields each request. `bill`: tokens that the provider counts for one of ours."""
    rng = random.Random(1)
    counter = Estimator()
    for number in range(1, steps + 2):
        assembly = assemble(one)
        log.record(*assembly.facts)
        yield assembly.request
        if number > steps:
            return
        call, answer = step(number, output(number) if output else prose(rng, words))
        log.say(call)
        if bill is not None:
            log.record(Spent("script-1", Usage(input=int(counter.request(assembly.request) * bill))))
        log.say(answer)


def paired(messages: Sequence[Message]) -> bool:
    """Has every call exactly one result, in the order of the calls and right behind them?"""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        if message.role == "tool":
            return False
        for call in message.calls:
            answer = rest.pop(0) if rest else None
            if answer is None or answer.role != "tool":
                return False
            if [block.call_id for block in answer.blocks if isinstance(block, ToolResult)] != [call.id]:
                return False
    return True


def text_of(request: Request) -> str:
    """Everything that the model can read in a request."""
    written = [section.content for section in request.sections]
    for message in request.messages:
        for block in message.blocks:
            content = block.content if isinstance(block, ToolResult) else (block,)
            written += [part.text for part in content if isinstance(part, Text)]
    return "\n".join(written)


def summaries(*texts: str) -> tuple[Callable[[Request], Any], list[Request]]:
    """A model that says these texts in turn, the last one for ever; and the list of what it was asked."""
    asked: list[Request] = []

    async def call(request: Request) -> Reply:
        asked.append(request)
        text = texts[min(len(asked), len(texts)) - 1]
        return Reply(say("assistant", text), Usage(input=100, output=20), "end")

    return call, asked


# --- generated sessions ---

letters = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))
phrases = st.one_of(
    st.text(letters, min_size=1, max_size=60),
    st.sampled_from(["<entry id=x>", "</entries>", "缓存前缀必须保持不变。", "🧑‍🚀" * 20, "See a/b.py, NET-4711."]),
    st.builds(lambda word, count: f"{word} " * count, st.sampled_from(WORDS), st.integers(1, 900)),
    st.builds(lambda count: "压缩上下文" * count, st.integers(1, 200)),
)


class Step(NamedTuple):
    """A model call that asks for tools; results arrive in the order of `arrival`, None never arrive."""

    outputs: tuple[str | None, ...]
    arrival: int


class Prompt(NamedTuple):
    text: str


class Other(NamedTuple):
    """A fact that is no part of the conversation; Rotated keeps what came after `back` positions ago."""

    fact: Fact
    back: int = 0


sections = st.builds(
    Section, st.sampled_from(["env", "AGENTS.md", "docs"]), st.sampled_from(["stable", "volatile"]), phrases
)
others = st.one_of(
    st.builds(lambda section: Other(Noticed(section)), sections),
    st.builds(lambda id, text: Other(EntrySet(id, text, "n")), st.sampled_from("abc"), phrases.map(lambda t: t[:300])),
    st.builds(lambda id: Other(EntryRemoved(id)), st.sampled_from("abc")),
    st.builds(lambda text, back: Other(Rotated("test", text, 0), back), phrases, st.integers(0, 8)),
    st.builds(lambda text: Other(Edited("hook", (say("user", text), say("assistant", "Seen.")))), phrases),
)
scripts = st.lists(
    st.one_of(
        st.builds(Step, st.lists(st.none() | phrases, min_size=0, max_size=3).map(tuple), st.integers(0, 5)),
        st.builds(Step, st.lists(phrases, min_size=1, max_size=2).map(tuple), st.integers(0, 5)),
        st.builds(Prompt, phrases.filter(str.strip)),
        others,
    ),
    max_size=25,
)


class Sent(NamedTuple):
    """A request, how many events there were when it was assembled, and how many when it went out."""

    decided_at: int
    sent_at: int
    assembly: Assembly


def play(script: Sequence[Step | Prompt | Other], one: Engine, log: Log) -> list[Sent]:
    """Run a script as the agent's loop would: a request before every answer, facts recorded before it is sent."""
    sent: list[Sent] = []
    for number, part in enumerate(script):
        match part:
            case Prompt(text):
                log.say(say("user", text))
            case Other(Rotated() as rotation, back):
                log.record(Rotated(rotation.reason, rotation.handover, max(1, len(log.written) + 1 - back)))
            case Other(fact, _):
                log.record(fact)
            case Step(outputs, arrival):
                decided = len(log.written)
                assembly = assemble(one)
                log.record(*assembly.facts)
                sent.append(Sent(decided, len(log.written), assembly))
                calls = [call_of(f"{number}-{index}") for index in range(len(outputs))]
                log.say(asks(*calls, text="" if calls else "Done."))
                log.record(Spent("script-1", Usage(input=Estimator().request(assembly.request))))
                pairs = [(call, output) for call, output in zip(calls, outputs, strict=True) if output is not None]
                random.Random(arrival).shuffle(pairs)
                log.say(*(answers(call, output) for call, output in pairs))
    return sent
