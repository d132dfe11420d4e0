"""`ra recall`: search a session, or read back the exact text behind a reference."""

import asyncio
from typing import Annotated

import typer

from ra.cli.commands import CommandContext
from ra.core.text import visible

app = typer.Typer(add_completion=False, help="Search everything that was said, or read it back.")


@app.command()
def recall(
    ctx: typer.Context,
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY|REF", help="words to search for, or a reference: #12, #12-18, ~3f9a…")
    ],
    session: Annotated[str, typer.Option("--session", help="use this session instead of the latest")] = "",
) -> None:
    """Search a whole session, hidden parts included, or read the exact text behind a reference."""
    call: CommandContext = ctx.obj
    text = asyncio.run(_recall(call, session, " ".join(query)))
    call.streams.out((visible(text) if call.streams.out_tty else text) + "\n")


async def _recall(call: CommandContext, session_id: str, query: str) -> str:
    session = call.app().stored(session_id or None, hooks=False)
    try:
        return await session.recall(query)
    finally:
        await session.close()
