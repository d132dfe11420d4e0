"""The question whether a tool call may run, and its answer."""

from collections.abc import Awaitable, Callable
from typing import Literal

from ra.core.events import FileChange
from ra.core.messages import ToolCall
from ra.core.value import Value


class Question(Value, frozen=True):
    """May this call run? `preview` is exactly what would run, `reason` why it is not simply done.

    `change` is the difference that a file would get. `edits`: it is a plain change in the project, and the answer
    "session" allows all of them.
    """

    call: ToolCall
    reason: str
    preview: str
    change: FileChange | None = None
    edits: bool = False


class Answer(Value, frozen=True):
    """The user's word. With `edited`, that call runs instead of the one asked about. `why` goes with a no."""

    verdict: Literal["once", "session", "project", "no"]
    edited: ToolCall | None = None
    why: str = ""


Asker = Callable[[Question], Awaitable[Answer]]
"""How a face asks its user. A face without a user has none, and what would ask is refused."""
