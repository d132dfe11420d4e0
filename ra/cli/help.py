"""Shows `ra --help` with Typer, from the declared flags, so that it looks like the help of the commands."""

import inspect
from typing import Annotated, Any

import typer

from ra.cli import examples, flags


def show(program: str) -> None:
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback(
        invoke_without_command=True, help=_text(), options_metavar="[flags] [prompt]", subcommand_metavar="| COMMAND …"
    )(_run())
    for name, summary in flags.COMMANDS.items():
        app.command(name, help=summary)(_nothing)
    command = typer.main.get_command(app)
    examples.name_values(command)
    command.main(args=["--help"], prog_name=program, standalone_mode=False)


def _text() -> str:
    width = max(map(len, flags.EXAMPLES))
    lines = [f"{example:<{width}}  {meaning}" for example, meaning in flags.EXAMPLES.items()]
    return "\b\n".join([f"{flags.DESCRIPTION}\n\n", "\n".join(lines)])


def _nothing() -> None:
    """Typer needs a function for each row of its list."""


def _run() -> Any:
    """A function whose parameters are the flags, which is how Typer reads a command."""

    def run(**_: object) -> None:
        """Never called."""

    parameters = [
        _parameter(flag, group)
        for group, members in flags.GROUPS.items()
        for flag in members
        if "--help" not in flag.names  # Typer adds its own
    ]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(flag: flags.Flag, group: str) -> inspect.Parameter:
    metavar = "|".join(flag.choices) if flag.strict and not flag.value else flag.value
    option = typer.Option(*flag.names, help=flag.help, metavar=metavar, rich_help_panel=group, show_default=False)
    kind = bool if flag.kind == "switch" else str
    name = flag.names[-1].removeprefix("--").replace("-", "_") + "_"  # `continue` is a keyword of Python
    default = False if kind is bool else None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, option])
