"""`agentx bench context --message …`: asks, shows the progress, and prints the results, whatever happened."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ra.app import App
from ra.bench import drawing, live, live_render
from ra.bench.live import AskAgent, LivePlan, Measured
from ra.bench.live_http import Daemon
from ra.bench.live_process import InProcess
from ra.bench.tables import paper, table
from ra.config.options import Options
from ra.core.errors import RaError

TOKEN_FILE = "serve.token"  # noqa: S105 (the name of a file in the data directory)


def run(call: Any, plan: LivePlan, *, url: str, token: str, plot: Path | None, as_json: bool) -> int:
    """`call` is the command line's. Returns the exit code; every path prints what was measured."""
    drawing.check("--plot", plot)
    if warning := live.warning(plan):
        call.streams.err(f"{warning}\n")
    measured: list[Measured] = []
    failure: RaError | None = None
    interrupted = False
    with _asking(call, plan, url, token) as (ask, where), _progress(quiet=as_json) as progress:
        job = progress.add_task("", total=plan.calls) if progress else None
        try:
            for measurement in live.measure(plan, ask):
                measured.append(measurement)
                if progress and job is not None:
                    order = measurement.order
                    step = f"{live.short(order.strategy)}, run {order.run}, turn {order.turn}"
                    progress.update(job, advance=1, description=step)
        except KeyboardInterrupt:
            interrupted = True
        except RaError as error:
            failure = error
    if failure is not None and not measured:
        raise failure
    arms = live.arms(plan, measured)
    notes = live.notes(arms)
    if interrupted or failure:
        notes.insert(0, f"{'Interrupted' if interrupted else 'Ended'} after {len(measured)} of {plan.calls} turns.")
    heading = live_render.title(plan, where=where)
    if as_json:
        document = live_render.as_json(plan, arms, notes, url=url, interrupted=interrupted)
        call.streams.out(msgspec.json.encode(document).decode() + "\n")
    else:
        _show(plan, arms, notes, heading)
    if plot is not None and measured:
        drawing.write(live_render.drawn(arms, plan.turns, heading), plot)
    if failure is not None:
        raise failure
    if interrupted:
        return 130
    return 0 if all(arm.errors < len(arm.turns) for arm in arms) else 1


@contextmanager
def _asking(call: Any, plan: LivePlan, url: str, token: str) -> Iterator[tuple[AskAgent, str]]:
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
        edits=args.edits,
        channel=plan.channel,
        agent=plan.agent,
        read_only=plan.tools == "read-only",
        served=True,
    )
    app = App(resolved, options, env=call.env, warn=call.warn)
    app.check()
    with InProcess(app, plan) as ask:
        yield ask, app.recipe.model


def _stored(folder: Path) -> str:
    """The token of this user's daemon, "" without one."""
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


def _show(plan: LivePlan, arms: list[live.Arm], notes: list[str], heading: str) -> None:
    console = paper()
    console.print(heading, style="bold", soft_wrap=True)
    if any(arm.compared for arm in arms):
        table(console, live_render.heads(arms), live_render.cells(arms))
        if plan.turns > 1:
            table(console, live_render.turn_heads(arms), live_render.turn_cells(arms, plan.turns))
    for line in notes:
        console.print(line, style="yellow", soft_wrap=True)
    for line in live_render.previews(arms):
        console.print(line, style="dim", soft_wrap=True)
