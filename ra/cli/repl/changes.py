"""What did an edit change? Its lines, removed and added, without the rest of the file."""

import difflib
from collections.abc import Iterator, Sequence

from rich.text import Text

from ra.cli.paper import Paper
from ra.cli.safe import visible
from ra.core.messages import ToolCall

SHOWN = 12

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def change(call: ToolCall, paper: Paper, *, most: int = SHOWN) -> list[str]:
    """The diff of an Edit, the head of what a Write wrote; nothing for other calls."""
    lines = [line for old, new in _pairs(call) for line in diff(old, new)]
    if not lines:
        return []
    more = [Text(f"  … {len(lines) - most} more lines; /tools shows them", "dim")] if len(lines) > most else []
    return [paper.rendered(*coloured(lines[:most], indent="  "), *more, wrap=False)]


def coloured(lines: Sequence[str], *, indent: str = "") -> list[Text]:
    return [Text(indent + visible(line), _COLOURS.get(line[:1], "")) for line in lines]


def diff(old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]


def _pairs(call: ToolCall) -> Iterator[tuple[str, str]]:
    match call.name, call.args:
        case "Write", {"content": str(content)}:
            yield "", content
        case "Edit", {"edits": [*edits]}:
            yield from (pair for edit in edits if isinstance(edit, dict) for pair in _replacement(edit))
        case "Edit", dict(args):
            yield from _replacement(args)


def _replacement(args: dict[str, object]) -> Iterator[tuple[str, str]]:
    match args:
        case {"old_string": str(old), "new_string": str(new)}:
            yield old, new
