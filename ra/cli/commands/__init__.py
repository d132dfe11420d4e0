"""Runs a command; each is a module of its own with a Typer app named `app`."""

import argparse
import importlib
import os
from collections.abc import Mapping, Sequence
from functools import partial

import typer

from ra.app import App
from ra.cli import examples, flags
from ra.cli.configuration import read_config
from ra.cli.output import Streams
from ra.config.load import Resolved
from ra.config.options import Options
from ra.core.errors import UsageError
from ra.core.text import visible

MODULES = {name: f"{__name__}.{name}" for name in flags.COMMANDS} | {
    "bench": "ra.bench.command",  # in another package
    "daemon": f"{__name__}.serve",  # agentx's name for it
}


class CommandContext:
    """The context of every command: the flags before it, the configuration, the streams."""

    def __init__(self, before: argparse.Namespace, env: Mapping[str, str]) -> None:
        self.args = before
        self.env = env
        self.streams = Streams(env, plain=before.plain)
        self._resolved: Resolved | None = None

    @property
    def resolved(self) -> Resolved:
        if self._resolved is None:
            self._resolved = self.resolve(self.args.agent)
        return self._resolved

    def app(self, options: Options | None = None) -> App:
        """The App that opens sessions with this configuration; its warnings go to stderr."""
        return App(self.resolved, options or Options(), env=self.env, warn=self.warn)

    def warn(self, text: str) -> None:
        self.streams.err(f"ra: {visible(text)}\n")

    def trusted(self, agent: str | None) -> Resolved:
        """The configuration for a command that calls a model, after the trust prompt for what the project runs."""
        from ra.cli.trust_prompt import settle  # start-up time: few commands call a model

        again = partial(self.resolve, agent or self.args.agent)
        return settle(again(), self.args, self.streams, again, terminal=False)

    def resolve(self, agent: str | None, *, trusting: bool = False) -> Resolved:
        """The configuration as it is now, for this agent."""
        return read_config(self.args, self.env, agent=agent, trusting=trusting)


def run_command(before: Sequence[str], words: Sequence[str], *, program: str) -> int:
    """Runs `words` (a command and its arguments); `before` are the flags of a run in front of them."""
    call = CommandContext(flags.parse(before, program), os.environ)
    name = words[0]
    app: typer.Typer = importlib.import_module(MODULES[name]).app
    command = typer.main.get_command(app)
    examples.teach(command, name)
    try:
        code = command.main(
            args=[flags.clean(word) for word in words[1:]],
            prog_name=f"{program} {name}",
            standalone_mode=False,
            obj=call,
        )
    except typer.TyperException as error:
        message = error.format_message().rstrip(".")
        if not message:  # Typer has shown the help
            return 2
        from ra.cli.commands import mistakes  # start-up time: only for unreadable lines

        raise UsageError(mistakes.explained(message, words, program)) from error
    except typer.Abort:
        return 130
    return (code if isinstance(code, int) else 0) or int(call.streams.failed)
