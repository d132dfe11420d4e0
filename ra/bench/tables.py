"""Prints the tables of a benchmark."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ra.system.table import build

if TYPE_CHECKING:
    from rich.console import Console


def paper() -> "Console":
    """A console on stdout, whose reader may go away. Control characters in names from transcripts have no effect."""
    from rich.console import Console  # start-up time: only for tables

    class Paper(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(_printable(one) if isinstance(one, str) else one for one in objects), **options)

        def on_broken_pipe(self) -> None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more on exit
            raise SystemExit(0)

    return Paper(highlight=False, markup=False)


def table(console: "Console", heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Numbers in every column but the first. Narrow terminals wrap lines: a figure that is cut off would be lost."""
    drawn = build(heads, rows, right=range(1, len(heads)), fold=range(1, len(heads)), bold="auto")
    least = [max(map(len, (*head.split(), *(row[index] for row in rows)))) for index, head in enumerate(heads)]
    for column, width in zip(drawn.columns, least, strict=True):
        column.min_width = width
    if console.width < sum(least) + 3 * len(heads):
        drawn.width = sum(least) + 3 * len(heads)
    console.print(drawn, crop=False, no_wrap=True, overflow="ignore")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
