"""Which commands only look? What the model sees, what was said, what it cost, what is in force."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from ra.app import App
from ra.cli.output import brief, describe
from ra.cli.paper import Paper
from ra.cli.repl.changes import change
from ra.cli.repl.picture import picture
from ra.cli.safe import one_line, visible
from ra.cli.table import money, unpriced
from ra.config.show import shown
from ra.context import entries as live_entries
from ra.context.engine import Engine
from ra.context.recall import recall as read_back
from ra.context.report import Report, report
from ra.core.errors import UsageError
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs import ledger
from ra.reading import Reading
from ra.timeline.in_memory import MemoryTimeline

if TYPE_CHECKING:
    from ra.cli.repl.commands import Command
    from ra.cli.repl.core import Repl

UNFOLDED = 400  # lines of one result

KEYS = {
    "Enter": "send; while the model works, queue",
    "Alt-Enter, Ctrl-J, \\ Enter": "new line",
    "Tab": "complete commands, @paths, session ids",
    "Up, Ctrl-R": "history, search in it",
    "Ctrl-C": "stop the turn; twice: leave",
    "Ctrl-O": "unfold the last tool calls",
    "Ctrl-Z, Ctrl-D": "suspend, leave",
    "@path, url:…": "attach a file, a folder, a page",
    "!command": "run it in your shell; its output goes along with the next prompt",
}


def columns(paper: Paper, heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows as a table without a frame; for ears, as sentences with the head before each cell."""
    if paper.plain:
        told = ([f"{head}: {cell}" if head else cell for head, cell in zip(heads, row, strict=True)] for row in rows)
        return "".join(one_line(", ".join(cell for cell in cells if cell), 1000) + "\n" for cells in told)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell, 400)) for cell in row))
    return paper.rendered(table)


async def help_(repl: "Repl", argument: str, table: "Sequence[Command]") -> None:
    name = argument.removeprefix("/")
    chosen = [command for command in table if not name or command.name == name]
    if not chosen:
        raise UsageError(f"There is no command /{one_line(name, 40)}; /help lists them.")
    text = columns(repl.paper, ["", ""], [[command.usage, command.help] for command in chosen])
    if not name:
        text += "\n" + columns(repl.paper, ["", ""], [[key, what] for key, what in KEYS.items()])
    repl.show(text)


# --- the context ---


async def context(repl: "Repl", argument: str) -> None:
    if argument not in ("", "all", "diff"):
        raise UsageError(f"/context takes all or diff, not {one_line(argument, 40)!r}.")
    if argument == "diff":
        if repl.status.calls < 2:
            raise UsageError("A difference needs two model calls; this session has fewer. Ask something more first.")
        found = await asyncio.to_thread(_difference, reading(repl))
        repl.show(repl.paper.rendered(Text(found.rstrip("\n"))))
        return
    told, spent = await _told(repl)
    repl.show(picture(told, spent, repl.paper, everything=argument == "all", cold=repl.status.warm_s == 0))


def reading(repl: "Repl") -> Reading:
    """This session as `ra context` would read it, from a copy: nothing that looks can change anything."""
    timeline = repl.session.journal.timeline
    copy = MemoryTimeline(timeline.session, events=timeline.events())
    return Reading(repl.app.resolved, timeline=copy)


async def _told(repl: "Repl") -> tuple[Report, dict[str, str]]:
    """The next request by source, and what each source has cost so far."""
    configured = repl.session.engine.configured
    if configured is None:
        return await _first(repl), {}
    stands_on = (configured.provider, configured.model, configured.strategy)
    same = stands_on == (repl.app.provider_name, repl.app.model, repl.app.strategy)
    known = reading(repl) if same else await _changed(repl)
    told = await asyncio.to_thread(lambda: known.report(known.next_request().request))
    spends = ledger.fold([(repl.session.id, known.events)], by="source", rows=repl.app.prices.row)
    return told, {spend.key: money(spend.dollars) for spend in spends if not spend.unpriced}


async def _first(repl: "Repl") -> Report:
    """What the first request will hold, before anything was said."""
    engine = await _composed(repl, MemoryTimeline())
    return report(engine.request(), estimator=engine.estimator, window=engine.window.limit, price=repl.app.price)


