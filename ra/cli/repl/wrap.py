"""Which rows does a terminal make of a text? Its last ones are all that is ever shown of what is still open."""

from rich.cells import cell_len, chop_cells


def last_rows(text: str, width: int, rows: int) -> list[str]:
    found: list[str] = []
    for line in reversed(text.rstrip("\n").split("\n")):
        line = line.expandtabs(4)
        parts = [line] if cell_len(line) <= width else chop_cells(line, max(1, width))
        found[:0] = parts
        if len(found) >= rows:
            break
    return found[-rows:]
