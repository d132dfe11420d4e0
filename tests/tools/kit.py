"""A toolbox in a folder, and calls of it."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ra.core.asking import Answer, Asker, Question
from ra.core.events import Event
from ra.core.messages import Text, ToolCall
from ra.system.environment import clean
from ra.tools.approvals import Approvals
from ra.tools.mcp.servers import Servers
from ra.tools.options import ToolOptions, options_of
from ra.tools.policy.paths import Project
from ra.tools.policy.rules import Rule
from ra.tools.port import RuleKeeper, SessionPort
from ra.tools.sandbox.find import Launcher
from ra.tools.settings import Edits, Sandbox, ToolSettings
from ra.tools.shell import Shell
from ra.tools.tool import Tool
from ra.tools.toolbox import Done, Toolbox, open_toolbox
from ra.tools.workspace import Workspace


def toolbox(
    root: Path,
    *,
    env: Mapping[str, str] | None = None,
    rules: Sequence[Rule] = (),
    edits: Edits = "off",
    read_only: bool = False,
    sandbox: Sandbox = "auto",
    settings: ToolSettings | None = None,
    session: SessionPort | None = None,
    agents: bool = True,
    offered: bool = True,
    custom: Sequence[Tool] = (),
    mcp: Servers | None = None,
    keeper: RuleKeeper | None = None,
    timeout_s: float = 120,
) -> Toolbox:
    """The toolbox of a session in this folder, as a configuration with these settings makes it."""
    env = env or {"PATH": os.environ["PATH"]}
    options = options_of(settings or {}, str(root), tuple(tool.name for tool in custom))
    roots = {name: option.root_dir for name, option in options.items() if option.root_dir}
    project = Project(
        str(root),
        str(root),
        str(root.parent / "home"),
        edits,
        read_only,
        container=sandbox == "off",
        roots=roots,
    )
    child_env = clean(env, options.get("Bash", ToolOptions()).env)
    workspace = Workspace(
        project=project,
        approvals=Approvals(rules, edits=edits, read_only=read_only, keeper=keeper),
        shell=Shell(project, child_env, Launcher(sandbox, project), timeout_s=timeout_s),
        session=session,
        sub_agents=agents,
        timeout_s=timeout_s,
    )
    return open_toolbox(workspace, custom, options=options, offered=offered, servers=mcp)


class Kit:
    """Keeps the events and questions of its calls. `ask` answers each question, None is a face without a user."""

    def __init__(self, root: Path, *, ask: Callable[[Question], Answer] | None = None, **settings: Any) -> None:
        self.root = root
        self.box = toolbox(root, **{"edits": "auto", **settings})
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self._ask = ask

    def done(self, name: str, /, **args: Any) -> Done:
        return asyncio.run(self.run(name, **args))

    async def run(self, name: str, /, **args: Any) -> Done:
        return await self.box.run(ToolCall("c1", name, args), ask=self._asker(), emit=self.events.append)

    def text(self, name: str, /, **args: Any) -> str:
        """The text of a call that must work."""
        done = self.done(name, **args)
        assert not done.result.is_error, words(done)
        return words(done)

    def error(self, name: str, /, **args: Any) -> str:
        """The text of a call that must not work."""
        done = self.done(name, **args)
        assert done.result.is_error, words(done)
        return words(done)

    def _asker(self) -> Asker | None:
        if self._ask is None:
            return None
        answer = self._ask

        async def asked(question: Question) -> Answer:
            self.questions.append(question)
            return answer(question)

        return asked


def words(done: Done) -> str:
    return "\n".join(block.text for block in done.result.content if isinstance(block, Text))
