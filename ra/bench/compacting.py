"""Replays ra's own compactions with the code that runs them live."""

import asyncio
from decimal import Decimal
from typing import Literal

import msgspec

from ra.bench.replay import Aside, Sent
from ra.bench.trace import RecordedCall, Trace
from ra.context.engine import Engine
from ra.context.settings import CompactionSettings
from ra.context.size import Window
from ra.core.facts import Checkpointed, Configured, Edited, Fact, Kept, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message, say
from ra.core.model import ModelInfo, Reply, Request, Section, Usage
from ra.costs.economy import SessionEconomy

Name = Literal["truncate", "summarize", "digest", "auto"]

EXTRACT = 4000  # characters of a summary, if none was recorded
LINE = 200


class Compacting:
    """One compaction strategy of the engine. Ignores the compactions of the recorded run: here the engine decides."""

    def __init__(
        self,
        trace: Trace,
        settings: CompactionSettings,
        *,
        window: int | None,
        economy: SessionEconomy | None = None,
        name: str = "",
    ) -> None:
        self.name = name or settings.strategy
        self._estimator = trace.estimator.at(trace.factor)
        self._engine = Engine(
            settings,
            estimator=self._estimator,
            window=Window(window, "catalog"),
            info=ModelInfo(trace.model, window),
            summarize=self._summarize,
            economy=economy,
        )
        self._loop = asyncio.new_event_loop()  # a Runner installs signal handlers, 5 ms for each call of a long session
        self._asides: list[Aside] = []
        self._told: list[str] = []  # the assistant's text, from which a summary is made if none was recorded
        self._recorded = ""
        self._bill: tuple[float, Spent] | None = None  # with the time of its request
        self._at = 0
        self._apply(configured(trace), 0.0)

    def hear(self, event: TimelineEvent) -> None:
        self._at = event.at
        match event.fact:
            case Checkpointed(summary=summary):
                self._recorded = summary or self._recorded
            case Rotated() | Edited() | Configured() | Spent() | Kept():
                pass
            case fact:
                if isinstance(fact, Said) and fact.message.role == "assistant" and fact.message.text:
                    self._told.append(fact.message.text)
                self._engine.apply(event)
                if isinstance(fact, Said) and fact.message.role == "assistant":
                    self._pay(event.time)

    def send(self, call: RecordedCall) -> Sent:
        self._pay(call.time)
        self._asides = []
        assembly = self._loop.run_until_complete(self._engine.assemble())
        for fact in assembly.facts:
            self._apply(fact, call.time)
        rewritten = any(isinstance(fact, Checkpointed) for fact in assembly.facts)
        request = assembly.request
        return Sent(request.messages, request.marks.messages, rewritten=rewritten, asides=self._asides)

    def billed(self, call: RecordedCall, usage: Usage, dollars: Decimal) -> None:
        # In a live run, an answer is recorded before its bill.
        self._bill = (call.time, Spent(self._engine.info.id, usage, str(dollars)))

    def _pay(self, time: float) -> None:
        if self._bill is not None:
            (start, bill), self._bill = self._bill, None
            self._apply(msgspec.structs.replace(bill, seconds=max(0.0, time - start)), time)

    def close(self) -> None:
        self._loop.close()

    def _apply(self, fact: Fact, time: float) -> None:
        self._engine.apply(TimelineEvent(self._at, time, fact))

    async def _summarize(self, request: Request) -> Reply:
        """The recorded summary, or an extract: no model is called. The replay bills the call."""
        text = self._recorded or extract(self._told)
        answer = f"<summary>{text}</summary>"
        self._asides.append(Aside(request.messages, 0, self._estimator.scaled(self._estimator.text(answer))))
        return Reply(Message("assistant", say("assistant", answer).blocks), Usage(), "end")


def configured(trace: Trace) -> Configured:
    """The configuration of the recorded requests. Transcripts do not show it, so filler of its size replaces it."""
    words = max(0, round(trace.base / trace.factor) - 4)
    return Configured("", trace.model, "timeline", sections=(Section("system", "pinned", " word" * words),))


def extract(told: list[str]) -> str:
    """The last line of each of the newest answers, oldest first: a summary that a program can write."""
    lines: list[str] = []
    room = EXTRACT
    for text in reversed(told):
        line = text.strip().rsplit("\n", 1)[-1][:LINE]
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))
