"""The events that a face receives during a run; the last one is always RunEnded."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import msgspec

from ra.core.facts import Checkpointed
from ra.core.facts import Rotated as RotatedFact
from ra.core.messages import Message, ToolCall, ToolResult
from ra.core.model import Reply, Usage
from ra.core.value import Value

Outcome = Literal["answered", "failed", "mistake", "limit", "refused", "empty", "unfit", "interrupted"]


class TurnStarted(Value, frozen=True):
    """A request is about to be sent. `tokens` is its estimated size, None when an upper bound was enough."""

    iteration: int
    tokens: int | None = None
    window: int | None = None


class TextDelta(Value, frozen=True):
    text: str


class ThinkingDelta(Value, frozen=True):
    text: str


class CallDelta(Value, frozen=True):
    """The model has begun to write a tool call."""

    name: str


class Retrying(Value, frozen=True):
    """An attempt failed and another follows. With `restart`, the answer starts over: discard the text shown so far.

    `retries` is the highest number of retries, 0 when it is unknown.
    """

    reason: str
    wait_s: float
    restart: bool = False
    retries: int = 0


class Sent(Value, frozen=True):
    """The request has left for the server. Unless the server refuses it, it is billed, even if nobody reads it."""


class Broken(Value, frozen=True):
    """An answer broke off, perhaps before its first word, and was billed. The request is retried or given up."""

    message: Message
    usage: Usage
    reason: str


class ToolStarted(Value, frozen=True):
    call: ToolCall


class ToolOutput(Value, frozen=True):
    """Output of a tool that is still running."""

    call_id: str
    text: str


class ChangedLine(Value, frozen=True):
    """A line of a difference: removed, added, or context. `number` is its line number in the old or the new file."""

    sign: Literal["-", "+", " "]
    number: int
    text: str


class FileChange(Value, frozen=True):
    """The difference of one file. A hunk is a run of adjacent lines; `left_out` counts the lines that are not shown.

    `note` states what lines cannot show: a binary or empty file, changed line ends.
    """

    path: str  # relative to the project, where the file lies in it
    hunks: tuple[tuple[ChangedLine, ...], ...]
    added: int = 0
    removed: int = 0
    created: bool = False
    left_out: int = 0
    note: str = ""

    def at_most(self, lines: int) -> "FileChange":
        """The same change with at most `lines` lines. A long replacement keeps some lines of both sides."""
        total = sum(map(len, self.hunks))
        if total <= lines:
            return self
        signs = {line.sign for hunk in self.hunks for line in hunk} - {" "}
        longest = lines // max(1, len(signs))
        hunks, room = [], lines
        for piece in (tuple(piece) for hunk in self.hunks for piece in _pieces(hunk, longest)):
            if room > 0:
                hunks.append(piece[:room])
            room -= len(piece)
        return msgspec.structs.replace(self, hunks=tuple(hunks), left_out=self.left_out + total - sum(map(len, hunks)))


def _pieces(hunk: Sequence[ChangedLine], longest: int) -> Iterator[Sequence[ChangedLine]]:
    """The hunk with every run of one sign shortened to `longest` lines, split where lines were left out."""
    piece: list[ChangedLine] = []
    for _, same_sign in groupby(hunk, key=lambda line: line.sign):
        run = list(same_sign)
        piece += run[:longest]
        if len(run) > longest:
            yield piece
            piece = []
    if piece:
        yield piece


class ToolEnded(Value, frozen=True):
    """`change` is the difference of the file that the call changed, if any."""

    call: ToolCall
    result: ToolResult
    seconds: float
    change: FileChange | None = None


class TurnEnded(Value, frozen=True):
    """One model call is complete and recorded with its price."""

    iteration: int
    model: str
    usage: Usage
    dollars: str


class Compacted(Value, frozen=True):
    fact: Checkpointed


class Rotated(Value, frozen=True):
    fact: RotatedFact


class Warned(Value, frozen=True):
    text: str


class RunStopped(Value, frozen=True):
    """The user or the time limit stopped the run; the partial answer is recorded. RunEnded follows, with the price."""

    reason: Literal["user", "maxDuration"]


class RunEnded(Value, frozen=True):
    """The end of a run, however it ends. `dollars` is "" when no price is known."""

    outcome: Outcome
    answer: str
    session: str
    model: str
    usage: Usage
    dollars: str
    iterations: int
    seconds: float
    compactions: int = 0
    error: str = ""


Heard = TextDelta | ThinkingDelta | CallDelta | Retrying
Delta = Heard | Usage | Broken | Sent
"""What a provider streams before its Reply. Usage is the report so far: an answer that is given up is billed, too."""

Streamed = Delta | Reply
ToolEvent = ToolStarted | ToolOutput | ToolEnded
Event = TurnStarted | Heard | ToolEvent | TurnEnded | Compacted | Rotated | Warned | RunStopped | RunEnded
