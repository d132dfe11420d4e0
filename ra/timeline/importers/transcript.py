"""What an importer returns: a Transcript, the events of a session that was recorded elsewhere."""

import math
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ra.core.facts import Configured, Cut, Edited, Fact, Rotated, Said, TimelineEvent
from ra.core.messages import Message, ToolResult, say
from ra.core.model import Section
from ra.core.value import Value
from ra.timeline.importers.lines import Skips


class Transcript(Value, frozen=True):
    """One conversation of a file. `skipped` says, with line numbers, what of the file was not used, and why."""

    name: str
    events: list[TimelineEvent]
    skipped: list[str]
    source_format: str
    model: str = ""
    project: str = ""
    texts: list[str] = []  # what the session kept outside its log
    window: int | None = None  # of the model, where the recording names it


class TranscriptDraft:
    """A transcript in the making. Later lines may still amend what earlier ones said."""

    def __init__(self, name: str, source_format: str, *, time: float = 0.0) -> None:
        self.name = name
        self.source_format = source_format
        self.project = ""
        self.sections: tuple[Section, ...] = ()
        self.window: int | None = None
        self.events: list[TimelineEvent] = []
        self._time = time
        self._configured: Configured | None = None
        self._callers: dict[str, tuple[int, str]] = {}  # call id → position of its message, and the tool's name

    @property
    def next_at(self) -> int:
        return len(self.events) + 1

    def add(self, time: float | None, *facts: Fact) -> int:
        """Record facts at a moment, or at the one before if it is not known. Returns the position of the last."""
        self._time = self._time if time is None else time
        for fact in facts:
            self._note_calls(self.next_at, fact)
            self.events.append(TimelineEvent(self.next_at, self._time, fact))
        return len(self.events)

    def amend(self, at: int, fact: Fact) -> None:
        self._note_calls(at, fact)
        self.events[at - 1] = TimelineEvent(at, self.events[at - 1].time, fact)

    def speak(self, time: float | None, message: Message, *, cut: str = "") -> int:
        """A model's answer, after a note of what it stands on if that has changed. Returns its position."""
        if message.model or self.sections:
            configured = Configured(provider_of(message.model), message.model, "timeline", sections=self.sections)
            if configured != self._configured:
                self._configured = configured
                self.add(time, configured)
        return self.add(time, Cut(message, cut) if cut else Said(message))

    def answer(self, time: float | None, result: ToolResult) -> None:
        """A tool's result. A call that was answered had been made, even if its stream broke off."""
        at, name = self._callers.get(result.call_id, (0, ""))
        if at and isinstance(cut := self.events[at - 1].fact, Cut):
            self.amend(at, Said(cut.message))
        named = ToolResult(result.call_id, result.name or name, result.content, result.is_error)
        self.add(time, Said(Message("tool", (named,))))

    def seen(self, before: int | None = None) -> list[Message]:
        """The conversation as the model sees it, up to a position."""
        messages: list[Message] = []
        for event in self.events[: None if before is None else before - 1]:
            match event.fact:
                case Said(message):
                    messages.append(message)
                case Edited(messages=replaced):
                    messages = list(replaced)
                case Rotated(handover=handover, keep_from=keep_from):
                    facts = (later.fact for later in self.events[keep_from - 1 : event.at - 1])
                    messages = [say("user", handover, name="summary")]
                    messages += (fact.message for fact in facts if isinstance(fact, Said))
                case _:
                    pass
        return messages

    def finished(self, skips: Skips) -> Transcript:
        model = self._configured.model if self._configured else ""
        return Transcript(
            self.name, self.events, skips.notes, self.source_format, model, self.project, window=self.window
        )

    def _note_calls(self, at: int, fact: Fact) -> None:
        if isinstance(fact, Said | Cut):
            for call in fact.message.calls:
                self._callers[call.id] = (at, call.name)


def provider_of(model: str) -> str:
    """Whose model it is, by its name; empty when the name does not tell."""
    name = model.rsplit("/", 1)[-1].lower()
    if name.startswith("claude"):
        return "anthropic"
    if name.startswith(("gpt", "o1", "o3", "o4", "codex", "chatgpt")):
        return "openai"
    return "google" if name.startswith("gemini") else ""


def moment(value: Any) -> float | None:
    """Seconds since 1970 from an ISO time, or from a number of seconds or milliseconds."""
    match value:
        case str():
            try:
                return datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError):
                return None
        case bool():
            return None
        case int() | float() if math.isfinite(value) and 0 < value < 1e14:
            return value / 1000 if value > 1e11 else float(value)
        case _:
            return None


def modified(path: Path) -> float:
    """When the file was written: the best guess for a transcript without times."""
    return path.stat().st_mtime


def count(value: Any) -> int:
    """A number of tokens, whatever was written there."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return 0
    return int(value)


def price(value: Any) -> str:
    """Dollars as decimal text; empty when there is no usable figure."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        return ""
    return f"{dollars:f}" if dollars.is_finite() and 0 <= dollars < 10**9 else ""


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
