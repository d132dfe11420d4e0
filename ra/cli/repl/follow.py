"""Turns the events of a run into lines for the screen, and into the changing part below them."""

import re
import time
from collections import deque
from collections.abc import Callable

import msgspec

from ra.cli import changes
from ra.cli.markdown import MarkdownStream
from ra.cli.output import LIVE_ROWS, RetryWait, ShownCall, brief, describe, retry
from ra.cli.render import Paper
from ra.cli.repl.terminal import Fragments
from ra.cli.repl.wrap import last_rows
from ra.cli.spinner import FRAMES
from ra.core.events import (
    Compacted,
    Event,
    Retrying,
    Rotated,
    RunEnded,
    RunStopped,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnStarted,
    Warned,
)
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.text import visible, visible_line

PIECE = 10  # lines that are rendered at once
THOUGHT_ROWS = 3
HEAD_ROWS = 3  # first lines of a failed command
SLOW = ("Agent", "Bash", "WebFetch")  # announced if nothing on the screen moves
PATIENCE_S = 1.0  # a shorter wait needs no clock

_ENDED = re.compile(r"\[(exit code \d+|timed out after [^\]]*)\]\Z")  # the last line of a failed command's output


class Telling:
    """Receives events, returns what is finished (`take`), and shows the rest (`moving`) until it is."""

    def __init__(self, paper: Paper, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.ended_tools: list[ToolEnded] = []  # of the last prompt, for /tools
        self.edited: dict[str, ToolCall] = {}  # calls that the user changed, by their ids
        self.previewed: set[str] = set()  # ids of calls whose change a question has shown
        self.busy = ""  # the current activity, if any
        self._paper = paper
        self._clock = clock
        self._words = MarkdownStream(paper)
        self._ready: deque[MarkdownStream | str] = deque()  # in the order of the screen; text is rendered late
        self._thought = ""
        self._thinking_since = 0.0
        self._since = self._asked_at = 0.0
        self._asked = ""  # the call of the open question
        self._running: dict[str, ShownCall] = {}
        self._retry = RetryWait(clock)
        self._stopped = False  # only the price is still being counted

    def begin(self) -> None:
        self.ended_tools = []
        self.previewed = set()
        self._running = {}
        self._retry = RetryWait(self._clock)
        self._stopped = False
        self._since = self._clock()
        self.busy = "waiting for the model"

    def work(self, what: str) -> None:
        """Names an activity of the user that takes a while; "" ends it."""
        self._since, self.busy = self._clock(), what

    def ask(self, call_id: str) -> None:
        """A question about a call is open: no time passes until `answered`."""
        self._asked, self._asked_at = call_id, self._clock()

    def answered(self) -> None:
        waited = self._clock() - self._asked_at
        self._since += waited
        for running in self._running.values():
            running.began += waited
        self._asked = ""

    def hear(self, event: Event) -> None:
        """Cheap for text: `take` renders it."""
        if not isinstance(event, ThinkingDelta):
            self._fold_thinking()
        self._retry.hear(event)
        match event:
            case TextDelta(text):
                self._words.feed(text)
                self.busy = "writing"
            case ThinkingDelta(text):
                self._thinking_since = self._thinking_since or self._clock()
                self._thought += text
                self.busy = "thinking"
            case ToolOutput(call_id, text) if call_id in self._running:
                self._running[call_id].hear(text)
            case ToolOutput():
                pass
            case TurnStarted():
                self.busy = "waiting for the model"
            case _:
                self._finish_words()
                self._hear_rest(event)

    def _hear_rest(self, event: Event) -> None:
        match event:
            case ToolStarted(call):
                self._running[call.id] = ShownCall(call, self._clock())
                self.busy = "running"
                if self._paper.plain and call.name in SLOW:
                    self._ready.append(self._paper.line(f"◦ {describe(call)}", "dim"))
            case ToolEnded(call):
                self._running.pop(call.id, None)
                ended = msgspec.structs.replace(event, call=self.edited.pop(call.id, call))
                self.ended_tools.append(ended)
                self._ready += self._tool(ended)
                self.busy = "waiting for the model"
            case Retrying(reason, wait_s, restart, most):
                if restart or self._paper.plain:  # nothing moves, or half an answer is above
                    self.note(retry(reason, self._retry.number, wait_s, restart=restart, most=most))
            case Compacted(fact):
                self.note(fact.summary_line)
            case Rotated(fact):
                self.note(f"new segment ({visible_line(fact.reason)})")
            case Warned(text):
                self.note(text, style="yellow")
            case RunStopped(reason):
                self._stop(by_user=reason == "user")
            case RunEnded():
                self._end(event)
            case _:
                pass

    def note(self, text: str, style: str = "dim") -> None:
        self._ready.append(self._paper.line(f"· {visible(text)}", style))

    @property
    def calls(self) -> list[ToolEnded]:
        """The calls of the last prompt; running ones with their output so far."""
        running = list(self._running.values())
        return [*self.ended_tools, *(_so_far(call, self._clock() - call.began, "running for") for call in running)]

    # --- finished ---

    @property
    def more(self) -> bool:
        return bool(self._ready) or self._words.more

    def take(self) -> str:
        """The next finished piece, small enough that no key has to wait for it."""
        head = self._ready[0] if self._ready else self._words
        if isinstance(head, str):
            self._ready.popleft()
            return head
        if head.more or head is self._words:
            return head.take(PIECE)
        self._ready.popleft()
        return head.finish()

    def _finish_words(self) -> None:
        self._ready.append(self._words)
        self._words = MarkdownStream(self._paper)

    def _fold_thinking(self) -> None:
        if self._thought:
            seconds = self._clock() - self._thinking_since
            count = len(self._thought.split())
            self._ready.append(self._paper.line(f"· thought for {seconds:.0f} s ({count:,} words)", "dim italic"))
            self._thought, self._thinking_since = "", 0.0

    def _tool(self, ended: ToolEnded) -> list[str]:
        """One line for the call and its outcome; a change of a file is shown as such."""
        call, result = ended.call, ended.result
        text = visible(brief(result.content)).strip()
        shell = call.name == "Bash" and "\n" in text
        if result.is_error and call.name == "Bash" and (end := _ENDED.search(text)):
            body = text[: end.start()].rstrip()
            return [
                self._paper.line(f"✗ {describe(call)} → {end[1]}{_took(ended)}", "red"),
                *self._excerpt(body.splitlines(), first=HEAD_ROWS),
            ]
        if result.is_error and shell:
            first, *body_lines = text.splitlines()
            head = self._paper.line(f"✗ {describe(call)} → {visible_line(first, 200)}", "red")
            return [head, *self._excerpt(body_lines, first=HEAD_ROWS)]
        if result.is_error:
            return [self._paper.line(f"✗ {describe(call)} → {visible_line(text, 200)}", "red")]
        count = text.count("\n") + 1 if text else 0
        summary = visible_line(text, 60) if count == 1 else f"{count} lines"
        if ended.change is not None:
            head = self._paper.line(f"• {call.name} {changes.head(ended.change)}", "dim")
            lines = changes.shown(ended.change, self._paper, more="; Ctrl-O shows more")
            return [head] if call.id in self.previewed else [head, lines]
        head = self._paper.line(f"• {describe(call)} → {summary or 'nothing'}{_took(ended)}", "dim")
        return [head, *(self._excerpt(text.splitlines()) if shell else [])]

    def _excerpt(self, lines: list[str], *, first: int = 0) -> list[str]:
        """The last lines of an output, and the first ones if those are more telling; Ctrl-O shows the rest."""
        width = max(20, self._paper.width - 3)
        if len(lines) > first + LIVE_ROWS:
            hidden = len(lines) - first - LIVE_ROWS
            note = f"… {hidden} more line{'s' * (hidden != 1)}; Ctrl-O shows more"
            lines = [*lines[:first], note, *lines[-LIVE_ROWS:]]
        return [self._paper.line(f"  {visible_line(line, width)}", "dim") for line in lines]

    def _stop_running(self) -> None:
        """Keeps an interrupted call on the screen and in /tools, with its output so far."""
        for running in self._running.values():
            if running.call.id == self._asked:
                words = f"✗ {describe(running.call)} → not run: stopped before you answered"
                self._ready.append(self._paper.line(words, "yellow"))
                continue
            seconds = self._clock() - running.began
            head = f"✗ {describe(running.call)} → stopped after {seconds:.0f} s"
            self._ready.append(self._paper.line(head, "yellow"))
            self._ready += self._excerpt(visible(running.output).rstrip().splitlines())
            self.ended_tools.append(_so_far(running, seconds, "stopped after"))
        self._running = {}

    def _stop(self, *, by_user: bool) -> None:
        """The work has ended and the partial answer is recorded; only the price is still being counted."""
        self._stop_running()
        if by_user and (stopped_wait := self._retry.take_stopped()):
            self.note(stopped_wait, "yellow")
        if by_user:
            self.note("stopped; what was said is kept", "yellow")
        self._since, self.busy, self._stopped = self._clock(), "counting what was used", True

    def _end(self, end: RunEnded) -> None:
        if not self._stopped:
            self._stop(by_user=end.outcome == "interrupted")
        self.busy = ""
        if end.outcome == "empty":
            self.note("the model gave an empty answer; ask again, or choose another with /model", "yellow")
        elif end.outcome == "refused":
            self.note("the model refused to answer; rephrase it, or choose another with /model", "yellow")
        elif end.error and end.outcome != "interrupted":
            self.note(end.error, "red")

    # --- moving ---

    def moving(self, width: int, rows: int) -> Fragments:
        """The unfinished end of the answer, thinking or running calls, and the clock; cut to fit, from the bottom."""
        fragments: Fragments = []
        if self._thought:
            fragments += _rows("class:dim", last_rows(visible(self._thought[-2000:]), width, THOUGHT_ROWS))
        if not self._ready and (open_end := self._words.rest()):
            fragments += _rows("", last_rows(open_end, width, rows))
        for running in list(self._running.values())[-rows:]:
            elapsed = f"{self._clock() - running.began:.0f} s"
            head = visible_line(f"◦ {describe(running.call)} {elapsed}", width)
            tail = [f"  {visible_line(line, max(1, width - 2))}" for line in running.last_lines()]
            fragments += _rows("class:dim", [head, *tail])
        if retry_line := self._retry.line:
            fragments += _rows("class:new", [retry_line[:width]])
        elif self.busy and self._clock() - self._since > PATIENCE_S:
            frame = FRAMES[int(self._clock() * 2) % len(FRAMES)]
            hint = "" if self._stopped else ", Ctrl-C stops"
            fragments += _rows("class:dim", [f"{frame} {self.busy} {self._clock() - self._since:.0f} s{hint}"[:width]])
        return fragments


def _so_far(running: ShownCall, seconds: float, state: str) -> ToolEnded:
    text = f"{running.output}\n[{state} {seconds:.0f} s]".lstrip()
    result = ToolResult(running.call.id, running.call.name, (Text(text),), is_error=True)
    return ToolEnded(running.call, result, seconds)


def _took(ended: ToolEnded) -> str:
    return f", {ended.seconds:.1f} s" if ended.seconds >= PATIENCE_S else ""


def _rows(style: str, rows: list[str]) -> Fragments:
    return [(style, row + "\n") for row in rows]
