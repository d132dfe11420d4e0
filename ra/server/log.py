"""The operator's log: one line per event on stderr, as text or as JSON."""

import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Literal, TextIO

from ra.core.redaction import redacted
from ra.core.text import clean
from ra.session.log import LEVELS, Line, LogLevel, as_json, as_text

Format = Literal["text", "json"]


class Log:
    """Writes lines of at least `level`, from the strategies and from the server."""

    def __init__(
        self,
        form: Format = "text",
        level: LogLevel = "info",
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._render = as_json if form == "json" else as_text
        self._least = LEVELS.index(level)
        self._stream = stream or sys.stderr
        self._clock = clock

    def write(self, line: Line) -> None:
        if LEVELS.index(line.level) < self._least:
            return
        try:
            self._stream.write(redacted(clean(self._render(line, self._clock()))) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._least = len(LEVELS)  # the reader is gone: errors cannot be reported anywhere

    def say(
        self, event: str, text: str, *, level: LogLevel = "info", agent: str = "", place: str = "", **more: Any
    ) -> None:
        """Writes one line. The text may come from anywhere, so line breaks are removed."""
        printable = "".join(char if char.isprintable() else " " for char in text)
        self.write(Line(level, event, agent, place, f"[{agent}] {printable}" if agent else printable, more))

    def warn(self, text: str) -> None:
        self.say("warning", text, level="warning")

    def bug(self, what: str, error: BaseException) -> None:
        trace = "".join(traceback.format_exception(error))
        self.say("bug", f"{what}: {type(error).__name__}: {error}", level="error", trace=trace)
        if self._render is as_text and self._least < len(LEVELS):
            self._stream.write(redacted(trace))


class Bridge(logging.Handler):
    """Sends the log records of libraries to the same output."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self._log.bug(record.getMessage(), record.exc_info[1])
        else:
            level: LogLevel = "error" if record.levelno >= logging.ERROR else "warning"
            self._log.say("http", record.getMessage(), level=level)
