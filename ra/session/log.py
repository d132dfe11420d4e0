"""The operator's log: a line for each sign of a context gone wrong, in a file and wherever else it is wanted."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

from ra.context.compose.strategy import LogLine, TaskOrigin, one_line
from ra.core.model import Usage
from ra.core.value import Value
from ra.system.files import append_private, make_private

LARGE = 16_000  # characters of assembled context
MAX_BYTES = 5_000_000  # of the log; then it begins anew, and the old one is kept beside it


LogLevel = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)


class Line(Value, frozen=True):
    """A line of the log: `text` for people, `fields` for programs."""

    level: LogLevel
    event: str
    agent: str
    place: str
    text: str
    fields: dict[str, Any] = {}


class Sink(Protocol):
    """Takes the lines of a log."""

    def write(self, line: Line) -> None: ...


class EventLog:
    """Passes lines on to its sinks, those that are important enough."""

    def __init__(self, *sinks: Sink, level: LogLevel = "info") -> None:
        self._sinks = sinks
        self._least = LEVELS.index(level)

    def also_to(self, sink: Sink) -> "EventLog":
        """A log that writes to another sink as well, whatever the level of a line."""
        return EventLog(self, sink, level=LEVELS[0])

    def write(self, line: Line) -> None:
        if LEVELS.index(line.level) >= self._least:
            for sink in self._sinks:
                sink.write(line)

    def note(self, task: TaskOrigin, note: LogLine) -> None:
        """A line about a task."""
        text = f"[{task.agent}] {one_line(note.text, 1000)}"
        self.write(Line(cast(LogLevel, note.level), note.event, task.agent, task.place, text, note.fields))


def large_context(place: str, *, history: int, system: int, message: int) -> LogLine | None:
    """Characters of what was assembled, by part; None when it is not large."""
    total = history + system + message
    if total <= LARGE:
        return None
    return LogLine(
        "warning",
        "large-context",
        f"large context for {place}: {total} bytes (history={history}, sysPrompt={system}, message={message})",
        {"bytes": total, "history": history, "sysPrompt": system, "message": message},
    )


def tier_two_hit(place: str, usage: Usage, threshold: int) -> LogLine | None:
    """The last call of a turn reached the second tier; None when it did not."""
    if usage.total_input < threshold:
        return None
    return LogLine(
        "warning",
        "tier-2-hit",
        f"TIER-2 HIT on {place}: {usage.total_input} total input tokens "
        f"(input={usage.input}, cacheRead={usage.cache_read}, cacheCreate={usage.cache_write}) "
        "— next turn will rotate",
        {"tokens": usage.total_input, "threshold": threshold},
    )


def rotation(place: str, reason: str, detail: str) -> LogLine:
    return LogLine("info", "rotation", f"{reason} rotation for {place} {detail}", {"reason": reason})


def as_text(line: Line, moment: float) -> str:
    return line.text


def as_json(line: Line, moment: float) -> str:
    import json  # only who asked for it needs it

    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
    entry: dict[str, Any] = {
        "time": stamp,
        "level": line.level,
        "event": line.event,
        "agent": line.agent,
        "chat": line.place,
    }
    return json.dumps({**entry, "text": line.text, **line.fields}, ensure_ascii=False)


class LogFile:
    """A sink that appends to a file which only the user can read. A log that cannot be written stops nobody."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def write(self, line: Line) -> None:
        moment = self.clock()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        try:
            make_private(self.path.parent)
            if self.path.exists() and self.path.stat().st_size > MAX_BYTES:
                self.path.replace(self.path.with_suffix(".log.1"))
            append_private(self.path, f"{stamp} {as_text(line, moment)}\n".encode("utf-8", "replace"))
        except OSError:
            return
