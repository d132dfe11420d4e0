"""Read-only commands: what the model sees, the conversation, its cost, the settings."""

from collections.abc import Sequence

from rich.text import Text

from ra.cli import changes
from ra.cli.commands.permissions import rule_rows
from ra.cli.commands.said import HEADS, rows
from ra.cli.context_view import told_difference
from ra.cli.output import brief, describe
from ra.cli.render import Paper
from ra.cli.repl.context_bar import picture
from ra.cli.repl.core import Repl
from ra.cli.table import money, unpriced
from ra.config.show import shown
from ra.core.errors import UsageError
from ra.core.facts import Said
from ra.core.text import visible, visible_line
from ra.costs import ledger
from ra.system.table import build

UNFOLDED = 400  # lines of one result


def columns(paper: Paper, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows as a table without a frame; for screen readers, as sentences with the head before each cell."""
    if not paper.plain:
        return paper.rendered(build(heads, rows, right=right, edge=False))
    sentences = ([f"{head}: {cell}" if head else cell for head, cell in zip(heads, row, strict=True)] for row in rows)
    return "".join(visible_line(", ".join(cell for cell in cells if cell), 1000) + "\n" for cells in sentences)


# --- the context ---


async def context(repl: Repl, argument: str) -> None:
    if argument not in ("", "all", "diff"):
        raise UsageError(f"/context takes all, diff or messages, not {visible_line(argument, 40)!r}.")
    if argument == "diff":
        if repl.status.calls < 2:
            raise UsageError("A difference needs two model calls; this session has fewer. Ask something more first.")
        snapshot = await repl.session.context()
        text = told_difference(await snapshot.difference(), snapshot)
        repl.show(repl.paper.rendered(Text(text.rstrip("\n"))))
        return
    snapshot = await repl.session.context()
    spends = ledger.fold([(repl.session.id, snapshot.events)], by="source", rows=repl.app.prices.row)
    spent = {spend.key: money(spend.dollars) for spend in spends if not spend.unpriced}
    cold = repl.status.warm_s == 0
    repl.show(picture(snapshot.report, spent, repl.paper, everything=argument == "all", cold=cold))
    if any(isinstance(event.fact, Said) for event in snapshot.events):
        repl.say("/context messages lists every message, to read, omit, keep or pin it", "dim")


# --- the conversation ---


async def recall(repl: Repl, argument: str) -> None:
    repl.show(visible(await repl.session.recall(argument)).rstrip("\n") + "\n")


async def said(repl: Repl, argument: str) -> None:
    statements = await repl.session.said()
    if not statements:
        repl.say("This session has no rules or decisions of yours yet.", "dim")
        return
    repl.show(columns(repl.paper, HEADS, rows(statements)))


async def entries(repl: Repl, argument: str) -> None:
    live = repl.session.entries()
    if not live:
        repl.say("Nothing is pinned; /pin TEXT pins something.", "dim")
        return
    rows = [[entry.id, f"#{entry.inserted_at}", entry.content] for entry in live]
    repl.show(columns(repl.paper, ["id", "at", "text"], rows))


async def tools(repl: Repl, argument: str) -> None:
    """The calls of the last prompt with their complete output, or one of them."""
    ended = repl.telling.calls
    if not ended:
        repl.say("No tool was called for the last prompt.", "dim")
        return
    if argument and not (argument.isdecimal() and 1 <= int(argument) <= len(ended)):
        raise UsageError(f"/tools takes a number from 1 to {len(ended)}, not {visible_line(argument, 40)!r}.")
    numbers = range(len(ended)) if not argument else [int(argument) - 1]
    parts = []
    for number in numbers:
        tool = ended[number]
        parts.append(repl.paper.line(f"{number + 1}. {describe(tool.call)}  ({tool.seconds:.1f} s)", "bold"))
        if tool.change is not None:
            parts.append(changes.shown(tool.change, repl.paper, most=UNFOLDED))
        lines = visible(brief(tool.result.content)).rstrip("\n").split("\n")
        tail = [f"[{len(lines) - UNFOLDED} more lines; /recall finds them]"] if len(lines) > UNFOLDED else []
        parts.append("\n".join([*lines[:UNFOLDED], *tail]) + "\n")
    repl.show("".join(parts))


# --- money and settings ---


async def cost(repl: Repl, argument: str) -> None:
    by = next((name for name in ledger.BYS if name == (argument or "source")), None)
    if by is None:
        raise UsageError(f"/cost takes {', '.join(ledger.BYS)}, not {visible_line(argument, 40)!r}.")
    events = list(repl.session.events())
    spends = ledger.fold([(repl.session.id, events)], by=by, rows=repl.app.prices.row)
    if not spends:
        repl.say("Nothing has been spent yet.", "dim")
        return
    total = ledger.total(ledger.fold([(repl.session.id, events)], by="model", rows=repl.app.prices.row))
    rows = [
        [
            spend.key or "–",
            f"{spend.usage.total_input:,}",
            f"{spend.usage.output:,}",
            money(spend.dollars if spend.unpriced < spend.calls else None),
        ]
        for spend in [*spends, total]
    ]
    repl.show(columns(repl.paper, [by, "input", "output", "cost"], rows, right=(1, 2, 3)))
    if total.unpriced:
        repl.say(unpriced(total), "yellow")


async def permissions(repl: Repl, argument: str) -> None:
    """The rules, with those that were allowed for this session only."""
    listed = rule_rows(repl.app.resolved, repl.args, repl.app.options)
    if listed:
        repl.show(columns(repl.paper, ["action", "rule", "from"], listed))
    else:
        repl.say("You have set no rules. Reading the project needs none, and commands run in the sandbox.", "dim")
    if repl.status.edits:
        repl.say(f"Edits: {repl.session.edits} (/edits). !ra permissions explain 'COMMAND' shows what happens.", "dim")


async def config(repl: Repl, argument: str) -> None:
    repl.show(visible(shown(repl.app.resolved)))
