"""`agentx bench context --message …`: ask, show how far it is, and print what was measured, whatever happened."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ra.app import App, Options
from ra.app.readonly import reading
from ra.bench import drawing, live, live_render
from ra.bench.live import Ask, Measured, Plan
from ra.bench.live_http import Daemon
from ra.bench.live_process import InProcess
from ra.bench.tables import paper, table
from ra.core.errors import RaError

TOKEN_FILE = "serve.token"  # noqa: S105 (a file's name, in the data directory)


def run(call: Any, plan: Plan, *, url: str, token: str, plot: Path | None, as_json: bool) -> int:
    """`call` is the command line's. Returns the exit code; what was measured is printed on every path."""
    drawing.check("--plot", plot)
    if warning := live.warning(plan):
        call.streams.err(f"{warning}\n")
    measured: list[Measured] = []
    failure: RaError | None = None
    interrupted = False
    with _asking(call, plan, url, token) as (ask, where), _progress(quiet=as_json) as progress:
        job = progress.add_task("", total=plan.calls) if progress else None
        try:
            for one in live.measure(plan, ask):
                measured.append(one)
                if progress and job is not None:
                    order = one.order
                    step = f"{live.short(order.strategy)}, run {order.run}, turn {order.turn}"
                    progress.update(job, advance=1, description=step)
        except KeyboardInterrupt:
            interrupted = True
        except RaError as error:
            failure = error
    if failure is not None and not measured:
        raise failure
    found = live.arms(plan, measured)
    notes = live.notes(found)
    if interrupted or failure:
        notes.insert(0, f"{'Interrupted' if interrupted else 'Ended'} after {len(measured)} of {plan.calls} turns.")
    heading = live_render.title(plan, where=where)
    if as_json:
        told = live_render.as_json(plan, found, notes, url=url, interrupted=interrupted)
        call.streams.out(msgspec.json.encode(told).decode() + "\n")
    else:
        _show(plan, found, notes, heading)
    if plot is not None and measured:
        drawing.write(live_render.drawn(found, plan.turns, heading), plot)
    if failure is not None:
        raise failure
    if interrupted:
        return 130
    return 0 if all(arm.errors < len(arm.turns) for arm in found) else 1


@contextmanager
def _asking(call: Any, plan: Plan, url: str, token: str) -> Iterator[tuple[Ask, str]]:
    if url:
        yield Daemon(url, token, plan, lambda: _stored(call.resolved.data_dir)), url
        return
    resolved = call.trusted(plan.agent or None)
    args = call.args
    options = Options(
        tools=plan.tools != "none" and not args.no_tools,
        allow=tuple(args.allow),
        deny=tuple(args.deny),
        sandbox=args.sandbox or "auto",
        write=bool(args.write),
        channel=plan.channel,
        agent=plan.agent,
        served=True,
    )
    options = reading(options) if plan.tools == "read-only" else options
    app = App(resolved, options, env=call.env, warn=lambda text: call.streams.err(f"ra: {text}\n"))
    with InProcess(app, plan) as ask:
        yield ask, app.model


def _stored(folder: Path) -> str:
    """The token of a daemon of this user, "" when there is none."""
    try:
        return (folder / TOKEN_FILE).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _progress(*, quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _show(plan: Plan, found: list[live.Arm], notes: list[str], heading: str) -> None:
    console = paper()
    console.print(heading, style="bold", soft_wrap=True)
    if any(arm.compared for arm in found):
        table(console, live_render.heads(found), live_render.cells(found))
        if plan.turns > 1:
            table(console, live_render.turn_heads(found), live_render.turn_cells(found, plan.turns))
    for line in notes:
        console.print(line, style="yellow", soft_wrap=True)
    for line in live_render.previews(found):
        console.print(line, style="dim", soft_wrap=True)
