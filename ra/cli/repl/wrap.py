"""Wraps text to the rows of a terminal, in which a Chinese character takes two cells."""

from collections.abc import Mapping

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


def question_rows(question: str, keys: Mapping[str, str], width: int) -> list[str]:
    """A question with its keys, wrapped between words; a key stays with its label."""
    choices = [f"{key} {word}" for key, word in keys.items()]
    rows = [""]
    for piece in [*question.split(), "", *(f"{choice} ·" for choice in choices[:-1]), *choices[-1:]]:
        line = f"{rows[-1]} {piece}" if rows[-1] else piece
        rows[-1:] = [line] if cell_len(line) <= width else [rows[-1], *chop_cells(piece, width)]
    return [row.rstrip() for row in rows if row]
