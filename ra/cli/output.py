"""Writes a run for scripts: only the answer goes to stdout, everything else to stderr."""

import contextlib
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from ra.core.events import (
    Compacted,
    Event,
    Outcome,
    Retrying,
    Rotated,
    RunEnded,
    RunStopped,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Warned,
)
from ra.core.messages import Content, Text, ToolCall
from ra.core.model import Usage
from ra.core.text import visible, visible_line
from ra.core.value import encode

if TYPE_CHECKING:
    from ra.cli.markdown import MarkdownStream  # start-up time: Rich, only on a terminal

EXIT = {"answered": 0, "failed": 1, "mistake": 2, "limit": 3, "refused": 5, "empty": 5, "unfit": 5, "interrupted": 130}

NO_ANSWER: dict[Outcome, str] = {
    "empty": "the model gave an empty answer; ask again, or choose another model with --model.",
    "refused": "the model refused to answer; rephrase the prompt, or choose another model with --model.",
}


LIVE_ROWS = 5  # last lines of a running or stopped command
MAX_OUTPUT = 20_000  # characters of a running command's output that are kept


class Streams:
    """stdout and stderr, and whether each is a terminal, coloured, and open."""

    def __init__(self, env: Mapping[str, str], *, plain: bool = False) -> None:
        self.out_tty = _is_terminal(sys.stdout)
        self.err_tty = _is_terminal(sys.stderr)
        self.colour = _colour(env, self.err_tty) and not plain
        self.moving = self.err_tty and not plain and env.get("TERM") != "dumb"
        self.asking = False  # a question is open: nothing may move
        self.unanswered = ""  # the last call that was asked about, until it is answered
        self.asked_s = 0.0  # seconds that the user took to answer, which no clock counts
        self.plain = plain or env.get("TERM") == "dumb"
        self.closed = sys.stdout is None
        self.failed = False  # the answer could not be written
        self.summed_up = False  # a script has its object

    def out(self, text: str) -> None:
        """Writes to stdout as UTF-8, whatever the locale. If the reader is gone, ends quietly."""
        if self.closed or sys.stdout is None:
            return
        try:
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
        except OSError as error:
            self.closed = True
            # Python would complain again when it flushes on exit: give it something to flush to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if not isinstance(error, BrokenPipeError):
                self.failed = True
                self.err(f"ra: the answer could not be written: {error.strerror}.\n")

    @contextlib.contextmanager
    def asked(self, call_id: str) -> Iterator[None]:
        """While a question is open, the spinner stands still and its line is empty."""
        self.asking, self.unanswered, began = True, call_id, time.monotonic()
        if self.moving:
            self.err("\r\x1b[2K")
        try:
            yield
            self.unanswered = ""
        finally:
            self.asking = False
            self.asked_s += time.monotonic() - began

    def err(self, text: str, *, dim: bool = False) -> None:
        if sys.stderr is None:
            return
        styled = f"\x1b[2m{text}\x1b[0m" if dim and self.colour else text
        with contextlib.suppress(OSError):  # there is nowhere left to report that stderr is gone
            sys.stderr.buffer.write(styled.encode("utf-8", "replace"))
            sys.stderr.buffer.flush()


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _colour(env: Mapping[str, str], terminal: bool) -> bool:  # noqa: FBT001 (a fact about the stream, not a switch)
    if env.get("NO_COLOR"):
        return False
    return bool(env.get("FORCE_COLOR")) or (terminal and env.get("TERM") != "dumb")


