"""`ra context`: show what the model sees, token by token."""

import asyncio
from typing import Annotated

import msgspec
import typer

from ra.cli.commands import CommandContext
from ra.cli.context_view import show_report, told_difference
from ra.core.errors import UserError
from ra.core.text import visible
from ra.session.snapshot import Snapshot

app = typer.Typer(add_completion=False, help="Show what the model sees, by source, tokens and price.")


@app.command()
def context(
    ctx: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|show|diff", help="a session; show: the exact request; diff: what broke the cache"
        ),
    ] = "",
    session: Annotated[str, typer.Option("--session", help="use this session instead of the latest")] = "",
    at: Annotated[int | None, typer.Option("--at", min=1, help="as it was at this position of the session")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what is in the next request, or was in a past one, by source.

    `show` prints the request itself, as the provider's JSON. `diff` names the first byte that differs from the request
    before, the source that it is in, and what that cost.
    """
    call: CommandContext = ctx.obj
    session_id = session or (what if what not in ("show", "diff") else "")
    asyncio.run(_show(call, session_id, what, at, as_json=as_json))


async def _show(call: CommandContext, session_id: str, what: str, at: int | None, *, as_json: bool) -> None:
    session = call.app().stored(session_id or None)
    try:
        if not any(True for _ in session.events()):
            raise UserError(f"Session {session.id} has nothing in it yet. `ra sessions list` shows the others.")
        snapshot = await session.context(at)
        if what == "diff":
            await _diff(snapshot, call, as_json=as_json)
        elif what == "show":
            text = msgspec.json.format(msgspec.json.encode(snapshot.body()), indent=2).decode() + "\n"
            call.streams.out(visible(text) if call.streams.out_tty else text)
        else:
            show_report(snapshot.report, call.streams, as_json=as_json)
    finally:
        await session.close()


async def _diff(snapshot: Snapshot, call: CommandContext, *, as_json: bool) -> None:
    difference = await snapshot.difference()
    if as_json:
        call.streams.out(msgspec.json.encode(difference).decode() + "\n")
        return
    call.streams.out(told_difference(difference, snapshot))
