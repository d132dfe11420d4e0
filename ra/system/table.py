"""Draws rows as a table: in columns, as paragraphs when the terminal is too narrow, tab-separated for a pipe."""

import io
import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ra.core.text import visible_line

if TYPE_CHECKING:
    from rich.table import Table  # only a command that shows a table pays for Rich

GAP = 3  # terminal columns between two columns of the table
FOLDED = 12  # terminal columns; text folded into fewer is unreadable
CELL = 400  # characters of one cell

Row = Sequence[str]


def tabbed(heads: Row, rows: Sequence[Row]) -> str:
    """The table with tabs between its columns, for cut and awk."""
    return "".join("\t".join(visible_line(cell, CELL) for cell in row) + "\n" for row in (heads, *rows))


def build(
    heads: Row,
    rows: Sequence[Row],
    *,
    right: Collection[int] = (),
    fold: Collection[int] | None = None,
    bold: str = "",
    edge: bool = True,
) -> "Table":
    """A Rich table without a frame. Columns in `right` are right-aligned, only columns in `fold` may be folded.

    The row whose first cell is `bold` is set in bold. Without `edge` the table has no empty line around it.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=edge,
        show_header=any(head for head in heads),
    )
    for index, head in enumerate(heads):
        table.add_column(
            head,
            justify="right" if index in right else "left",
            overflow="fold",
            no_wrap=fold is not None and index not in fold,
        )
    for row in rows:
        table.add_row(
            *(Text(visible_line(cell, CELL)) for cell in row), style="bold" if bold and row[0] == bold else None
        )
    return table


def draw(heads: Row, rows: Sequence[Row], *, width: int, colour: bool, right: Collection[int] = ()) -> str:
    """The table as text for a terminal. Leaves out a column that is empty in every row.

    In a narrow terminal, the headings take several lines, then the widest column is folded; if that is not enough, each
    row becomes a paragraph.
    """
    from rich.console import Console

    columns = [index for index in range(len(heads)) if not rows or any(row[index] for row in rows)]
    cells = [[visible_line(row[index], CELL) for index in columns] for row in (heads, *rows)]
    widths = _widths(cells)
    if sum(widths) + GAP * len(widths) > width:
        cells[0] = [head.replace(" ", "\n") for head in cells[0]]
        widths = _widths(cells)
    widest = widths.index(max(widths))
    if sum(widths) + GAP * len(widths) - max(0, widths[widest] - FOLDED) > width:
        return "".join(_paragraph(cells[0], row, width) for row in cells[1:])
    numbers = [place for place, index in enumerate(columns) if index in right]
    text = io.StringIO()
    console = Console(
        file=text, force_terminal=colour, width=width, no_color=not colour, highlight=False, markup=False, emoji=False
    )
    console.print(build(cells[0], cells[1:], right=numbers, fold=(widest,)))
    return text.getvalue()


def _widths(cells: Sequence[Row]) -> list[int]:
    """The width that each column needs."""
    from rich.cells import cell_len

    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*cells, strict=True)]


def _paragraph(heads: Row, row: Row, width: int) -> str:
    """The first cell, and below it the others with their headings."""
    named = ((head.replace("\n", " "), cell) for head, cell in zip(heads[1:], row[1:], strict=True) if cell)
    line = " · ".join(f"{head} {cell}".strip() for head, cell in named)
    body = textwrap.fill(line, max(width, FOLDED), break_on_hyphens=False, initial_indent="  ", subsequent_indent="  ")
    return f"{row[0]}\n{body}\n" if line else f"{row[0]}\n"
