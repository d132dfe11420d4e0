"""Starts the interactive prompt on the present terminal."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from ra.app import App
from ra.cli.output import Streams

if TYPE_CHECKING:
    from ra.cli.repl.complete import Completions
    from ra.cli.repl.core import Repl
    from ra.cli.repl.terminal import Terminal

DUMB = ("dumb", "unknown", "")


def start(app: App, args: argparse.Namespace, streams: Streams) -> int:
    """Runs until the user leaves. Returns 0, 130 after Ctrl-C, or 143 after SIGTERM."""
    return asyncio.run(_run(app, args, streams))


async def _run(app: App, args: argparse.Namespace, streams: Streams) -> int:
    from ra.cli.repl.complete import Completions
    from ra.cli.repl.core import Repl

    completions = Completions(app)
    conversation = Repl(app, args, streams, _terminal(app, args, streams, completions), Commands())
    completions.repl = conversation
    return await conversation.main()


class Commands:
    """The table of commands, loaded while the first line is being typed."""

    def load(self) -> None:
        from ra.cli.repl.commands import unslashed  # noqa: F401 - imported to load it

    def knows(self, text: str) -> bool:
        from ra.cli.repl import commands

        return commands.find(text) is not None

    def only_looks(self, text: str) -> bool:
        from ra.cli.repl import commands

        command = commands.find(text)
        return command is not None and command.at_once and text.strip() not in commands.ALONE

    def meant(self, text: str) -> str:
        from ra.cli.repl.commands import unslashed

        return unslashed.hint(text)

    async def run(self, repl: "Repl", text: str) -> None:
        from ra.cli.repl import commands

        await commands.run(repl, text)


def _terminal(app: App, args: argparse.Namespace, streams: Streams, completions: "Completions") -> "Terminal":
    """A plain terminal if the cursor cannot move, or if the user does not want it to."""
    term = app.env.get("TERM", "")
    if args.plain or (term in DUMB and sys.platform != "win32"):
        from ra.cli.repl.plain import Plain

        return Plain(complete=completions.words)
    from ra.cli.repl.live import Live

    return Live(term=term, colour=streams.colour, history=app.resolved.data_dir / "history", completer=completions)
