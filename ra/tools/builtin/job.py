"""The Job tool: reads the output of a background command, or stops it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.tool import Output, Say, Tool, declare
from ra.tools.workspace import Workspace


class JobArgs(msgspec.Struct):
    job: Annotated[int, Meta(description="Its number")]
    stop: Annotated[bool, Meta(description="End it")] = False


def tool(workspace: Workspace) -> Tool:
    async def run(args: JobArgs, say: Say) -> Output:
        return await workspace.shell.read_job(args.job, stop=args.stop)

    return declare(
        JobArgs,
        run,
        name="Job",
        description="Read new output of a background command, or stop it.",
        own_timeout=True,
        free=True,
        polls=True,
    )
