"""What tools ask of the session that they work for, and of the place where a user's lasting answers are kept."""

from collections.abc import Sequence
from typing import Protocol

from ra.core.facts import Entry
from ra.tools.policy.rules import Rule
from ra.tools.tool import Output


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


class RuleKeeper(Protocol):
    """Keeps the rules that a user wants to hold in this project from now on."""

    def remember(self, rule: Rule) -> None: ...
