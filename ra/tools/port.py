"""What tools ask of the session that they work for, and of the place where a user's lasting answers are kept."""

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
    """A model call that an MCP server asks for: its own words, none of the conversation's."""

    messages: tuple[Message, ...]
    system: str = ""
    max_output: int = 1024


class Form(Value, frozen=True):
    """What an MCP server wants to know from the user. `url`: it is to be answered there, in a browser."""

    message: str
    fields: tuple[Field, ...] = ()
    url: str = ""


class SessionPort(Protocol):
    """The session as its tools see it. `ra.session` lies above `ra.tools`, so the import is turned around here."""

    def entries(self) -> Sequence[Entry]:
        """The live entries. A tool that changes one returns the change as a fact."""
        ...

    async def recall(self, query: str) -> str:
        """What the session's events say for words or a reference, hidden ones included."""
        ...

    async def run_agent(self, task: str) -> Output:
        """A sub-agent's answer; what it cost is recorded already."""
        ...

    async def ask_model(self, call: SideCall) -> Reply:
        """An answer of the session's model, paid from the budget of the run that goes on.

        Raises what the provider raises, and Stopped when the budget does not reach for it.
        """
        ...


class RuleKeeper(Protocol):
    """Keeps the rules that a user wants to hold in this project from now on."""

    def remember(self, rule: Rule) -> None: ...
