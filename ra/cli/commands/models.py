"""`ra models`: list the known models with windows and prices, and what ra learned from their endpoints."""

import time
from typing import Annotated

import msgspec
import typer

from ra.app import open_prices, open_store
from ra.cli import table
from ra.cli.commands import CommandContext
from ra.core.errors import UsageError, UserError
from ra.core.text import visible_line
from ra.providers import catalog
from ra.timeline.store import Endpoint, Learned

app = typer.Typer(
    add_completion=False, help="List models with windows and prices. A model that is not listed works too."
)


@app.command()
def models(
    ctx: typer.Context,
    like: Annotated[
        str,
        typer.Argument(metavar="TEXT|forget", help="only names that contain TEXT; or forget: drop what was learned"),
    ] = "",
    forgotten: Annotated[str, typer.Argument(metavar="MODEL", help="with forget: only for this model")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List models with their windows and prices (dollars per million tokens), and what ra learned from servers about
    windows and token counts. `forget` drops what was learned.
    """
    call: CommandContext = ctx.obj
    like = "" if like in ("list", "ls") else like  # other programs' subcommand
    if like == "forget":
        _forget(call, forgotten)
        return
    if forgotten:
        raise UsageError(f"ra models takes one text, not {like!r} and {forgotten!r}.")
    learned = [
        (endpoint, taught)
        for endpoint, taught in open_store(call.resolved).all_learned()
        if like.lower() in endpoint.model.lower()
    ]
    prices = open_prices(call.resolved)
    models = [(row, prices.row(row.info.id, row.provider)) for row in catalog.rows() if like.lower() in row.info.id]
    if as_json:
        objects: list[dict[str, object]] = [
            {"provider": row.provider, "model": row.info, "prices": price} for row, price in models
        ]
        objects += [{"endpoint": endpoint, "learned": taught} for endpoint, taught in learned]
        call.streams.out(msgspec.json.encode(objects).decode() + "\n")
        return
    if not models and not learned:
        raise UserError(f"No known model has {like!r} in its name. --model takes any other name, too.")
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
        for row, p in models
    ]
    heads = ["provider", "model", "window", "input", "output", "cache read", "cache write"]
    if rows:
        table.show(call.streams, heads, rows, right=(2, 3, 4, 5, 6))
        if call.streams.out_tty:
            call.streams.out("Prices are dollars per million tokens.\n")
    if learned:
        call.streams.out("\nLearned from errors and bills, for one address each (`ra models forget` drops it):\n")
        heads = ["model", "address", "window", "age", "tokens per o200k", "age", "taught by"]
        table.show(call.streams, heads, [_taught(*row) for row in learned], right=(2, 4))


def _taught(endpoint: Endpoint, learned: Learned) -> list[str]:
    now = time.time()
    window = f"{learned.window:,}{' (guess)' if learned.guessed else ''}" if learned.window else ""
    return [
        visible_line(endpoint.model, 60),
        visible_line(endpoint.base_url or endpoint.provider, 80),
        window,
        table.age(now - learned.window_at) if learned.window else "",
        f"{learned.factor:.2f}" if learned.factor else "",
        table.age(now - learned.factor_at) if learned.factor else "",
        visible_line(learned.text, 120),
    ]


def _forget(call: CommandContext, model: str) -> None:
    forgotten = open_store(call.resolved).forget(model or None)
    if not forgotten:
        raise UserError(f"Nothing was learned{f' about {model}' if model else ''}; `ra models` shows what was.")
    for endpoint in forgotten:
        place = visible_line(endpoint.base_url or endpoint.provider, 80)
        call.streams.err(f"Forgotten: {visible_line(endpoint.model, 60)} at {place}.\n")
