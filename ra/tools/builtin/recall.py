"""The Recall tool: searches the whole session, hidden parts included, or quotes a reference word for word."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.tool import Say, Tool, declare
from ra.tools.workspace import Workspace


class RecallArgs(msgspec.Struct):
    query: Annotated[str, Meta(description="Words, or a reference: #12, #12-18, ~ab12cd34ef56")]


def tool(workspace: Workspace) -> Tool | None:
    session = workspace.session
    if session is None:
        return None

    async def run(args: RecallArgs, say: Say) -> str:
        return await session.recall(args.query)

    return declare(
        RecallArgs,
        run,
        name="Recall",
        description="Read back what was cut from this session: search it, or read a reference in full.",
        reads_only=True,
        free=True,
    )
