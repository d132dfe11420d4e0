"""`ra models`: which models are known, with windows and prices?"""

from typing import Annotated

import msgspec
import typer

from ra.app import open_prices
from ra.cli import table
from ra.cli.commands import Call
from ra.core.errors import UserError
from ra.providers import catalog

app = typer.Typer(add_completion=False, help="Known models with windows and prices. Any other name works as well.")


@app.command()
def models(
    ctx: typer.Context,
    like: Annotated[str, typer.Argument(metavar="TEXT", help="only names with this in them")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Known models with windows and prices (dollars per million tokens)."""
    call: Call = ctx.obj
    prices = open_prices(call.resolved)
    found = [(row, prices.row(row.info.id, row.provider)) for row in catalog.rows() if like.lower() in row.info.id]
    if as_json:
        told = [{"provider": row.provider, "model": row.info, "prices": price} for row, price in found]
        call.streams.out(msgspec.json.encode(told).decode() + "\n")
        return
    if not found:
        raise UserError(f"No model that is known has {like!r} in its name. Any name works with --model all the same.")
    rows = [
        [
            row.provider,
            row.info.id,
            f"{row.info.window:,}" if row.info.window else "?",
            *(
                [f"{r:g}" for r in (p.rates.input, p.rates.output, p.rates.cache_read, p.rates.cache_write)]
                if p
                else ["?"] * 4
            ),
        ]
        for row, p in found
    ]
    heads = ["provider", "model", "window", "input", "output", "cache read", "cache write"]
    table.show(call.streams, heads, rows, right=(2, 3, 4, 5, 6))
