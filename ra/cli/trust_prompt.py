"""Asks on a terminal whether this project's hooks and commands may run; elsewhere refuses and says what to do."""

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

from ra.cli.output import Streams
from ra.cli.permission_prompt import forget_typed_ahead
from ra.config import private
from ra.config.load import Resolved
from ra.config.trust import FILE, Trust, fingerprint
from ra.core.errors import Refused, UserError
from ra.core.text import visible

TOLD = "told.json"  # in the data directory: the warnings that were shown
MAX_TOLD = 1000

Again = Callable[..., Resolved]
"""Resolves the configuration again, with `trusting=True`."""


def settle(resolved: Resolved, args: argparse.Namespace, streams: Streams, again: Again, *, terminal: bool) -> Resolved:
    """The resulting configuration: complete, or without what is not trusted. Raises Refused."""
    for note in resolved.notes:
        streams.err(f"ra: {visible(note)}\n")
    if args.trust and (resolved.untrusted or resolved.waiting):
        return _trusted(resolved, again)
    if resolved.waiting:
        _tell_once(resolved, streams)
    if not resolved.untrusted:
        return resolved
    lines = "".join(f"  {visible(item.line)}\n" for item in resolved.untrusted)
    if args.ignore_untrusted:
        streams.err(f"ra: continuing without these parts of the project, which are not trusted:\n{lines}")
        return resolved
    head = f"This project's configuration wants to run or reach things that you have not trusted:\n{lines}"
    if not terminal:
        raise Refused(
            f"{head}Look at it, then run `ra trust` (or add --trust); --ignore-untrusted continues without it."
        )
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


def _tell_once(resolved: Resolved, streams: Streams) -> None:
    """Warns about ignored settings, once for each state of them."""
    file = resolved.data_dir / TOLD
    told: dict[str, str] = private.read(file, dict[str, str], again="go on") or {}
    new_items = {fingerprint(item): item.what for item in resolved.waiting}
    if set(new_items) <= set(told):
        return
    names = ", ".join(visible(item.what) for item in resolved.waiting)
    streams.err(f"ra: not used until you trust them, MCP servers: {names}. `ra trust` shows them.\n")
    with contextlib.suppress(UserError, OSError):  # then the warning appears again
        private.write(file, dict(list((told | new_items).items())[-MAX_TOLD:]))


def _choice(streams: Streams) -> Any:
    import sys

    forget_typed_ahead()
    while True:
        streams.err("t trust it · w continue without it · q quit: ")
        line = sys.stdin.readline()
        if not line or line.strip().lower()[:1] in {"t", "w", "q"}:
            return line.strip().lower()[:1] or "q"
