"""What does a table look like on a terminal or in a pipe?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def table(console: "Console", heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box  # only who looks at a table pays for it
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for index, head in enumerate(heads):
        made.add_column(head, justify="right" if index else "left", no_wrap=not index)
    for row in rows:
        made.add_row(*row, style="bold" if row[0] == "auto" else None)
    console.print(made)
