"""Declares what tools need from their session, and from the store of the user's permanent rules."""

from collections.abc import Sequence
from typing import Protocol

from ra.core.asking import Field
from ra.core.facts import Entry
from ra.core.messages import Message
from ra.core.model import Reply
from ra.core.value import Value
from ra.tools.policy.rules import Rule
from ra.tools.tool import Output


class SideCall(Value, frozen=True):
    """A model call requested by an MCP server: with its messages only, nothing from the conversation."""

    messages: tuple[Message, ...]
    system: str = ""
    max_output: int = 1024


class Form(Value, frozen=True):
    """A form from an MCP server for the user. With `url`, the user answers it there, in a browser."""

    message: str
    fields: tuple[Field, ...] = ()
    url: str = ""


class SessionPort(Protocol):
    """The session as its tools see it. `ra.session` lies above `ra.tools`, so this protocol inverts the import."""

    def entries(self) -> Sequence[Entry]:
        """The current entries. A tool that changes one returns the change as a fact."""
        ...

    async def recall(self, query: str) -> str:
        """The events of the session that match some words or a reference, hidden ones included."""
        ...

    async def run_agent(self, task: str) -> Output:
        """A sub-agent's answer; its cost is already recorded."""
        ...

    async def ask_model(self, call: SideCall) -> Reply:
        """An answer of the session's model, charged to the budget of the current run.

        Raises the provider's errors, and Stopped if the budget is too small.
        """
        ...


class RuleKeeper(Protocol):
    """Stores the rules that the user makes permanent for this project."""

    def remember(self, rule: Rule) -> None: ...
