"""Shows the rows of a command, and formats ages and amounts of money the same way everywhere."""

import shutil
from collections.abc import Sequence

from ra.cli.output import Streams
from ra.costs.ledger import Spend
from ra.system import table


def show(streams: Streams, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """`right` are the columns of numbers."""
    if not streams.out_tty:
        streams.out(table.tabbed(heads, rows))
        return
    width = shutil.get_terminal_size().columns  # Rich assumes 80 for a terminal without control codes
    streams.out(table.draw(heads, rows, width=width, colour=streams.colour, right=right))


def age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def money(dollars: object) -> str:
    """Dollars with as many decimals as a small amount needs; "–" if unknown."""
    if dollars is None or dollars == "":
        return "–"
    amount = float(str(dollars))
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}"


def unpriced(total: Spend) -> str:
    """A remark about calls without a known price."""
    return (
        f"{total.unpriced} of {total.calls} calls have no known price and are not in the sum; "
        "`app.prices` in the configuration can name it."
    )
