"""How is a user asked whether a tool call may run?"""

from collections.abc import Awaitable, Callable
from typing import Literal

from ra.core.messages import ToolCall
from ra.core.value import Value


class Question(Value, frozen=True):
    """May this call run? `preview` is exactly what would run, `reason` why it is not simply done."""

    call: ToolCall
    reason: str
    preview: str


class Answer(Value, frozen=True):
    """The user's word. With `edited`, that call runs instead of the one asked about."""

    verdict: Literal["once", "session", "project", "no"]
    edited: ToolCall | None = None


Asker = Callable[[Question], Awaitable[Answer]]
"""How a face asks its user. A face without a user has none, and what would ask is refused."""
