"""What was cut? Recall: search the whole session, hidden parts included, or read a reference back word for word."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.tool import Say, Tool, declare

Recall = Callable[[str], Awaitable[str]]


class RecallArgs(msgspec.Struct):
    query: Annotated[str, Meta(description="Words, or a reference: #12, #12-18, ~ab12cd34ef56")]


def recall_tool(recall: Recall) -> Tool:
    async def run(args: RecallArgs, say: Say) -> str:
        return await recall(args.query)

    return declare(
        RecallArgs,
        run,
        name="Recall",
        description="Read back what was cut from this session: search it, or read a reference in full.",
        reads_only=True,
    )
