"""Holds what the tools of a session work on: the project, the permissions, the commands, and the session itself."""

import msgspec

from ra.core.messages import ToolCall
from ra.tools.approvals import Approvals
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import Allow
from ra.tools.port import SessionPort
from ra.tools.shell import Shell
from ra.tools.undo import Undo


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that built-in tools use, and that decide about every call.

    The tools Agent, Entry and Recall exist only with a `session`; Agent also needs `sub_agents`.
    """

    project: Project
    approvals: Approvals
    shell: Shell
    undo: Undo = msgspec.field(default_factory=Undo)
    session: SessionPort | None = None
    sub_agents: bool = True
    timeout_s: float = 120

    def resolve(self, path: str, tool: str) -> str:
        """The file that a tool would really touch. Raises Mistake for an impossible path."""
        return self.project.resolve(path, tool)

    def readable(self, path: str) -> bool:
        """Whether Read would show a file without asking. Other files are not searched either."""
        return isinstance(self.approvals.decide(ToolCall("", "Read", {"path": path}), self.project), Allow)

    def project_for(self, tool: str) -> Project:
        """The project as a call finds it now. A sandbox that cannot hold the project as it is now is ignored."""
        if tool != "Bash":
            return self.project
        box = self.shell.box
        trouble = box.trouble if box else ""
        return msgspec.structs.replace(
            self.project, boxed=bool(box and not trouble), trouble=trouble, cwd=self.shell.cwd
        )
