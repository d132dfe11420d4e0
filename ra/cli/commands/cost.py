"""`ra cost`: show what was spent and on what, and price one call."""

import time
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from ra.app import open_prices, open_store
from ra.cli import table
from ra.cli.commands import CommandContext
from ra.cli.commands.sessions import span
from ra.core.errors import UserError
from ra.core.facts import TimelineEvent
from ra.core.model import Usage
from ra.costs import ledger
from ra.providers.model_choice import named


class SeveralLogs(TyperGroup):
    """Lets `--from` take several paths, as the shell expands them: `ra cost --from ~/.claude ~/.codex`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer contains a private copy of click
        return super().parse_args(ctx, list(self._repeated(args)))

    def _repeated(self, args: list[str]) -> Iterator[str]:
        """The arguments with the flag repeated before each path. A command's name is not a path."""
        paths: int | None = None  # paths since the flag; None after another flag
        for arg in args:
            if arg.startswith("-"):
                paths = {"--from": 0}.get(arg, 1 if arg.startswith("--from=") else None)
            elif paths is not None:
                if paths and arg not in self.commands:
                    yield "--from"
                paths += 1
            yield arg


app = typer.Typer(
    cls=SeveralLogs, add_completion=False, invoke_without_command=True, help="Show what you spent, and on what."
)


@app.callback()
def cost(
    ctx: typer.Context,
    since: Annotated[str, typer.Option("--since", help="only the last 7d or 12h, for example")] = "",
    by: Annotated[
        str, typer.Option("--by", help="group by session, model, source, tool or day; with --from also by project")
    ] = "model",
    session: Annotated[str, typer.Option("--session", help="only this session")] = "",
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="include all projects")] = False,
    logs: Annotated[
        list[Path] | None, typer.Option("--from", help="read another agent's logs, such as ~/.claude; repeatable")
    ] = None,
    what_if: Annotated[
        str, typer.Option("--what-if", help="show what the same sessions cost with another compaction, such as auto")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what you spent in this project, the largest sum first. With --from, read other agents' logs instead."""
    if ctx.invoked_subcommand is not None:
        return
    call: CommandContext = ctx.obj
    if what_if:
        _what_if(call, what_if, logs, since, session, everywhere=everywhere, as_json=as_json)
        return
    divided = next((name for name in ledger.BYS if name == ("session" if by == "project" and logs else by)), None)
    if divided is None:
        raise UserError(f"--by {by!r}: write session, model, source, tool or day.")
    begin = time.time() - span(since) if since else None
    bills = _logged(call, logs, by) if logs else _bills(call, session, everywhere=everywhere)
    prices = open_prices(call.resolved).row
    rows = ledger.fold(bills.items(), by=divided, rows=prices, since=begin)
    if as_json:
        call.streams.out(msgspec.json.encode(rows).decode() + "\n")
        return
    if not rows:
        call.streams.err("These logs record no bill.\n" if logs else "Nothing has been spent yet.\n")
        return
    # A call has several sources, so only a table by model counts each call once.
    total = ledger.total(ledger.fold(bills.items(), by="model", rows=prices, since=begin))
    top = max((row.dollars for row in rows), default=0) or 1
    cells = [
        [
            row.key or "–",
            str(row.calls),
            f"{row.usage.total_input:,}",
            f"{row.usage.output:,}",
            table.money(row.dollars if row.unpriced < row.calls else None),
            "█" * round(float(row.dollars / top) * 20),
        ]
        for row in [*rows, total]
    ]
    cells[-1][-1] = ""
    table.show(call.streams, [by, "calls", "input", "output", "cost", ""], cells, right=(1, 2, 3, 4))
    if total.unpriced:
        call.streams.err(f"ra: {table.unpriced(total)}\n")


def _logged(call: CommandContext, paths: list[Path], by: str) -> dict[str, list[TimelineEvent]]:
    """The bills in other agents' logs, by session or by project."""
    from ra.bench import spending  # start-up time: the replay, only for --from

    logs = spending.read_logs(paths, open_prices(call.resolved))
    for line in logs.skipped:
        call.streams.err(f"ra: skipped {line}\n")
    if by != "project":
        return logs.bills
    bills: dict[str, list[TimelineEvent]] = {}
    for name, events in logs.bills.items():
        bills.setdefault(logs.projects[name], []).extend(events)
    return bills


def _what_if(
    call: CommandContext,
    strategy: str,
    logs: list[Path] | None,
    since: str,
    session: str,
    *,
    everywhere: bool,
    as_json: bool,
) -> None:
    from ra.bench import spending  # start-up time: the replay, only for --what-if

    begin = time.time() - span(since) if since else 0.0
    recorded: Iterable[tuple[str, str, Sequence[TimelineEvent]]]
    if logs:
        recorded = spending.logged_sessions(logs)
    else:
        store = open_store(call.resolved)
        chosen = [store.info(session)] if session else store.sessions(None if everywhere else str(call.resolved.root))
        recorded = ((info.id, info.model, list(store.open(info.id, write=False).events())) for info in chosen)
    recent = (one for one in recorded if one[2] and one[2][-1].time >= begin)
    bill = spending.what_if(recent, open_prices(call.resolved), strategy)
    if as_json:
        call.streams.out(msgspec.json.encode(bill._asdict() | {"strategy": strategy}).decode() + "\n")
    elif not bill.sessions:
        call.streams.err("No session with a bill to replay.\n")
    else:
        call.streams.out(
            f"{bill.sessions} sessions cost {table.money(Decimal(str(bill.billed)))}. Under {strategy} they would have "
            f"cost {table.money(Decimal(str(bill.replayed)))} ({bill.replayed / bill.billed - 1:+.0%}).\n"
            if bill.billed
            else f"{bill.sessions} sessions cost nothing.\n"
        )


def _bills(call: CommandContext, session: str, *, everywhere: bool) -> dict[str, list[TimelineEvent]]:
    """All bills by session. What a fork inherited was paid by the session that it is a copy of."""
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
    input_tokens: Annotated[int, typer.Option("--input", min=0, help="new input tokens")] = 0,
    output_tokens: Annotated[int, typer.Option("--output", min=0, help="output tokens")] = 0,
    cache_read: Annotated[int, typer.Option("--cache-read", min=0, help="input tokens read from the cache")] = 0,
    cache_write: Annotated[int, typer.Option("--cache-write", min=0, help="input tokens written to the cache")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Compute the price of one call from its token counts."""
    call: CommandContext = ctx.obj
    usage = Usage(input_tokens, output_tokens, cache_read, cache_write)
    prices = open_prices(call.resolved)
    price = prices.price(model, usage) or prices.price(named(model).model, usage)  # `opus`: the newest of that family
    if price is None:
        raise UserError(
            f"No price is known for {model!r}. Add it under app.prices in ra.yaml; `ra models` lists models."
        )
    plain = f"{price.normalize():f}"
    call.streams.out((msgspec.json.encode({"cost": float(price)}).decode() if as_json else f"${plain}") + "\n")
