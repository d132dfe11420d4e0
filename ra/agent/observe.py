"""What can an operator see without reading usage figures? A line for each thing that tells of a context gone wrong."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from ra.context.strategies.channels import Task, one_line
from ra.core.model import Usage
from ra.core.value import Value

LARGE = 16_000  # characters of assembled context
MAX_BYTES = 5_000_000  # of the log; then it begins anew, and the old one is kept beside it


Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)


class Line(Value, frozen=True):
    """A line of the log: `text` for people, `fields` for programs."""

    level: Level
    event: str
    agent: str
    place: str
    text: str
    fields: dict[str, Any] = {}


Sink = Callable[[Line], None]


class Observer:
    """Writes the lines of one chat."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.task = Task()

    def composed(self, *, history: int, system: int, message: int) -> None:
        """Characters of what was assembled, by part."""
        total = history + system + message
        if total > LARGE:
            self._say(
                "warning",
                "large-context",
                f"large context for {self.task.place}: {total} bytes "
                f"(history={history}, sysPrompt={system}, message={message})",
                bytes=total,
                history=history,
                sysPrompt=system,
                message=message,
            )

    def billed(self, usage: Usage, threshold: int) -> None:
        """The last call of a turn: did it reach the second tier?"""
        if usage.total_input >= threshold:
            self._say(
                "warning",
                "tier-2-hit",
                f"TIER-2 HIT on {self.task.place}: {usage.total_input} total input tokens "
                f"(input={usage.input}, cacheRead={usage.cache_read}, cacheCreate={usage.cache_write}) "
                "— next turn will rotate",
                tokens=usage.total_input,
                threshold=threshold,
            )

    def rotated(self, reason: str, detail: str) -> None:
        self._say("info", "rotation", f"{reason} rotation for {self.task.place} {detail}", reason=reason)

    def planned(self, *, turns: int, memory: bool, cross_chat: bool, seconds: float, reasoning: str) -> None:
        mem, xchat, spent = _word(memory), _word(cross_chat), round(seconds * 1000)
        self._say(
            "info",
            "planner",
            f"planner: turns={turns}, mem={mem}, xchat={xchat} ({spent}ms) — {reasoning}",
            turns=turns,
            memory=memory,
            crossChat=cross_chat,
            milliseconds=spent,
            reasoning=reasoning,
        )

    def unplanned(self, why: str) -> None:
        self._say("warning", "planner-failed", f"planner failed, layered for this turn: {why}", why=why)

    def _say(self, level: Level, event: str, text: str, **fields: Any) -> None:
        agent = self.task.agent
        self.sink(Line(level, event, agent, self.task.place, f"[{agent}] {one_line(text, 1000)}", fields))


def _word(answer: bool) -> str:  # noqa: FBT001 - it is the value that is worded
    return "yes" if answer else "no"


def as_text(line: Line, moment: float) -> str:
    return line.text


def as_json(line: Line, moment: float) -> str:
    import json  # only who asked for it needs it

    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
    told: Mapping[str, Any] = {
        "time": stamp,
        "level": line.level,
        "event": line.event,
        "agent": line.agent,
        "chat": line.place,
    }
    return json.dumps({**told, "text": line.text, **line.fields}, ensure_ascii=False)


class LogFile:
    """A sink that appends to a file which only the user can read. A log that cannot be written stops nobody."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def __call__(self, line: Line) -> None:
        moment = self.clock()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size > MAX_BYTES:
                self.path.replace(self.path.with_suffix(".log.1"))
            descriptor = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            with os.fdopen(descriptor, "ab") as file:
                file.write(f"{stamp} {as_text(line, moment)}\n".encode("utf-8", "replace"))
        except OSError:
            return
