"""How does a command show rows? As a Rich table on a terminal, as plain columns in a pipe."""

import shutil
import textwrap
from collections.abc import Sequence
from typing import Literal

from ra.cli.output import Streams
from ra.cli.safe import one_line
from ra.costs.ledger import Spend

GAP = 3  # columns of the terminal between two of a table
FOLDED = 12  # columns; text that is folded into less cannot be read


def show(streams: Streams, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """`right` are the columns of numbers. In a pipe, columns are parted by tabs: easy for cut and awk.

    On a terminal a column that is empty in every row is left out. Where it is narrow, heads have several lines, then
    the widest column is folded; where that would still not do, each row is a paragraph.
    """
    if not streams.out_tty:
        streams.out("".join("\t".join(one_line(cell, 400) for cell in row) + "\n" for row in (heads, *rows)))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = [index for index in range(len(heads)) if not rows or any(row[index] for row in rows)]
    width, height = shutil.get_terminal_size()  # Rich takes 80 for a terminal that knows no control codes
    cells = [[one_line(row[index], 400) for index in shown] for row in (heads, *rows)]
    widths = _widths(cells)
    if sum(widths) + GAP * len(widths) > width:
        cells[0] = [head.replace(" ", "\n") for head in cells[0]]
        widths = _widths(cells)
    widest = widths.index(max(widths))
    if sum(widths) + GAP * len(widths) - max(0, widths[widest] - FOLDED) > width:
        streams.out("".join(_paragraph(cells[0], row, width) for row in cells[1:]))
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for place, index in enumerate(shown):
        side: Literal["left", "right"] = "right" if index in right else "left"
        table.add_column(cells[0][place], justify=side, overflow="fold", no_wrap=place != widest)
    for row in cells[1:]:
        table.add_row(*row)
    Console(width=width, height=height, no_color=not streams.colour, highlight=False, markup=False).print(table)


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """What each column needs."""
    from rich.cells import cell_len

    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*cells, strict=True)]


def _paragraph(heads: Sequence[str], row: Sequence[str], width: int) -> str:
    """The first cell, and under it the others with their heads."""
    named = ((head.replace("\n", " "), cell) for head, cell in zip(heads[1:], row[1:], strict=True) if cell)
    told = " · ".join(f"{head} {cell}".strip() for head, cell in named)
    body = textwrap.fill(told, max(width, FOLDED), break_on_hyphens=False, initial_indent="  ", subsequent_indent="  ")
    return f"{row[0]}\n{body}\n" if told else f"{row[0]}\n"


def age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def money(dollars: object) -> str:
    """Dollars with as many decimals as a small amount needs; "–" when nobody knows."""
    if dollars is None or dollars == "":
        return "–"
    amount = float(str(dollars))
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}"


def unpriced(whole: Spend) -> str:
    """A word about calls that a sum cannot hold."""
    return (
        f"{whole.unpriced} of {whole.calls} calls have no known price and are not in the sum; "
        "`app.prices` in the configuration can name it."
    )