class TextFace:
    """`--output-format text`: streams on a terminal; a pipe gets the complete answer."""

    def __init__(
        self, streams: Streams, *, quiet: bool, verbose: bool, stored: bool = True, at_once: bool = False
    ) -> None:
        self.streams = streams
        self._at_once = at_once or not streams.out_tty  # otherwise written when complete and checked
        self.stored = stored  # `ra -c` can continue it
        self.embedded = False  # a tiny model on this machine answers, and says so
        self._markdown: MarkdownStream | None = None
        self._retry = RetryWait()
        self.quiet = quiet
        self.verbose = verbose
        self._line_open = False  # the terminal's cursor is after text of the answer
        self._thinking_open = False
        self._running: dict[str, ShownCall] = {}

    def hear(self, event: Event) -> None:
        self._retry.hear(event)
        match event:
            case TextDelta(text):
                self._close_thinking()
                if self._at_once:
                    pass
                elif self.streams.plain:
                    self.streams.out(visible(text))
                    self._line_open = not text.endswith("\n")
                else:
                    self._render(text)
            case ThinkingDelta(text):
                if not self.quiet and (self.verbose or self.streams.err_tty):
                    self._thinking_open = True
                    self.streams.err(visible(text), dim=True)
            case ToolStarted(call):
                self.note(f"· {describe(call)}")
                self._running[call.id] = ShownCall(call, self._now())
            case ToolOutput(call_id, text) if call_id in self._running:
                self._running[call_id].hear(text)
            case ToolEnded(call, result):
                self._running.pop(call.id, None)
                if result.is_error or self.verbose:
                    self.note(f"  {'failed' if result.is_error else 'gave'}: {visible_line(brief(result.content))}")
            case Retrying(reason, wait_s, restart, most):
                self._close_line()
                if restart or self.quiet or self.verbose or not self.streams.moving:  # otherwise the spinner counts
                    self.note(f"ra: {retry(reason, self._retry.number, wait_s, restart=restart, most=most)}")
            case Compacted(fact):
                self.note(f"· {fact.summary_line}")
            case Rotated(fact):
                self.note(f"· new segment ({fact.reason})")
            case Warned(text):
                self.note(f"ra: {visible(text)}")
            case TurnEnded(iteration, model, usage, dollars) if self.verbose:
                price = f", ${dollars}" if dollars else ""
                self.note(f"· call {iteration}: {model}, {usage.total_input:,} in, {usage.output:,} out{price}")
            case RunStopped():
                self._stop()
            case RunEnded():
                self._end(event)
            case _:
                pass

    def _now(self) -> float:
        return time.monotonic() - self.streams.asked_s

    def _stop(self) -> None:
        """Shows immediately what was stopped, while its cost is still being counted."""
        self._close_thinking()
        if not self.streams.err_tty:
            return
        if stopped_wait := self._retry.take_stopped():
            self.note(f"ra: {stopped_wait}")
        for running in self._running.values():
            asked = running.call.id == self.streams.unanswered
            seconds = self._now() - running.began
            state = "not run: stopped before you answered" if asked else f"stopped after {seconds:.0f} s"
            self.note(f"{chr(10) * asked}  {describe(running.call)}: {state}")
            for line in () if asked else running.last_lines():
                self.note(f"    {visible_line(line, shutil.get_terminal_size().columns - 5)}")
        self._running = {}

    def _end(self, end: RunEnded) -> None:
        self._stop()
        if not self._at_once:
            self._close_line()
        elif end.answer and end.outcome in {"answered", "refused", "limit", "interrupted"}:
            self.streams.out(end.answer if end.answer.endswith("\n") else end.answer + "\n")
        if error := error_text(end):
            self.streams.err(f"ra: {visible(error)}\n")
        if self.streams.out_tty and self.streams.err_tty and not self.quiet and end.iterations:
            self.streams.err(cost_line(end, stored=self.stored, embedded=self.embedded) + "\n", dim=True)

    def _render(self, text: str) -> None:
        """Shows Markdown line by line, and the end of the unfinished line."""
        if self._markdown is None:
            from ra.cli.markdown import MarkdownStream
            from ra.cli.render import Paper, light_background

            width = shutil.get_terminal_size().columns
            light = light_background(os.environ)
            self._markdown = MarkdownStream(Paper(colour=self.streams.colour, width=width, light=light))
            self._width = width
        self._markdown.feed(text)
        lines = ""
        while self._markdown.more:
            lines += self._markdown.take()
        open_line = self._markdown.rest().rpartition("\n")[2]
        wipe = "\r\x1b[2K" if self._line_open else ""
        self.streams.out(f"{wipe}{lines}{_end_of(open_line, self._width - 1)}")
        self._line_open = bool(open_line)

    def warn(self, text: str) -> None:
        self.note(f"ra: {text}")

    def note(self, text: str) -> None:
        """A line on stderr that is not part of the answer."""
        if self.quiet and not text.startswith("ra:"):
            return
        self._close_thinking()
        self._close_line()
        self.streams.err(text + "\n", dim=text.startswith(("·", " ")))

    def _close_line(self) -> None:
        if self._markdown is not None:
            wipe = "\r\x1b[2K" if self._line_open else ""
            self.streams.out(wipe + self._markdown.finish())
            self._markdown = None
        elif self._line_open:
            self.streams.out("\n")
        self._line_open = False

    def _close_thinking(self) -> None:
        if self._thinking_open:
            self.streams.err("\n")
            self._thinking_open = False


class JsonFace:
    """`json`: one object at the end. `stream-json`: each event on a line; the last line is that object."""

    def __init__(self, streams: Streams, *, stream: bool) -> None:
        self.streams = streams
        self.stream = stream

    def hear(self, event: Event) -> None:
        match event:
            case RunEnded():
                self.streams.summed_up = True
                self.streams.out(msgspec.json.encode(summary(event)).decode() + "\n")
            case Warned(text) if not self.stream:
                self.streams.err(f"ra: {visible(text)}\n")
            case _ if self.stream:
                self.streams.out(encode(event).decode() + "\n")

    def warn(self, text: str) -> None:
        self.note(f"ra: {text}")

    def note(self, text: str) -> None:
        self.streams.err(text + "\n")


