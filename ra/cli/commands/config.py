"""`ra config`: show, check or start a configuration file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ra.cli.commands import CommandContext
from ra.config import paths, reference
from ra.config.show import shown
from ra.core.errors import UserError
from ra.core.text import visible

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Show, check or create a configuration file.")


@app.command()
def show(ctx: typer.Context) -> None:
    """Show the configuration, and where each value comes from."""
    call: CommandContext = ctx.obj
    call.streams.out(shown(call.resolved))


@app.command()
def check(ctx: typer.Context) -> None:
    """Check every configuration file. A mistake is named with file, line and key, and exits with 2."""
    call: CommandContext = ctx.obj
    files = "\n".join(str(path) for path in call.resolved.files) or "no configuration files; the defaults apply"
    call.streams.out(f"{files}\n")


@app.command()
def path(ctx: typer.Context) -> None:
    """Print the path of your own configuration file and of the data folder."""
    call: CommandContext = ctx.obj
    call.streams.out(f"{paths.user_file(call.env)}\n{call.resolved.data_dir}\n")


@app.command("import")
def import_settings(
    ctx: typer.Context,
    agent: Annotated[Literal["claude", "codex"], typer.Argument(help="the agent whose settings to read")],
) -> None:
    """Print the settings of another agent as they would be in ra.yaml. Writes nothing."""
    import yaml

    from ra.config.importing import settings_of

    call: CommandContext = ctx.obj
    home = paths.home(call.env)
    if home is None:
        raise UserError("HOME is not set, so there is nowhere to look.")
    imported = settings_of(agent, home, call.resolved.root)
    for note in imported.notes:
        call.streams.err(f"ra: {visible(note)}\n")
    if not imported.files:
        raise UserError(f"No settings of {agent} were found in {home} or in this project.")
    call.streams.err(f"From {', '.join(imported.files)}, for {paths.user_file(call.env)}:\n")
    shown = yaml.safe_dump(imported.settings, sort_keys=False, allow_unicode=True) if imported.settings else ""
    call.streams.out(shown or "# nothing that ra.yaml has a key for\n")


@app.command()
def init(
    ctx: typer.Context,
    user: Annotated[bool, typer.Option("--user", help="write your own file instead of the project's")] = False,
) -> None:
    """Write a commented ra.yaml with every key and its default."""
    call: CommandContext = ctx.obj
    target = paths.user_file(call.env) if user else Path.cwd() / paths.FILE_NAME
    commented = "".join(
        line if line.startswith("#") or not line.strip() else f"# {line}"
        for line in reference.example().splitlines(keepends=True)
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_socket():  # the sandbox mounts it over a forbidden name, which stays forbidden without it
            target.unlink()
        with target.open("x", encoding="utf-8") as file:
            file.write(commented)
    except FileExistsError as error:
        raise UserError(f"{target} exists already; `ra config show` prints the current settings.") from error
    except OSError as error:
        raise UserError(
            f"{target} cannot be written: {error.strerror}; `ra config init --user` writes your own file."
        ) from error
    call.streams.err(f"Written: {target}. Uncomment what you want to change.\n")
