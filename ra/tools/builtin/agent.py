"""The Agent tool: a sub-agent with a separate window, of which only the answer comes back."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.tool import Mistake, Output, Say, Tool, declare
from ra.tools.workspace import Workspace


class AgentArgs(msgspec.Struct):
    task: Annotated[str, Meta(description="Everything it must know; it sees nothing of this conversation")]


def tool(workspace: Workspace) -> Tool | None:
    session = workspace.session
    if session is None or not workspace.sub_agents:
        return None

    async def run(args: AgentArgs, say: Say) -> Output:
        if not args.task.strip():
            raise Mistake("task is empty.")
        return await session.run_agent(args.task)

    return declare(
        AgentArgs,
        run,
        name="Agent",
        description="Give a side task to a sub-agent; only its answer comes back.",
        own_timeout=True,
        free=True,
    )
