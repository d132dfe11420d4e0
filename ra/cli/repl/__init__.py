"""What happens when `ra` is started on a terminal without a prompt? A conversation, until its user leaves."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from ra.app import App
from ra.cli.output import Streams

if TYPE_CHECKING:
    from ra.cli.repl.complete import Completions
    from ra.cli.repl.terminal import Terminal

DUMB = ("dumb", "unknown", "")


def repl(app: App, args: argparse.Namespace, streams: Streams) -> int:
    """Run until the user leaves, and say how: 0, 130 after Ctrl-C, 143 after SIGTERM."""
    from ra.cli.repl.complete import Completions
    from ra.cli.repl.core import Repl

    async def run() -> int:
        completions = Completions(app)
        made = Repl(app, args, streams, _terminal(app, args, streams, completions))
        completions.repl = made
        return await made.main()

    return asyncio.run(run())


def _terminal(app: App, args: argparse.Namespace, streams: Streams, completions: "Completions") -> "Terminal":
    """A plain one where the cursor cannot move, and where its user wants it to stay."""
    term = app.env.get("TERM", "")
    if args.plain or (term in DUMB and sys.platform != "win32"):
        from ra.cli.repl.plain import Plain

        return Plain(complete=completions.words)
    from ra.cli.repl.live import Live

    return Live(term=term, colour=streams.colour, history=app.resolved.data_dir / "history", completer=completions)
