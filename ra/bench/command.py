"""`ra bench`: compare the cost of context strategies, offline on recorded transcripts or live on your own agent."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ra.app import open_prices, open_store
from ra.bench import drawing, files, live, live_command, plot, preset, render, runs
from ra.bench.tables import paper, table
from ra.core.errors import UserError
from ra.costs.prices import Prices
from ra.timeline.importers import Transcript

app = typer.Typer(add_completion=False, no_args_is_help=True, help="What would a context strategy cost?")


_live = partial(typer.Option, rich_help_panel="Live")


@app.callback()
def bench() -> None:
    """Compare what context strategies cost."""


@app.command()
def context(
    ctx: typer.Context,
    trace: Annotated[
        list[Path] | None, typer.Option("--trace", "-t", help="a transcript, or a folder of them; repeatable")
    ] = None,
    more: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="more transcripts")] = None,
    session: Annotated[str, typer.Option("--session", help="a stored session instead of a transcript")] = "",
    strategies: Annotated[
        str, typer.Option("--strategies", help="the strategies to compare, separated by commas")
    ] = "",
    preset_name: Annotated[
        str, typer.Option("--preset", help="seed: repeat the published comparison of layered and planner")
    ] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="use the prices of this model")] = "",
    window: Annotated[
        int | None, typer.Option("--window", min=1000, help="use a window of N tokens (default: the model's own)")
    ] = None,
    days: Annotated[
        float, typer.Option("--days", min=0, help="in folders, read only files of the last N days")
    ] = files.MONTH,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="draw cost and window over time into this .svg file")
    ] = None,
    frontier: Annotated[
        Path | None, typer.Option("--frontier", help="draw cost against memory into this .svg file")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    message: Annotated[
        list[str] | None, _live("--message", help="ask a live agent this; repeat it for more turns")
    ] = None,
    agent: Annotated[str, _live("--agent", help="the agent to ask")] = "",
    channel: Annotated[str, _live("--channel", help="the channel that the message seems to come from")] = "bench",
    chat_id: Annotated[
        str, _live("--chat-id", help="prefix of the chat names; each strategy and run gets its own chat")
    ] = "bench",
    repeats: Annotated[int, _live("--runs", min=1, help="repeat everything N times")] = 1,
    turns: Annotated[int | None, _live("--turns", min=1, help="send N messages in the same chat")] = None,
    url: Annotated[str, _live("--url", help="ask the server at this address (default: answer in this process)")] = "",
    token: Annotated[
        str, _live("--token", envvar="RA_SERVE_TOKEN", help="the token of the server, if it is not your own")
    ] = "",
    tools: Annotated[live.Tools, _live("--tools", help="the tools that the agent may use")] = "read-only",
    warm: Annotated[
        bool, _live("--warm", help="ask each strategy once beforehand, so that all start with a warm cache")
    ] = False,
) -> None:
    """Replay recorded sessions through every strategy against a simulated prompt cache. No key, no network.

    Reads transcripts of ra, Claude Code, Codex, Gemini CLI, OpenHands, pi, SWE-agent, and OpenAI message lists. With
    --message, asks a live agent the same messages once per strategy, each in its own chat.
    """
    if message:
        if trace or more or session or preset_name or model or window or frontier:
            raise UserError("--message asks a live agent; --trace and its options replay. (agentx -m MODEL bench …)")
        named = live.chosen(strategies, cwd=Path.cwd(), remote=bool(url))
        agent, count = agent or ctx.obj.args.agent or "", turns or len(message)
        plan = live.plan(agent, message, channel, chat_id, named, runs=repeats, turns=count, tools=tools, warm=warm)
        raise typer.Exit(live_command.run(ctx.obj, plan, url=url, token=token, plot=plot_file, as_json=as_json))
    live_only = {
        "--agent": agent,
        "--channel": channel != "bench",
        "--chat-id": chat_id != "bench",
        "--runs": repeats > 1,
        "--turns": turns,
        "--url": url,
        "--tools": tools != "read-only",
        "--warm": warm,
    }
    if idle := [option for option, is_set in live_only.items() if is_set]:
        raise UserError(f"{', '.join(idle)}: only with --message, which asks a live agent.")
    prices = open_prices(ctx.obj.resolved) if ctx.obj is not None else Prices({}, None)
    if preset_name:
        _show_preset(preset_name, prices, as_json=as_json)
        return
    paths = [*(trace or ()), *(more or ())]
    if not paths and not session:
        raise UserError(
            "Name a transcript: ra bench context --trace FILE, or a folder such as ~/.claude; "
            'or ask an agent: --agent ID --message "…".'
        )
    drawing.check("--plot", plot_file)
    drawing.check("--frontier", frontier)
    names = runs.check([name.strip() for name in strategies.split(",") if name.strip()] or runs.STRATEGIES)
    if model and prices.row(model) is None:
        raise UserError(
            f"No price is known for {model!r}. Add it under app.prices in ra.yaml; `ra models` lists models."
        )
    conditions = runs.Conditions(prices, names, model, window, sizes=runs.SIZES if frontier else ())
    trace_files = files.find(paths, days=days)
    stored = [files.stored(open_store(ctx.obj.resolved), session)] if session else []
    results: list[runs.TraceResult] = []
    code = 0
    try:
        _run(trace_files, stored, conditions, results, quiet=as_json)
    except KeyboardInterrupt:  # show the results so far
        trace_files.skipped.append(f"the rest: interrupted after {len(results)} sessions")
        code = 130
    if as_json:
        _out(render.as_json(results, trace_files.skipped))
    else:
        _show(results, trace_files.skipped)
    if results:
        _draw(max(results, key=lambda result: result.calls), plot_file, frontier)
    if code or not results:
        raise typer.Exit(code or 1)


def _draw(result: runs.TraceResult, plot_file: Path | None, frontier: Path | None) -> None:
    title = render.title(result)
    if plot_file is not None:
        drawing.write(plot.over_time(result, title), plot_file)
    if frontier is not None:
        drawing.write(plot.frontier(result, title), frontier)


def _run(
    trace_files: files.TraceFiles,
    stored: Sequence[Transcript],
    conditions: runs.Conditions,
    results: list[runs.TraceResult],
    *,
    quiet: bool,
) -> None:
    """Replays stored sessions and all files, and adds each result when it is ready."""
    from rich.console import Console
    from rich.progress import Progress

    hidden = quiet or not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=hidden) as progress:
        steps = len(conditions.strategies) + len(conditions.sizes) + 1
        task = progress.add_task("Replaying", total=(len(stored) + len(trace_files.files)) * steps)
        recordings = chain(
            [("stored", stored)],
            ((str(file), files.transcripts(file, trace_files.skipped)) for file in trace_files.files),
        )
        for file, transcripts in recordings:
            for transcript in transcripts:
                result = runs.compare(
                    file,
                    transcript.name,
                    transcript.model,
                    transcript.events,
                    conditions,
                    window=transcript.window,
                    skipped=transcript.skipped,
                    step=lambda: progress.advance(task),
                )
                if result is None:
                    why = f" ({transcript.skipped[0]})" if transcript.skipped else ""
                    trace_files.skipped.append(f"{file}: it holds no model call{why}")
                else:
                    results.append(result)


def _show(results: Sequence[runs.TraceResult], skipped: Sequence[str]) -> None:
    console = paper()
    for result in results if len(results) <= 10 else ():
        console.print(render.title(result), style="bold")
        table(console, render.HEADS, render.cells(result))
        for line in (render.calibration(result), render.yardstick(result), render.pauses(result), render.sizes(result)):
            if line:
                console.print(line, style="dim", soft_wrap=True)
        for line in result.skipped:
            console.print(f"skipped {line}", style="dim", soft_wrap=True)
        console.print()
    if len(results) > 1:
        console.print(f"All {len(results)} sessions, {render.between(results)}", style="bold")
        table(console, ("strategy", "cost", "against recorded"), render.summary(results))
    for line in skipped:
        console.print(f"skipped {line}", style="dim", soft_wrap=True)


def _show_preset(name: str, prices: Prices, *, as_json: bool) -> None:
    if name != "seed":
        raise UserError(f"Unknown preset {name!r}; use seed.")
    tables = preset.seed(prices)
    if as_json:
        _out(render.preset_json(tables))
        return
    console = paper()
    tokens, costs = render.preset_tables(tables)
    console.print("Input tokens per turn", style="bold")
    table(console, ("Turn", "Layered total input", "Planner total input"), tokens)
    console.print("Cost per turn", style="bold")
    table(console, ("Turn", "Layered cost", "Planner cost (incl. Haiku plan)"), costs)
    console.print(f"Where planner wins: {tables.day.tasks} tasks of a day", style="bold")
    console.print(render.preset_day(tables), soft_wrap=True, highlight=False)


def _out(value: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
