"""Reads the configuration and the options that the flags of a run set."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from ra.cli import flags
from ra.cli.output import Streams
from ra.config.load import Resolved, resolve
from ra.config.options import Options


def read_config(
    args: argparse.Namespace,
    env: Mapping[str, str],
    *,
    agent: str | None = None,
    trusting: bool = False,
    cwd: Path | None = None,
) -> Resolved:
    """The current configuration for this agent, or for the one that a flag names."""
    return resolve(
        cwd=cwd or Path.cwd(),
        env=env,
        config_file=Path(args.config) if args.config else None,
        assignments=args.set,
        flags=flags.settings(args),
        agent=agent or args.agent,
        trusting=trusting,
    )


def options(args: argparse.Namespace, streams: Streams | None) -> Options:
    """The options that the flags set. Without streams, a program is calling, and there is nobody to ask."""
    terminal = streams is not None and on_terminal(streams)
    return Options(
        tools=not args.no_tools,
        allow=tuple(args.allow),
        deny=tuple(args.deny),
        sandbox=args.sandbox or "auto",
        edits=args.edits,
        terminal=terminal,
        agent_file=args.agent_file,
        channel="api" if streams is None else "terminal" if streams.out_tty else "pipe",
        agent=args.agent or "",
        sends=not args.dry_run,
    )


def on_terminal(streams: Streams) -> bool:
    """Whether there is a person to ask."""
    return streams.err_tty and sys.stdin is not None and sys.stdin.isatty()
