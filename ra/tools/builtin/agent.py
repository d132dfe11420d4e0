"""Who does a side task? Agent: a sub-agent with a window of its own, of which only the answer comes back."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.tool import Mistake, Output, Say, Tool, declare

RunAgent = Callable[[str], Awaitable[Output]]


class AgentArgs(msgspec.Struct):
    task: Annotated[str, Meta(description="Everything it must know; it sees nothing of this conversation")]


def agent_tool(run_agent: RunAgent) -> Tool:
    """`run_agent` answers a task; what it cost comes back as facts."""

    async def run(args: AgentArgs, say: Say) -> Output:
        if not args.task.strip():
            raise Mistake("task is empty.")
        return await run_agent(args.task)

    return declare(
        AgentArgs,
        run,
        name="Agent",
        description="Give a side task to a sub-agent; only its answer comes back.",
        own_timeout=True,
    )
