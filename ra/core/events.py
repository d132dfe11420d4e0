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
    """A request goes out. `tokens` is its estimated size, None while a bound proved that no limit is near."""

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
    """An attempt failed and another follows. With `restart`, text already shown will be said anew from the start.

    `retries` is how many there will be at most, 0 where that is not known.
    """

    reason: str
    wait_s: float
    restart: bool = False
    retries: int = 0


class Sent(Value, frozen=True):
    """The request has left for the server: unless that refuses it, it is charged for, whoever hears the answer."""


class Broken(Value, frozen=True):
    """An answer broke off, perhaps before a word of it; the request is sent anew, or given up. It was billed."""

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
    """A line of a difference: removed, added, or context. `number` is its line in the file before, or after."""

    sign: Literal["-", "+", " "]
    number: int
    text: str


class FileChange(Value, frozen=True):
    """The difference of one file. A hunk is a run of adjacent lines; `left_out` counts the lines that are not shown.

    `note` says what lines cannot: a binary or empty file, changed line ends.
    """

    path: str  # relative to the project, where the file lies in it
    hunks: tuple[tuple[ChangedLine, ...], ...]
    added: int = 0
    removed: int = 0
    created: bool = False
    left_out: int = 0
    note: str = ""

    def at_most(self, lines: int) -> "FileChange":
        """The same change with no more than so many lines. A long replacement keeps some of both its sides."""
        total = sum(map(len, self.hunks))
        if total <= lines:
            return self
        signs = {line.sign for hunk in self.hunks for line in hunk} - {" "}
        longest = lines // max(1, len(signs))
        hunks, left = [], lines
        for piece in (tuple(piece) for hunk in self.hunks for piece in _pieces(hunk, longest)):
            if left > 0:
                hunks.append(piece[:left])
            left -= len(piece)
        return msgspec.structs.replace(self, hunks=tuple(hunks), left_out=self.left_out + total - sum(map(len, hunks)))


def _pieces(hunk: Sequence[ChangedLine], longest: int) -> Iterator[Sequence[ChangedLine]]:
    """The hunk without the lines of one sign that go on for too long: it is broken where they are left out."""
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
    """`change` is what became of a file, when the call changed one."""

    call: ToolCall
    result: ToolResult
    seconds: float
    change: FileChange | None = None


class TurnEnded(Value, frozen=True):
    """One model call is done and paid."""

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
    """The run was stopped, by the user or its time: what was said is recorded. RunEnded follows, with the price."""

    reason: Literal["user", "maxDuration"]


class RunEnded(Value, frozen=True):
    """The end of a run, on every path. `dollars` is "" when no price is known."""

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
"""What a provider streams before its Reply. Usage is what it has told so far: an answer that is given up is billed."""

Streamed = Delta | Reply
ToolEvent = ToolStarted | ToolOutput | ToolEnded
Event = TurnStarted | Heard | ToolEvent | TurnEnded | Compacted | Rotated | Warned | RunStopped | RunEnded
