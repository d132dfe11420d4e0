"""`ra sessions`: list, show, export, import, copy, fork and delete sessions."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ra.app import open_prices, open_store
from ra.cli import table
from ra.cli.commands import CommandContext
from ra.core.errors import UsageError, UserError
from ra.core.text import visible
from ra.costs import ledger
from ra.timeline import export, importers, opening
from ra.timeline.store import Store, StoredTimeline

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List, show, export, import, fork, copy and delete sessions."
)

Id = Annotated[str, typer.Argument(metavar="ID", help="a session, or the beginning of its id")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command("list")
def list_sessions(
    ctx: typer.Context,
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="include all projects")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="show at most this many")] = 20,
    as_json: Json = False,
) -> None:
    """List the sessions of this project, newest first."""
    call: CommandContext = ctx.obj
    infos = open_store(call.resolved).sessions(None if everywhere else str(call.resolved.root), limit)
    if as_json:
        call.streams.out(msgspec.json.encode(infos).decode() + "\n")
        return
    if not infos:
        call.streams.err('No sessions yet. Start one with: ra "your question"\n')
        return
    now = time.time()
    rows = [
        [s.id, table.age(now - s.updated), str(s.events), s.model, table.money(s.dollars), s.title or "–"]
        for s in infos
    ]
    table.show(call.streams, ["id", "age", "events", "model", "cost", "title"], rows, right=(2, 4))


@app.command()
def show(ctx: typer.Context, session: Id, as_json: Json = False) -> None:
    """Print the whole conversation, as Markdown or as JSON lines."""
    call: CommandContext = ctx.obj
    store = open_store(call.resolved)
    timeline = store.open(session, write=False)
    for text in _exported(store, timeline, markdown=not as_json):
        call.streams.out(visible(text) if call.streams.out_tty else text)


@app.command("export")
def export_session(
    ctx: typer.Context,
    session: Id,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="the file to write; a name that ends in .md gives Markdown")
    ] = None,
) -> None:
    """Write a whole session as JSON lines. `ra sessions import` reads them."""
    call: CommandContext = ctx.obj
    store = open_store(call.resolved)
    timeline = store.open(session, write=False)
    text = _exported(store, timeline, markdown=to is not None and to.suffix == ".md")
    if to is None:
        for part in text:
            call.streams.out(part)
        return
    try:
        with to.open("w", encoding="utf-8") as file:
            file.writelines(text)
    except OSError as error:
        raise UserError(f"{to} cannot be written: {error.strerror}; name another file.") from error
    call.streams.err(f"Written to {to}.\n")


def _exported(store: Store, timeline: StoredTimeline, *, markdown: bool) -> Iterator[str]:
    """Yields part after part, so that a long session is never in memory as a whole."""
    if markdown:
        return export.export_markdown(timeline.session, timeline.events())
    lines = export.export_lines(
        timeline.session, store.info(timeline.session).project, timeline.events(), timeline.texts()
    )
    return (line.decode() for line in lines)


@app.command("import")
def import_sessions(
    ctx: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help=f"transcripts of {', '.join(importers.READERS.values())}")
    ],
) -> None:
    """Import sessions from files. Continue one with `ra --resume ID`."""
    call: CommandContext = ctx.obj
    store, prices = open_store(call.resolved), open_prices(call.resolved)
    imported = 0
    for file in files:
        for transcript in importers.read(file):
            for skipped in transcript.skipped:
                call.streams.err(f"ra: {file}: {visible(skipped)}\n")
            if transcript.events:
                events = ledger.priced(transcript.events, lambda model, at: prices.row(model, at=at))
                session = store.adopt(str(call.resolved.root), events, texts=transcript.texts)
                call.streams.out(f"{session}\t{transcript.name}\n")
                imported += 1
    if not imported:
        raise UserError("Nothing could be imported; the lines above say why.")


@app.command()
def prune(
    ctx: typer.Context,
    older: Annotated[str, typer.Option("--older", help="delete sessions older than this, such as 30d or 12h")] = "",
    keep: Annotated[int | None, typer.Option("--keep", min=0, help="delete all but the newest N")] = None,
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="include all projects")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="delete without asking")] = False,
) -> None:
    """Delete old sessions of this project."""
    call: CommandContext = ctx.obj
    seconds = span(older) if older else None
    if seconds is None and keep is None:
        raise UsageError("Say what to prune: --older 30d, or --keep 20 for all but the newest 20.")
    whose = "all projects" if everywhere else "this project"
    if not yes and not call.streams.err_tty:
        raise UsageError("Nobody can be asked here whether to delete them; add --yes.")
    if not yes and not typer.confirm(f"Delete old sessions of {whose} for good?", err=True):
        raise typer.Exit(1)
    project = None if everywhere else str(call.resolved.root)
    deleted = open_store(call.resolved).prune(older_than_s=seconds, keep=keep, project=project)
    call.streams.err(f"{len(deleted)} sessions deleted.\n")


@app.command()
def rm(ctx: typer.Context, session: Id) -> None:
    """Delete one session for good."""
    call: CommandContext = ctx.obj
    open_store(call.resolved).delete(session)
    call.streams.err("Deleted.\n")


@app.command()
def copy(
    ctx: typer.Context,
    to: Annotated[str, typer.Option("--to", metavar="STORE", help="postgresql://…, or the path of a SQLite file")],
    session: Annotated[str, typer.Argument(metavar="ID", help="one session (default: all of this project)")] = "",
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="include all projects")] = False,
) -> None:
    """Copy sessions to another store. Sessions that are already there stay as they are."""
    call: CommandContext = ctx.obj
    source, target = open_store(call.resolved), opening.open_store(call.resolved.data_dir, to)
    if source.place == target.place:
        raise UsageError(f"--to {visible(source.place)} is the store that the sessions are in.")
    if session:
        ids = [source.info(session).id]
    else:
        ids = [info.id for info in source.sessions(None if everywhere else str(call.resolved.root))]
    there = {info.id for info in target.sessions()}
    for session_id in (name for name in ids if name not in there):
        opening.copy_session(source, session_id, target)
    skipped = len(there.intersection(ids))
    already = f"; {skipped} were there already" if skipped else ""
    call.streams.err(f"{len(ids) - skipped} sessions copied to {visible(target.place)}{already}.\n")
    target.close()


@app.command()
def fork(
    ctx: typer.Context,
    session: Id,
    at: Annotated[int | None, typer.Option("--at", min=0, help="copy only up to this position")] = None,
) -> None:
    """Copy a session, so that you can continue it in another direction."""
    call: CommandContext = ctx.obj
    call.streams.out(open_store(call.resolved).fork(session, at) + "\n")


def span(text: str) -> float:
    """Parses `7d`, `12h`, `30m` or `90s` into seconds."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.replace(".", "", 1).isdigit():
        raise UsageError(f"{text!r} is not a time span; write 7d, 12h, 30m or 90s.")
    return float(number) * units[unit]
