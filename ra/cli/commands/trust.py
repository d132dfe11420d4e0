"""`ra trust`: show what this project would run, and agree to it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ra.cli.commands import CommandContext
from ra.config.trust import FILE, Trust
from ra.core.errors import UserError
from ra.core.text import visible

app = typer.Typer(add_completion=False, invoke_without_command=True, help="Trust this project's hooks and commands.")


def _trust(call: CommandContext) -> Trust:
    return Trust(call.resolved.data_dir / FILE)


@app.callback()
def trust(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="agree without being asked")] = False,
) -> None:
    """Show what this project's files would run or reach, and agree to it. If a file changes, ra asks again."""
    if ctx.invoked_subcommand is not None:
        return
    call: CommandContext = ctx.obj
    items = call.resolved.items
    if not items:
        call.streams.err("There is nothing to trust here: no file of this project would run or reach anything.\n")
        return
    untrusted_keys = {item.key for item in (*call.resolved.untrusted, *call.resolved.waiting)}
    for item in items:
        call.streams.out(f"{'new  ' if item.key in untrusted_keys else 'known'}  {visible(item.line)}\n")
        for file in item.files:
            name = os.path.relpath(file, call.resolved.root)
            if name not in item.what:
                call.streams.out(f"       with {visible(name)}\n")
    if not untrusted_keys:
        call.streams.err("All of it is trusted already.\n")
        return
    if not yes and call.streams.err_tty and not typer.confirm("Trust it?", err=True):
        raise typer.Exit(4)
    _trust(call).record(call.resolved.root, items)
    call.streams.err(f"Trusted: {call.resolved.root}. `ra trust revoke` takes it back.\n")


@app.command("list")
def list_trusted(ctx: typer.Context) -> None:
    """List the projects that you trust."""
    call: CommandContext = ctx.obj
    projects = _trust(call).list()
    if not projects:
        call.streams.err("You trust no project yet; `ra trust` shows what this one would run.\n")
    for project, keys in projects.items():
        call.streams.out(f"{visible(project)}\t{', '.join(keys)}\n")


@app.command()
def revoke(
    ctx: typer.Context,
    project: Annotated[Path | None, typer.Argument(help="the project's folder (default: this one)")] = None,
) -> None:
    """Stop trusting a project."""
    call: CommandContext = ctx.obj
    target = (project or call.resolved.root).resolve()
    if not _trust(call).revoke(target):
        raise UserError(f"{target} was not trusted; `ra trust list` shows what is.")
    call.streams.err(f"No longer trusted: {target}.\n")
