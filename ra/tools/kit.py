"""The parts of a session that its built-in tools are made from."""

import msgspec

from ra.core.messages import ToolCall
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import Allow, decide
from ra.tools.policy.rules import SessionRules
from ra.tools.port import SessionPort
from ra.tools.shell import Shell
from ra.tools.undo import Undo


class Kit(msgspec.Struct, frozen=True):
    """Without a `session` its tools (Agent, Entry, Recall) are not there; without `agents` Agent is not."""

    place: Project
    rules: SessionRules
    undo: Undo
    shell: Shell
    timeout_s: float
    session: SessionPort | None = None
    agents: bool = True

    def readable(self, path: str) -> bool:
        """Whether Read would show a file without a question: what may not be read is not searched either."""
        return isinstance(decide(ToolCall("", "Read", {"path": path}), self.rules.rules, self.place), Allow)
