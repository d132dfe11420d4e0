"""`ra compact`: show what a compaction would hide and save, and compact."""

import asyncio
from typing import Annotated

import msgspec
import typer

from ra.cli.commands import CommandContext
from ra.cli.context_view import previewed

app = typer.Typer(add_completion=False, help="Hide old messages from the model, or see first what that costs.")


@app.command()
def compact(
    ctx: typer.Context,
    session: Annotated[str, typer.Option("--session", help="use this session instead of the latest")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what would be hidden and what it costs; change nothing")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Hide old messages from the model, so that later calls cost less. `ra recall` reads them back."""
    call: CommandContext = ctx.obj
    asyncio.run(_compact(call, session, dry_run=dry_run, as_json=as_json))


async def _compact(call: CommandContext, session_id: str, *, dry_run: bool, as_json: bool) -> None:
    session = call.app().stored(session_id or None, write=not dry_run)
    try:
        plan = session.preview_compaction()
        if as_json:
            call.streams.out(msgspec.json.encode(plan).decode() + "\n")
        elif dry_run or not plan.worth:
            call.streams.out(previewed(plan))
        checkpoint = await session.compact() if plan.worth and not dry_run else None
    finally:
        await session.close()
    if checkpoint is not None:
        words = f"{plan.messages} messages are hidden; `ra recall '{plan.hidden}'` reads them back"
        call.streams.err(f"{checkpoint.summary_line} {words}.\n")
