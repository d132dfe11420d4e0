"""Break a text into the rows that a terminal makes of it, and keep the last ones."""

from rich.cells import cell_len, chop_cells


def last_rows(text: str, width: int, rows: int) -> list[str]:
    tail: list[str] = []
    for line in reversed(text.rstrip("\n").split("\n")):
        line = line.expandtabs(4)
        parts = [line] if cell_len(line) <= width else chop_cells(line, max(1, width))
        tail[:0] = parts
        if len(tail) >= rows:
            break
    return tail[-rows:]