async def _changed(repl: "Repl") -> Reading:
    """This session as the next request will find it, after /model or /strategy."""
    timeline = repl.session.journal.timeline
    copy = MemoryTimeline(timeline.session, events=timeline.events(), texts=timeline.kept)
    await _composed(repl, copy)
    return Reading(repl.app.resolved, timeline=copy)


async def _composed(repl: "Repl", timeline: MemoryTimeline) -> Engine:
    """What the next run would stand on, recorded in memory and thrown away. As in a dry run, no model is asked."""
    app = repl.app
    options = msgspec.structs.replace(app.options, dry_run=True)
    trial = App(app.resolved, options, env=app.env, warn=app.warn).session(timeline)
    try:
        trial.journal.record(*await trial.loop.compose(say("user", "")))
        return trial.engine
    finally:
        await trial.close()


def _difference(known: Reading) -> str:
    found = known.difference()
    if found is None:
        return "The last request extends the one before it byte for byte: the whole prefix could be read.\n"
    model = known.configured.model
    new = known.price(model, Usage(cache_write=found.anew))
    read = known.price(model, Usage(cache_read=found.anew))
    cost = f", {money(new - read)} more than reading them" if new is not None and read is not None else ""
    return (
        f"The prefix broke at byte {found.byte:,}, in {visible(found.source)}: "
        f"{found.anew:,} tokens had to be sent anew{cost}.\n- {visible(found.old)}\n+ {visible(found.new)}\n"
    )


# --- what was said ---


async def recall(repl: "Repl", argument: str) -> None:
    repl.show(visible(read_back(argument, repl.session.journal.timeline)).rstrip("\n") + "\n")


async def entries(repl: "Repl", argument: str) -> None:
    live = live_entries.all_of(repl.session.engine.view)
    if not live:
        repl.say("Nothing is pinned; /pin TEXT pins something.", "dim")
        return
    rows = [[entry.id, f"#{entry.inserted_at}", entry.content] for entry in live]
    repl.show(columns(repl.paper, ["id", "at", "text"], rows))


async def tools(repl: "Repl", argument: str) -> None:
    """The calls of the last prompt with all that they gave, or one of them."""
    ended = repl.telling.ended_tools
    if not ended:
        repl.say("No tool was called for the last prompt.", "dim")
        return
    if argument and not (argument.isdecimal() and 1 <= int(argument) <= len(ended)):
        raise UsageError(f"/tools takes a number from 1 to {len(ended)}, not {one_line(argument, 40)!r}.")
    chosen = range(len(ended)) if not argument else [int(argument) - 1]
    parts = []
    for number in chosen:
        one = ended[number]
        parts.append(repl.paper.line(f"{number + 1}. {describe(one.call)}  ({one.seconds:.1f} s)", "bold"))
        parts += change(one.call, repl.paper, most=UNFOLDED)
        lines = visible(brief(one.result.content)).rstrip("\n").split("\n")
        more = [f"[{len(lines) - UNFOLDED} more lines; /recall finds them]"] if len(lines) > UNFOLDED else []
        parts.append("\n".join([*lines[:UNFOLDED], *more]) + "\n")
    repl.show("".join(parts))


# --- money and settings ---


async def cost(repl: "Repl", argument: str) -> None:
    by = next((known for known in ledger.BYS if known == (argument or "source")), None)
    if by is None:
        raise UsageError(f"/cost takes {', '.join(ledger.BYS)}, not {one_line(argument, 40)!r}.")
    events = list(repl.session.journal.timeline.events())
    spends = ledger.fold([(repl.session.id, events)], by=by, rows=repl.app.prices.row)
    if not spends:
        repl.say("Nothing was spent yet.", "dim")
        return
    whole = ledger.total(ledger.fold([(repl.session.id, events)], by="model", rows=repl.app.prices.row))
    rows = [
        [
            spend.key or "–",
            f"{spend.usage.total_input:,}",
            f"{spend.usage.output:,}",
            money(spend.dollars if spend.unpriced < spend.calls else None),
        ]
        for spend in [*spends, whole]
    ]
    repl.show(columns(repl.paper, [by, "input", "output", "cost"], rows, right=(1, 2, 3)))
    if whole.unpriced:
        repl.say(unpriced(whole), "yellow")


async def config(repl: "Repl", argument: str) -> None:
    repl.show(visible(shown(repl.app.resolved)))
