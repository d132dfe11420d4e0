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
    try:
        return _start(argv, program=program)
    except KeyboardInterrupt:  # also while modules are loaded
        return 130


def _start(argv: list[str], *, program: str) -> int:
    if argv == ["--version"]:  # answered before anything else is imported
        return _version(program)
    from ra.cli import flags
    from ra.core.errors import RaError

    if argv[:1] == ["--complete"]:
        from ra.cli.completion import run  # for the shell's Tab key

        return run(argv[1:])
    index = flags.command_in(argv)
    try:
        if index is not None:
            from ra.cli.commands import run_command  # Typer and Rich: 100 ms that a prompt does not pay

            return run_command(argv[:index], argv[index:], program=program)
        from ra.cli.oneshot import run_prompt

        return run_prompt(flags.parse(argv, program))
    except RaError as error:
        from ra.cli.output import JsonFace, Streams, no_start
        from ra.cli.safe import visible

        if index is None and flags.wants_json(argv):  # a wrong flag: nobody has answered yet
            JsonFace(Streams({}), stream=False).hear(no_start(str(error)))
        else:
            Streams({}).err(f"{program}: {visible(str(error))}\n")
        return error.exit_code


def _version(program: str) -> int:
    from ra import __version__

    try:
        print(f"{program} {__version__}", flush=True)
    except OSError as error:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at exit
        return 0 if isinstance(error, BrokenPipeError) else 1
    return 0
