"""How does a command show rows? As a Rich table on a terminal, as plain columns in a pipe."""

import shutil
from collections.abc import Sequence

from ra.cli.output import Streams
from ra.cli.safe import one_line


def show(streams: Streams, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """`right` are the columns of numbers. In a pipe, columns are parted by tabs: easy for cut and awk.

    On a terminal a column that is empty in every row is left out.
    """
    if not streams.out_tty:
        streams.out("".join("\t".join(one_line(cell, 400) for cell in row) + "\n" for row in (heads, *rows)))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    shown = [index for index in range(len(heads)) if not rows or any(row[index] for row in rows)]
    for index in shown:
        table.add_column(heads[index], justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(one_line(row[index], 400) for index in shown))
    width, height = shutil.get_terminal_size()  # Rich takes 80 for a terminal that knows no control codes
    Console(width=width, height=height, no_color=not streams.colour, highlight=False, markup=False).print(table)


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
