"""What does a table look like on a terminal or in a pipe?"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def paper() -> "Console":
    """Where tables go: stdout, whose reader may go away. Names from transcripts cannot steer the terminal."""
    from rich.console import Console  # only who looks at a table pays for it

    class Paper(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(_printable(one) if isinstance(one, str) else one for one in objects), **options)

        def on_broken_pipe(self) -> None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at exit
            raise SystemExit(0)

    return Paper(highlight=False, markup=False)


def table(console: "Console", heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    # A terminal that is too narrow wraps the lines; a figure that was cut off would be lost.
    least = [max(map(len, (*head.split(), *(row[index] for row in rows)))) for index, head in enumerate(heads)]
    if console.width < sum(least) + 3 * len(heads):
        made.width = sum(least) + 3 * len(heads)
    for index, head in enumerate(heads):
        made.add_column(head, justify="right" if index else "left", no_wrap=not index, min_width=least[index])
    for row in rows:
        made.add_row(*row, style="bold" if row[0] == "auto" else None)
    console.print(made, crop=False, no_wrap=True, overflow="ignore")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
