"""Where does `ra` start? Here: a command, a prompt, or the interactive prompt."""

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    sys.exit(start(list(sys.argv[1:] if argv is None else argv), program="ra"))


def agentx(argv: Sequence[str] | None = None) -> NoReturn:
    """The same program under the name that the daemon's users know."""
    sys.exit(start(list(sys.argv[1:] if argv is None else argv), program="agentx"))


def start(argv: list[str], *, program: str) -> int:
    if argv == ["--version"]:  # answered before anything else is imported
        from ra import __version__

        print(f"{program} {__version__}")
        return 0
    from ra.cli import flags
    from ra.core.errors import RaError

    if argv[:1] == ["--complete"]:
        from ra.cli.completion import run  # for the shell's Tab key

        return run(argv[1:])
    try:
        index = flags.command_in(argv)
        if index is not None:
            from ra.cli.commands import run_command  # Typer and Rich: 100 ms that a prompt does not pay

            return run_command(argv[:index], argv[index:], program=program)
        from ra.cli.oneshot import run_prompt

        return run_prompt(flags.parse(argv, program))
    except RaError as error:
        from ra.cli.output import Streams
        from ra.cli.safe import visible

        Streams({}).err(f"{program}: {visible(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
