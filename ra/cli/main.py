"""Starts `ra`: runs a command, answers a prompt, or opens the interactive prompt."""

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    sys.exit(start(list(sys.argv[1:] if argv is None else argv), program="ra"))


def agentx(argv: Sequence[str] | None = None) -> NoReturn:
    """The same program under the name that users of the daemon expect."""
    sys.exit(start(list(sys.argv[1:] if argv is None else argv), program="agentx"))


def start(argv: list[str], *, program: str) -> int:
    if sys.platform == "win32":
        print(f"{program}: Windows itself is not supported. Install {program} in WSL (wsl --install).", file=sys.stderr)
        return 2
    isolate()
    try:
        return _start(argv, program=program)
    except KeyboardInterrupt:  # also while modules are loading
        return 130
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # `ra --help | head -1`: Rich would leave with 1
            return 0
        raise
    except MemoryError:
        sys.stderr.write(f"{program}: There is not enough memory. What was recorded is kept; `ra -c` goes on.\n")
        return 1


def isolate() -> None:
    """Removes the paths of PYTHONPATH from the import path, unless the launcher started Python isolated.

    PYTHONPATH often contains a project (PYTHONPATH=src), where a command in the sandbox could put a module. The path of
    ra itself stays.
    """
    import os

    if sys.flags.ignore_environment or not os.environ.get("PYTHONPATH"):
        return
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120 - no pathlib yet
    named = {os.path.abspath(name) for name in os.environ["PYTHONPATH"].split(os.pathsep)}  # noqa: PTH100 - as above
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) not in named or os.path.realpath(path) == home]  # noqa: PTH100 - as above


def _start(argv: list[str], *, program: str) -> int:
    if argv == ["--version"]:  # answered before anything else is imported
        return _version(program)
    from ra.cli import flags, near_miss
    from ra.core.errors import RaError, UsageError

    if argv[:1] == ["--complete"]:
        from ra.cli.completion import run  # start-up time: only for the shell's Tab key

        return run(argv[1:])
    index = flags.command_in(argv)
    try:
        if index is None:
            from ra.cli.oneshot import run_prompt

            miss = near_miss.on_command_line(argv, program, piped=_has_piped_text())
            if miss is not None and miss.words:
                raise UsageError(miss.words)
            if miss is not None:
                return _start(list(miss.run), program=program)
            args = flags.parse(argv, program)
            if not args.help:
                return run_prompt(args)
            from ra.cli.help import show  # start-up time: Typer and Rich take 100 ms

            show(program)
            return 0
        from ra.cli.commands import run_command  # start-up time: Typer and Rich

        return run_command(argv[:index], argv[index:], program=program)
    except RaError as error:
        from ra.cli.output import JsonFace, Streams, no_start
        from ra.core.text import visible

        message = str(error)
        if isinstance(error, flags.UnreadableFlags):
            from ra.cli import flag_hints  # start-up time: only for refused lines

            message = flag_hints.explain(error)
        if index is None and flags.wants_json(argv):  # a wrong flag, and no command that answers in JSON
            JsonFace(Streams({}), stream=False).hear(no_start(message))
        else:
            Streams({}).err(f"{program}: {visible(message)}\n")
        return error.exit_code


def _has_piped_text() -> bool:
    """Whether stdin is a pipe or a file. An empty device, such as a script's, has no text."""
    import os
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False  # closed
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _version(program: str) -> int:
    from ra.core.version import __version__

    try:
        print(f"{program} {__version__}", flush=True)
    except OSError as error:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more on exit
        return 0 if isinstance(error, BrokenPipeError) else 1
    return 0
