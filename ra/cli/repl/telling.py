"""How does a person follow a run? Words as they come, a line for each tool, and what is still moving below."""

import time
from collections import deque
from collections.abc import Callable

import msgspec

from ra.cli.markdown import MarkdownStream
from ra.cli.output import brief, describe
from ra.cli.paper import Paper
from ra.cli.repl.changes import change
from ra.cli.repl.terminal import Fragments
from ra.cli.repl.wrap import last_rows
from ra.cli.safe import one_line, visible
from ra.cli.spinner import FRAMES
from ra.core.events import (
    Compacted,
    Event,
    Retrying,
    Rotated,
    RunEnded,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnStarted,
    Warned,
)
from ra.core.messages import ToolCall

PIECE = 10  # lines that are rendered at once
THOUGHT_ROWS = 3
PATIENCE_S = 1.0  # a shorter wait needs no clock


class Telling:
    """Hears events, gives out what is finished (`take`), and shows the rest (`moving`) until it is."""

    def __init__(self, paper: Paper, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.ended_tools: list[ToolEnded] = []  # of the last prompt, for /tools
        self.edited: dict[str, ToolCall] = {}  # calls that the user changed, by their ids
        self.busy = ""  # what goes on, while something does
        self._paper = paper
        self._clock = clock
        self._words = MarkdownStream(paper)
        self._ready: deque[MarkdownStream | str] = deque()  # in the order of the screen; words are rendered late
        self._thought = ""
        self._thinking_since = 0.0
        self._since = 0.0
        self._running: dict[str, tuple[ToolCall, float, str]] = {}

    def begin(self) -> None:
        self.ended_tools = []
        self._running = {}
        self._since = self._clock()
        self.busy = "waiting for the model"

    def hear(self, event: Event) -> None:
        """Cheap for words: rendering them is for `take`."""
        if not isinstance(event, ThinkingDelta):
            self._fold_thinking()
        match event:
            case TextDelta(text):
                self._words.feed(text)
                self.busy = "writing"
            case ThinkingDelta(text):
                self._thinking_since = self._thinking_since or self._clock()
                self._thought += text
                self.busy = "thinking"
            case ToolOutput(call_id, text) if call_id in self._running:
                call, began, _ = self._running[call_id]
                self._running[call_id] = (call, began, text)
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
                self._running[call.id] = (call, self._clock(), "")
                self.busy = "running"
            case ToolEnded(call):
                self._running.pop(call.id, None)
                ended = msgspec.structs.replace(event, call=self.edited.pop(call.id, call))
                self.ended_tools.append(ended)
                self._ready += self._tool(ended)
                self.busy = "waiting for the model"
            case Retrying(reason, wait_s, restart):
                again = " The answer begins anew:" if restart else ""
                self.note(f"{one_line(reason, 200)}; trying again in {wait_s:.1f} s.{again}")
            case Compacted(fact):
                self.note(f"compacted ({fact.strategy}): {fact.before:,} → {fact.after:,} tokens")
            case Rotated(fact):
                self.note(f"new segment ({one_line(fact.reason)})")
            case Warned(text):
                self.note(text, style="yellow")
            case RunEnded():
                self._end(event)
            case _:
                pass

    def note(self, text: str, style: str = "dim") -> None:
        self._ready.append(self._paper.line(f"· {visible(text)}", style))

    # --- finished ---

    @property
    def more(self) -> bool:
        return bool(self._ready) or self._words.more

    def take(self) -> str:
        """The next piece of what is finished, small enough for a keystroke not to wait for it."""
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
        """One line for the call and what came of it; a change of a file shows itself."""
        call, result = ended.call, ended.result
        text = visible(brief(result.content)).strip()
        if result.is_error:
            return [self._paper.line(f"✗ {describe(call)} → {one_line(text, 200)}", "red")]
        lines = text.count("\n") + 1 if text else 0
        told = one_line(text, 60) if lines == 1 else f"{lines} lines"
        took = f", {ended.seconds:.1f} s" if ended.seconds >= PATIENCE_S else ""
        head = self._paper.line(f"• {describe(call)} → {told or 'nothing'}{took}", "dim")
        return [head, *change(call, self._paper)]

    def _end(self, end: RunEnded) -> None:
        self.busy, self._running = "", {}
        if end.outcome == "empty":
            self.note("the model gave an empty answer; ask again, or choose another with /model", "yellow")
        elif end.outcome == "refused":
            self.note("the model refused to answer; put it another way, or choose another with /model", "yellow")
        elif end.outcome == "interrupted":
            self.note("stopped; what was said is kept", "yellow")
        elif end.error:
            self.note(end.error, "red")

    # --- moving ---

    def moving(self, width: int, rows: int) -> Fragments:
        """The open end of the answer, what is thought or running, and the clock; from the bottom what fits."""
        found: Fragments = []
        if self._thought:
            found += _rows("class:dim", last_rows(visible(self._thought[-2000:]), width, THOUGHT_ROWS))
        if not self._ready and (rest := self._words.rest()):
            found += _rows("", last_rows(rest, width, rows))
        for call, began, said in list(self._running.values())[-rows:]:
            last = one_line(said.rstrip().rpartition("\n")[2], 60)
            found += _rows("class:dim", [one_line(f"◦ {describe(call)} {self._clock() - began:.0f} s {last}", width)])
        if self.busy and self._clock() - self._since > PATIENCE_S:
            frame = FRAMES[int(self._clock() * 2) % len(FRAMES)]
            found += _rows(
                "class:dim", [f"{frame} {self.busy} {self._clock() - self._since:.0f} s, Ctrl-C stops"[:width]]
            )
        return found


def _rows(style: str, rows: list[str]) -> Fragments:
    return [(style, row + "\n") for row in rows]
