"""Shows how a file changed: line numbers, three lines of context, syntax colours."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from ra.cli.render import Paper
from ra.core.events import ChangedLine, FileChange
from ra.core.text import visible

SHOWN = 40  # lines of a change below a finished call
ASKED = 120  # lines of a change in a permission prompt

_STYLES = {"+": "green", "-": "red", " ": "dim"}


def head(change: FileChange) -> str:
    """`src/cart.py  +3 -1`: the path and the size of the change."""
    counts = [f"+{change.added}"] * bool(change.added) + [f"-{change.removed}"] * bool(change.removed)
    return visible(" ".join([change.path, *(["(new file)"] if change.created else []), "", *counts]).rstrip())


def shown(change: FileChange, paper: Paper, *, most: int = SHOWN, more: str = "") -> str:
    """The lines of a change, and how to see `more`. Long lines are left to the terminal: they copy as one line."""
    change = change.at_most(most)
    rows = [row for number, hunk in enumerate(change.hunks) for row in _rows(change, hunk, paper, first=number == 0)]
    hidden = change.left_out
    tail = [Text(f"  … {hidden:,} more line{'s' * (hidden != 1)}{more}", "dim")] if hidden else []
    note = [Text(f"  ({change.note})", "dim")] if change.note else []
    return paper.rendered(*rows, *tail, *note, wrap=False)


def _rows(change: FileChange, hunk: Sequence[ChangedLine], paper: Paper, *, first: bool) -> Iterator[Text]:
    width = max(4, *(len(str(line.number)) for line in hunk))
    if not first:
        yield Text(f"{'⋮':>{width + 1}}", "dim")
    for line, code in zip(hunk, _coloured(change.path, hunk, paper), strict=True):
        style = _STYLES[line.sign]
        gutter = Text.assemble((f" {line.number:>{width}} ", "dim"), (f"{line.sign} ", f"bold {style}"))
        yield gutter + (Text(code.plain, style) if line.sign == "-" or not code.spans else code)


def _coloured(path: str, hunk: Sequence[ChangedLine], paper: Paper) -> list[Text]:
    """The code of each line. Removed lines are red as a whole: they need no syntax colours."""
    texts = [visible(line.text).replace("\t", "    ") for line in hunk]
    plain = [Text(text, _STYLES[line.sign] if line.sign != " " else "") for text, line in zip(texts, hunk, strict=True)]
    if paper.plain or not paper.colour:
        return plain
    from rich.syntax import Syntax  # start-up time: pygments, only when code is shown

    lexer = Syntax.guess_lexer(path)
    if lexer in ("default", "text"):
        return plain
    syntax = Syntax("", lexer, theme=paper.code_theme, background_color="default")
    lines = syntax.highlight("\n".join(texts)).split("\n", allow_blank=True)
    matching = len(lines) >= len(texts) and all(line.plain == text for line, text in zip(lines, texts, strict=False))
    return list(lines[: len(texts)]) if matching else plain
