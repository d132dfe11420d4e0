"""`ra local`: install the embedded model, or show its state."""

from typing import Annotated

import typer

from ra.cli.commands import CommandContext
from ra.providers import local, local_weights

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Install the embedded model, or check whether it is there."
)


@app.command()
def install(
    ctx: typer.Context, quiet: Annotated[bool, typer.Option("--quiet", "-q", help="show no progress bar")] = False
) -> None:
    """Download the embedded model (98 MB, once) into the data directory."""
    call: CommandContext = ctx.obj

    def say(text: str) -> None:
        if not quiet:
            call.streams.err(f"{text}\n")

    local_weights.install(call.resolved.data_dir, say)
    say('Try it: ra --provider local "What is the capital of France?"')


@app.command()
def status(ctx: typer.Context) -> None:
    """Show whether the embedded model is installed. Exits with 1 if it is not."""
    call: CommandContext = ctx.obj
    if local.available(call.resolved.data_dir):
        call.streams.out(f"{local.MODEL}\t{local_weights.path(call.resolved.data_dir)}\n")
        return
    call.streams.err("Not installed; `ra local install` fetches it (98 MB, once).\n")
    raise typer.Exit(1)
