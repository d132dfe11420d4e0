"""`ra entry`: the durable entries of a session."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer

from ra.cli import table
from ra.cli.commands import CommandContext
from ra.core.errors import UserError
from ra.core.facts import Entry
from ra.core.text import visible
from ra.session.session import Session

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Set, list and remove entries: texts that stay in every request."
)

SessionId = Annotated[str, typer.Option("--session", help="use this session instead of the latest")]
Id = Annotated[str, typer.Argument(metavar="ID", help="the name of the entry")]


@contextmanager
def _opened(ctx: typer.Context, session: str, *, write: bool) -> Iterator[tuple[CommandContext, Session]]:
    call: CommandContext = ctx.obj
    opened = call.app().stored(session or None, write=write, hooks=False)
    try:
        yield call, opened
    finally:
        asyncio.run(opened.close())


@app.command("set")
def set_entry(
    ctx: typer.Context,
    id: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="what the model shall always see")],
    name: Annotated[str, typer.Option("--name", help="a label for your own use")] = "",
    session: SessionId = "",
) -> None:
    """Set or replace an entry: a text that stays in every request, across compactions and restarts."""
    with _opened(ctx, session, write=True) as (call, opened):
        word = "Set" if _find(opened, id) is None else "Replaced"
        changed = opened.pin(id, " ".join(text), name=name)
        call.streams.err(f"{word}: {visible(id)}.\n" if changed else "Unchanged: the entry already has this text.\n")


@app.command()
def rm(ctx: typer.Context, id: Id, session: SessionId = "") -> None:
    """Remove an entry. The next request no longer contains its text."""
    with _opened(ctx, session, write=True) as (call, opened):
        if not opened.unpin(id):
            raise UserError(_missing(opened, id))
        call.streams.err(f"Removed: {visible(id)}.\n")


@app.command("list")
def list_entries(
    ctx: typer.Context,
    session: SessionId = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List the entries, oldest first."""
    with _opened(ctx, session, write=False) as (call, opened):
        live = opened.entries()
        if as_json:
            call.streams.out(msgspec.json.encode(live).decode() + "\n")
            return
        rows = [[entry.id, f"#{entry.inserted_at}", entry.name, entry.content] for entry in live]
        table.show(call.streams, ["id", "at", "name", "content"], rows)


@app.command()
def show(ctx: typer.Context, id: Id, session: SessionId = "") -> None:
    """Print the text of one entry."""
    with _opened(ctx, session, write=False) as (call, opened):
        entry = _find(opened, id)
        if entry is None:
            raise UserError(_missing(opened, id))
        call.streams.out((visible(entry.content) if call.streams.out_tty else entry.content) + "\n")


def _find(session: Session, id: str) -> Entry | None:
    return next((entry for entry in session.entries() if entry.id == id), None)


def _missing(session: Session, id: str) -> str:
    ids = ", ".join(entry.id for entry in session.entries())
    live = f"Live entries: {visible(ids)}." if ids else "There are no entries; `ra entry set ID TEXT` adds one."
    return f"There is no entry {id!r}. {live}"
