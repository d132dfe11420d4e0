"""How does a script hear a run? stdout carries the answer and nothing else; everything else goes to stderr."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import msgspec

from ra.cli.safe import one_line, visible
from ra.core.events import (
    Compacted,
    Event,
    Outcome,
    Retrying,
    Rotated,
    RunEnded,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    Warned,
)
from ra.core.messages import Content, Text, ToolCall
from ra.core.model import Usage
from ra.core.value import encode

EXIT = {"answered": 0, "failed": 1, "limit": 3, "refused": 5, "empty": 5, "interrupted": 130}


class Streams:
    """stdout and stderr as they are: a terminal or not, coloured or not, closed or not."""

    def __init__(self, env: Mapping[str, str], *, plain: bool = False) -> None:
        self.out_tty = _is_terminal(sys.stdout)
        self.err_tty = _is_terminal(sys.stderr)
        self.colour = _colour(env, self.err_tty) and not plain
        self.moving = self.err_tty and not plain and env.get("TERM") != "dumb"
        self.closed = sys.stdout is None
        self.failed = False  # the answer could not be written
        self.summed_up = False  # a script has its object

    def out(self, text: str) -> None:
        """Write to stdout as UTF-8, whatever the locale says. A reader that went away ends it quietly."""
        if self.closed or sys.stdout is None:
            return
        try:
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
        except OSError as error:
            self.closed = True
            # Python would complain once more at exit when it flushes: give it a place to flush to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if not isinstance(error, BrokenPipeError):
                self.failed = True
                self.err(f"ra: the answer could not be written: {error.strerror}.\n")

    def err(self, text: str, *, dim: bool = False) -> None:
        if sys.stderr is None:
            return
        shown = f"\x1b[2m{text}\x1b[0m" if dim and self.colour else text
        with contextlib.suppress(OSError):  # there is nowhere left to say that stderr is gone
            sys.stderr.buffer.write(shown.encode("utf-8", "replace"))
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
    """`--output-format text`: streams on a terminal; in a pipe the answer is written when it is complete."""

    def __init__(self, streams: Streams, *, quiet: bool, verbose: bool) -> None:
        self.streams = streams
        self.quiet = quiet
        self.verbose = verbose
        self._line_open = False  # the terminal's cursor is behind text of the answer
        self._thinking_open = False

    def hear(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._close_thinking()
                if self.streams.out_tty:
                    self.streams.out(visible(text))
                    self._line_open = not text.endswith("\n")
            case ThinkingDelta(text):
                if not self.quiet and (self.verbose or self.streams.err_tty):
                    self._thinking_open = True
                    self.streams.err(visible(text), dim=True)
            case ToolStarted(call):
                self.note(f"· {describe(call)}")
            case ToolEnded(call, result) if result.is_error or self.verbose:
                self.note(f"  {'failed' if result.is_error else 'gave'}: {one_line(brief(result.content))}")
            case Retrying(reason, wait_s, restart):
                self._close_line()
                again = " The answer begins anew:" if restart else ""
                self.note(f"ra: {one_line(reason, 200)}; trying again in {wait_s:.1f} s.{again}")
            case Compacted(fact):
                self.note(f"· compacted ({fact.strategy}): {fact.before:,} → {fact.after:,} tokens")
            case Rotated(fact):
                self.note(f"· new segment ({fact.reason})")
            case Warned(text):
                self.note(f"ra: {visible(text)}")
            case TurnEnded(iteration, model, usage, dollars) if self.verbose:
                price = f", ${dollars}" if dollars else ""
                self.note(f"· call {iteration}: {model}, {usage.total_input:,} in, {usage.output:,} out{price}")
            case RunEnded():
                self._end(event)
            case _:
                pass

    def _end(self, end: RunEnded) -> None:
        self._close_thinking()
        if self.streams.out_tty:
            self._close_line()
        elif end.answer and end.outcome in {"answered", "refused", "limit", "interrupted"}:
            self.streams.out(end.answer if end.answer.endswith("\n") else end.answer + "\n")
        if end.outcome == "empty":
            self.streams.err("ra: the model gave an empty answer; ask again, or another model with --model.\n")
        elif end.outcome == "refused":
            self.streams.err(
                "ra: the model refused to answer; put it another way, or ask another model with --model.\n"
            )
        elif end.error:
            self.streams.err(f"ra: {visible(end.error)}\n")

    def note(self, text: str) -> None:
        """A line on stderr that is not the answer."""
        if self.quiet and not text.startswith("ra:"):
            return
        self._close_thinking()
        self._close_line()
        self.streams.err(text + "\n", dim=text.startswith(("·", " ")))

    def _close_line(self) -> None:
        if self._line_open:
            self.streams.out("\n")
            self._line_open = False

    def _close_thinking(self) -> None:
        if self._thinking_open:
            self.streams.err("\n")
            self._thinking_open = False


class JsonFace:
    """`json`: one object at the end. `stream-json`: each event on a line, the last line is that object."""

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

    def note(self, text: str) -> None:
        self.streams.err(text + "\n")


def summary(end: RunEnded) -> dict[str, Any]:
    """What a script learns of a run, on every exit path."""
    told: dict[str, Any] = {
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
    if end.error:
        told["error"] = end.error
    return told


def describe(call: ToolCall) -> str:
    """A call in one line: its name and the argument that tells most."""
    telling = next(
        (call.args[k] for k in ("command", "path", "pattern", "url", "query", "prompt") if k in call.args), ""
    )
    return one_line(f"{call.name} {telling}".strip())


def brief(content: Sequence[Content]) -> str:
    return " ".join(block.text if isinstance(block, Text) else f"[{block.media_type}]" for block in content)


def no_start(error: str, outcome: Outcome = "failed") -> RunEnded:
    """What an end before the first request looks like to a script that asked for JSON."""
    return RunEnded(outcome, "", "", "", Usage(), "0", iterations=0, seconds=0.0, error=error)
