"""`ra entry`: which durable entries does the session carry?"""

from typing import Annotated

import msgspec
import typer

from ra.cli import table
from ra.cli.commands import Call
from ra.cli.safe import visible
from ra.context import entries
from ra.core.errors import UserError
from ra.core.facts import Fact
from ra.reading import Reading

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Durable entries: set, rm, list, show.")

Session = Annotated[str, typer.Option("--session", help="this session instead of the latest")]
Id = Annotated[str, typer.Argument(metavar="ID")]


def _record(reading: Reading, facts: tuple[Fact, ...]) -> None:
    timeline = reading.store.open(reading.timeline.session, write=True)
    try:
        timeline.append(*facts)
    finally:
        timeline.close()


@app.command("set")
def set_entry(
    ctx: typer.Context,
    id: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT")],
    name: Annotated[str, typer.Option("--name", help="a label for people")] = "",
    session: Session = "",
) -> None:
    """Set or replace an entry: it is in every request from now on, after compactions and restarts too."""
    call: Call = ctx.obj
    reading = Reading(call.resolved, session or None)
    replaced = entries.get(reading.engine.view, id) is not None
    facts = entries.insert(reading.engine.view, id, " ".join(text), name=name)
    if facts:
        _record(reading, facts)
    call.streams.err(f"{'Replaced' if replaced else 'Set'}: {visible(id)}.\n" if facts else "It says that already.\n")


@app.command()
def rm(ctx: typer.Context, id: Id, session: Session = "") -> None:
    """Remove an entry: its text is gone from the next request."""
    call: Call = ctx.obj
    reading = Reading(call.resolved, session or None)
    facts = entries.remove(reading.engine.view, id)
    if not facts:
        raise UserError(f"There is no entry {id!r}. {_known(reading)}")
    _record(reading, facts)
    call.streams.err(f"Removed: {visible(id)}.\n")


@app.command("list")
def list_entries(
    ctx: typer.Context, session: Session = "", as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False
) -> None:
    """Live entries, in the order of their positions."""
    call: Call = ctx.obj
    live = entries.all_of(Reading(call.resolved, session or None).engine.view)
    if as_json:
        call.streams.out(msgspec.json.encode(live).decode() + "\n")
        return
    rows = [[entry.id, f"#{entry.inserted_at}", entry.name, entry.content] for entry in live]
    table.show(call.streams, ["id", "at", "name", "content"], rows)


@app.command()
def show(ctx: typer.Context, id: Id, session: Session = "") -> None:
    """The text of one entry."""
    call: Call = ctx.obj
    reading = Reading(call.resolved, session or None)
    entry = entries.get(reading.engine.view, id)
    if entry is None:
        raise UserError(f"There is no entry {id!r}. {_known(reading)}")
    call.streams.out((visible(entry.content) if call.streams.out_tty else entry.content) + "\n")


def _known(reading: Reading) -> str:
    ids = ", ".join(entry.id for entry in entries.all_of(reading.engine.view))
    return f"Live entries: {visible(ids)}." if ids else "There are none; `ra entry set ID TEXT` makes one."
