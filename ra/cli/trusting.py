"""May this project's hooks, resolvers and commands run? Ask on a terminal; elsewhere refuse, and name the ways on."""

import argparse
from collections.abc import Callable
from typing import Any

from ra.cli.ask import forget_typed_ahead
from ra.cli.output import Streams
from ra.cli.safe import visible
from ra.config.load import Resolved
from ra.config.trust import FILE, Trust
from ra.core.errors import Refused

Again = Callable[..., Resolved]
"""Resolve the configuration once more, with `trusting=True`."""


def settle(resolved: Resolved, args: argparse.Namespace, streams: Streams, again: Again, *, terminal: bool) -> Resolved:
    """The configuration to go on with: whole, or without what is not trusted. Raises Refused."""
    for note in resolved.notes:
        streams.err(f"ra: {visible(note)}\n")
    if not resolved.untrusted:
        return resolved
    lines = "".join(f"  {visible(item.line)}\n" for item in resolved.untrusted)
    if args.trust:
        return _trusted(resolved, again)
    if args.ignore_untrusted:
        streams.err(f"ra: going on without what is not trusted here:\n{lines}")
        return resolved
    head = f"This project's configuration wants to run or reach what you have not agreed to:\n{lines}"
    if not terminal:
        raise Refused(f"{head}Look at it, then run `ra trust` (or add --trust); --ignore-untrusted goes on without it.")
    streams.err(head)
    match _choice(streams):
        case "t":
            return _trusted(resolved, again)
        case "w":
            return resolved
        case _:
            raise Refused("Nothing was sent.")


def _trusted(resolved: Resolved, again: Again) -> Resolved:
    Trust(resolved.data_dir / FILE).record(resolved.root, resolved.items)
    return again(trusting=True)


def _choice(streams: Streams) -> Any:
    import sys

    forget_typed_ahead()
    while True:
        streams.err("t trust it · w go on without · q quit: ")
        line = sys.stdin.readline()
        if not line or line.strip().lower()[:1] in {"t", "w", "q"}:
            return line.strip().lower()[:1] or "q"
