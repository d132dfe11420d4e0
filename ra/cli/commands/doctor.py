"""`ra doctor`: show what works on this machine, what does not, and how to fix it."""

import shutil
import textwrap
import time
from typing import Annotated

import typer

from ra.cli import checks
from ra.cli.commands import CommandContext
from ra.core.errors import RaError
from ra.core.text import visible

app = typer.Typer(
    add_completion=False, help="Check keys, model, sandbox, terminal, store, config, trust and MCP. Makes no paid call."
)

COLOURS = {"ok": "32", "warning": "33", "problem": "31"}
MARGIN = 19  # columns of verdict and name


@app.command()
def doctor(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> int:
    """Check everything that a run needs. Makes no paid call. Exits with 1 if there is a problem; warnings are fine."""
    call: CommandContext = ctx.obj
    try:
        results = checks.everything(call.resolved, call.env, call.streams, call.args.sandbox or "auto", now=time.time())
    except RaError as error:
        results = [checks.unreadable(error, call.env)]
    if as_json:
        call.streams.out(checks.as_json(results).decode() + "\n")
    else:
        for check in results:
            call.streams.out(_shown(call, check))
    return 1 if any(check.verdict == "problem" for check in results) else 0


def _shown(call: CommandContext, check: checks.Check) -> str:
    colour = COLOURS[check.verdict] if call.streams.colour and call.streams.out_tty else ""
    verdict = f"\x1b[{colour}m{check.verdict:<8}\x1b[0m" if colour else f"{check.verdict:<8}"
    short = checks.home_short(visible(check.words), call.env.get("HOME", ""))
    texts = [short, *map(visible, check.details), *([f"→ {visible(check.fix)}"] if check.fix else [])]
    lines = [line for text in texts for line in _folded(text, call)]
    return f"{verdict} {check.name:<9} " + f"\n{'':<{MARGIN}}".join(lines) + "\n"


def _folded(text: str, call: CommandContext) -> list[str]:
    """On a terminal, wraps the lines so that they stay right of the margin."""
    if not call.streams.out_tty:
        return [text]
    width = max(shutil.get_terminal_size().columns - MARGIN, MARGIN)
    return textwrap.wrap(text, width, break_on_hyphens=False, drop_whitespace=True) or [""]
