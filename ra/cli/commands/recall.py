"""`ra recall`: where was that said, and what exactly?"""

from typing import Annotated

import typer

from ra.cli.commands import Call
from ra.cli.safe import visible
from ra.context.recall import recall as read_back
from ra.reading import Reading

app = typer.Typer(add_completion=False, help="Search or read back anything that was ever said.")


@app.command()
def recall(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY|REF", help="words, or #12, #12-18, ~3f9a…")],
    session: Annotated[str, typer.Option("--session", help="this session instead of the latest")] = "",
) -> None:
    """Full-text search over the whole session, hidden or not; or the exact text behind a reference."""
    call: Call = ctx.obj
    text = read_back(" ".join(query), Reading(call.resolved, session or None).timeline)
    call.streams.out((visible(text) if call.streams.out_tty else text) + "\n")