def summary(end: RunEnded) -> dict[str, Any]:
    """The report of a run for scripts, on every exit path."""
    fields: dict[str, Any] = {
        "session": end.session,
        "model": end.model,
        "answer": end.answer,
        "stop": end.outcome,
        "usage": {
            "input": end.usage.input,
            "output": end.usage.output,
            "cacheRead": end.usage.cache_read,
            "cacheWrite": end.usage.cache_write,
        },
        "cost": float(end.dollars) if end.dollars else None,
        "iterations": end.iterations,
        "duration": round(end.seconds, 3),
        "compactions": end.compactions,
    }
    if error := error_text(end):
        fields["error"] = error
    return fields


def error_text(end: RunEnded) -> str:
    """Why the run did not end with an answer; "" if it did."""
    return end.error or NO_ANSWER.get(end.outcome, "")


def describe(call: ToolCall) -> str:
    """A call in one line: its name and its most telling argument."""
    telling = next(
        (call.args[k] for k in ("command", "path", "pattern", "url", "query", "prompt") if k in call.args), ""
    )
    return visible_line(f"{call.name} {telling}".strip())


def retry(reason: str, number: int, wait_s: float, *, restart: bool = False, most: int = 0) -> str:
    """A failed attempt in one line: the reason, the number of the retry, and the delay."""
    again = " The answer begins anew:" if restart else ""
    wait = f" in {wait_s:.0f} s" if wait_s >= 1 else ""
    return f"{fault(reason)} Retry {number}{f' of {most}' if most else ''}{wait}.{again}"


class ShownCall:
    """A call that has not ended, the time of its start, and its output so far."""

    def __init__(self, call: ToolCall, began: float) -> None:
        self.call = call
        self.began = began
        self.output = ""

    def hear(self, text: str) -> None:
        self.output = (self.output + text)[-MAX_OUTPUT:]

    def last_lines(self) -> list[str]:
        return visible(self.output).rstrip().splitlines()[-LIVE_ROWS:]


class RetryWait:
    """The wait before another attempt, as one line with a countdown, from the events of a run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.number = 0  # of consecutive retries
        self._clock = clock
        self._fault = self._of = ""
        self._at = 0.0

    def hear(self, event: Event) -> None:
        match event:
            case Retrying(reason, wait_s, retries=most):
                self.number += 1
                self._fault, self._of = fault(reason), f" of {most}" if most else ""
                self._at = self._clock() + wait_s
            case RunStopped() | RunEnded(outcome="interrupted"):
                pass  # `take_stopped` says what was stopped
            case TextDelta() | TurnStarted():
                self.number, self._fault = 0, ""
            case _:
                self._fault = ""

    @property
    def line(self) -> str:
        """`Server error (500). Retry 2 of 5 in 2 s. Ctrl-C stops`, or "" during no wait."""
        if not self._fault:
            return ""
        seconds = math.ceil(self._at - self._clock())
        wait = f" in {seconds} s" if seconds > 0 else " now"
        return f"{self._fault} Retry {self.number}{self._of}{wait}. Ctrl-C stops"

    def take_stopped(self) -> str:
        """What a stop has prevented; "" if there was no wait."""
        fault_words, self._fault = self._fault, ""
        return f"{fault_words} Stopped before retry {self.number}{self._of}" if fault_words else ""


def fault(reason: str) -> str:
    """The reason in a few words, from its HTTP status if there is one."""
    status = re.search(r"\((\d{3})\)", reason)
    number = int(status[1]) if status else 0
    if number == 429:
        return "Rate limit (429)."
    if number >= 500:
        return f"{'Overloaded' if number in (503, 529) else 'Server error'} ({number})."
    words = visible_line(reason, 120).rstrip(".;")
    return words if words.endswith("?") else words + "."


def cost_line(end: RunEnded, *, stored: bool, embedded: bool = False) -> str:
    """`1,218 in, 80% cached · 340 out · $0.0085 · ra -c goes on`."""
    sent = end.usage.total_input
    cached = f", {end.usage.cache_read * 100 // sent}% cached" if sent and end.usage.cache_read else ""
    dollars = float(end.dollars) if end.dollars else 0.0
    price = f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}" if dollars else ""
    who = "tiny embedded model" if embedded else ""
    parts = [who, f"{sent:,} in{cached}", f"{end.usage.output:,} out", price, "ra -c goes on" if stored else ""]
    return " · ".join(part for part in parts if part)


def _end_of(text: str, width: int) -> str:
    """As much of the end of a line as fits into one row."""
    if text.isascii():
        return text[-width:]
    return text[-(width // 2) :]  # a wide character takes two columns


def brief(content: Sequence[Content]) -> str:
    return " ".join(block.text if isinstance(block, Text) else f"[{block.media_type}]" for block in content)


def no_start(error: str, outcome: Outcome = "failed") -> RunEnded:
    """The JSON output of a run that ended before its first request."""
    return RunEnded(outcome, "", "", "", Usage(), "0", iterations=0, seconds=0.0, error=error)
