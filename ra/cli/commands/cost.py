"""`ra cost`: what was spent, and on what? And what would one call cost?"""

import time
from typing import Annotated

import msgspec
import typer

from ra.app import open_prices, open_store
from ra.cli import table
from ra.cli.commands import Call
from ra.cli.commands.sessions import span
from ra.core.errors import UserError
from ra.core.facts import TimelineEvent
from ra.core.model import Usage
from ra.costs import ledger

app = typer.Typer(add_completion=False, invoke_without_command=True, help="What was spent, and on what.")


@app.callback()
def cost(
    ctx: typer.Context,
    since: Annotated[str, typer.Option("--since", help="such as 7d or 12h; without it, everything")] = "",
    by: Annotated[str, typer.Option("--by", help="session, model, source, tool or day")] = "model",
    session: Annotated[str, typer.Option("--session", help="only this session")] = "",
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="of all projects")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """What was spent in this project, dearest first."""
    if ctx.invoked_subcommand is not None:
        return
    call: Call = ctx.obj
    divided = next((known for known in ledger.BYS if known == by), None)
    if divided is None:
        raise UserError(f"--by {by!r}: write session, model, source, tool or day.")
    begin = time.time() - span(since) if since else None
    bills = _bills(call, session, everywhere=everywhere)
    prices = open_prices(call.resolved)
    rows = ledger.fold(bills.items(), by=divided, rows=prices.row, since=begin)
    if as_json:
        call.streams.out(msgspec.json.encode(rows).decode() + "\n")
        return
    if not rows:
        call.streams.err("Nothing was spent yet.\n")
        return
    top = max((row.dollars for row in rows), default=0) or 1
    # By source or tool one call has several rows: calls are counted by model.
    whole = ledger.total(ledger.fold(bills.items(), by="model", rows=prices.row, since=begin))
    shown = [
        [
            row.key or "–",
            str(row.calls),
            f"{row.usage.total_input:,}",
            f"{row.usage.output:,}",
            table.money(None if row.unpriced == row.calls else row.dollars),
            "█" * round(float(row.dollars / top) * 20),
        ]
        for row in [*rows, whole]
    ]
    shown[-1][-1] = ""
    table.show(call.streams, [by, "calls", "input", "output", "cost", ""], shown, right=(1, 2, 3, 4))
    if whole.unpriced:
        call.streams.err(
            f"{whole.unpriced} of {whole.calls} calls have no known price and are not in the sum. "
            "Add their models under app.prices in ra.yaml.\n"
        )


def _bills(call: Call, session: str, *, everywhere: bool) -> dict[str, list[TimelineEvent]]:
    """Every bill by session. What a fork was begun with was paid by the session that it is a copy of."""
    store = open_store(call.resolved)
    only = store.info(session).id if session else ""
    bills: dict[str, list[TimelineEvent]] = {}
    for id, event in store.spent(project=None if everywhere or only else str(call.resolved.root)):
        if id == only or not only:
            bills.setdefault(id, []).append(event)
    return bills


@app.command()
def quote(
    ctx: typer.Context,
    model: Annotated[str, typer.Option("--model", "-m", help="the model's name")],
    input_tokens: Annotated[int, typer.Option("--input", min=0)] = 0,
    output_tokens: Annotated[int, typer.Option("--output", min=0)] = 0,
    cache_read: Annotated[int, typer.Option("--cache-read", min=0)] = 0,
    cache_write: Annotated[int, typer.Option("--cache-write", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """The price of one call."""
    call: Call = ctx.obj
    usage = Usage(input_tokens, output_tokens, cache_read, cache_write)
    price = open_prices(call.resolved).price(model, usage)
    if price is None:
        raise UserError(
            f"No price is known for {model!r}. Add it under app.prices in ra.yaml; `ra models` lists models."
        )
    plain = f"{price.normalize():f}"
    call.streams.out((msgspec.json.encode({"cost": float(price)}).decode() if as_json else f"${plain}") + "\n")
