"""Renders Markdown line by line while it is being written, and prints each finished line once.

Nothing on the screen is ever redrawn, so the cost of an answer is the cost of its lines. The caller shows the source of
the unfinished line. Line ends stay as they came: a list of short lines remains one, and what is copied from the
terminal is what the model wrote. Code has no frame and no padding, for the same reason.
"""

import re
from collections import deque

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.cells import cell_len
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ra.cli.render import Paper
from ra.core.text import visible

CONTEXT = 60  # lines of a code block before the new ones, so that multi-line strings are highlighted as such
PIECE = 100  # lines of code that are highlighted at once
REST = 2000  # characters of the unfinished line that are worth showing
LONG = 8000  # largest length, and number of marks, of a line that is parsed: hostile ones take for ever
MARKS = 400
TABLE = 200  # rows of a table before it is shown in pieces

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w+#.-]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$")
_QUOTE = re.compile(r"^\s*>\s?(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(\s*\1){2,}\s*$")
_EDGE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_SPECIAL = re.compile(r"[*_`\[\]<&\\!~]")
_CELL = re.compile(r"(?<!\\)\|")

_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "link": "underline"}


class MarkdownStream:
    """`feed` text, print what `take` returns, show `rest` until more arrives; `finish` ends it."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._open: list[str] = []  # pieces of the unfinished line
        self._lines: deque[str] = deque()
        self._fence: _Fence | None = None
        self._rows: list[str] = []
        self._blank = True  # the last thing printed was an empty line, or nothing
        self._inline = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")

    def feed(self, text: str) -> None:
        first, *lines = text.split("\n")
        self._open.append(first)
        if lines:
            self._lines.append("".join(self._open))
            self._lines.extend(lines[:-1])
            self._open = [lines[-1]]

    @property
    def more(self) -> bool:
        """Whether there are finished lines that were not taken yet."""
        return bool(self._lines)

    def take(self, most: int = PIECE) -> str:
        """The next finished lines, rendered: at most `most` lines of source, so that the caller stays responsive."""
        lines = (self._lines.popleft() for _ in range(min(most, len(self._lines))))
        parts = [self._line(visible(line.removesuffix("\r"))) for line in lines]
        if self._fence is not None:
            parts.append(self._code(self._fence))
        return "".join(parts)

    def rest(self) -> str:
        """The source of what is not finished; only the end of a long line."""
        end: list[str] = []
        length = 0
        for piece in reversed(self._open):
            end.append(piece)
            length += len(piece)
            if length > REST:
                break
        return "\n".join([*self._rows[-PIECE:], visible("".join(reversed(end))[-REST:].removesuffix("\r"))])

    def finish(self) -> str:
        """Returns everything that is left, and resets the stream."""
        if any(self._open):
            self.feed("\n")
        parts = []
        while self.more:
            parts.append(self.take())
        if self._fence is not None:
            parts.append(self._code(self._fence))
        parts.append(self._end_table())
        self._fence, self._open, self._blank = None, [], True
        return "".join(parts)

    # --- lines ---

    def _line(self, line: str) -> str:
        if self._paper.plain:
            return line + "\n"
        if self._fence is not None:
            return self._in_fence(line, self._fence)
        if line.lstrip().startswith("|") and len(line) <= LONG and len(self._rows) < TABLE:
            self._rows.append(line)
            return ""
        return self._end_table() + self._outside(line)

    def _outside(self, line: str) -> str:
        if not line.strip():
            gap, self._blank = "" if self._blank else "\n", True
            return gap
        self._blank = False
        if len(line) > LONG:
            return self._wrapped(Text(line.strip()))
        if fence := _FENCE.match(line):
            self._fence = _Fence(fence["mark"], len(fence["indent"]), fence["language"])
            return ""
        if heading := _HEADING.match(line):
            style = "bold underline" if len(heading[1]) == 1 else "bold"
            return self._wrapped(self._text(heading[2].rstrip().rstrip("#").rstrip(), style))
        if _RULE.match(line):
            return self._paper.line("─" * min(self._paper.width, 40), "dim")
        if item := _ITEM.match(line):
            indent, marker, text = item.groups()
            head = indent.expandtabs(4) + ("•" if marker in "-*+" else marker) + " "
            return self._wrapped(self._text(text), head=head)
        if quote := _QUOTE.match(line):
            return self._wrapped(self._text(quote[1], "italic"), head="│ ", each=True)
        indent = line[: len(line) - len(line.lstrip())].expandtabs(4)
        if not _SPECIAL.search(line) and cell_len(line) <= self._paper.width:
            return line.rstrip() + "\n"
        return self._wrapped(self._text(line.strip()), head=indent)

    def _wrapped(self, text: Text, *, head: str = "", each: bool = False) -> str:
        """Words wrapped to the width, indented to the end of `head`; `each` repeats the head on every line."""
        head = head[: self._paper.width // 2]
        room = self._paper.width - cell_len(head)
        lines = text.wrap(self._paper.console, room)
        under = head if each else " " * cell_len(head)
        for line in lines:
            line.rstrip()
        return "".join(
            self._paper.rendered(Text.assemble((under if number else head, "dim"), line), wrap=False)
            for number, line in enumerate(lines)
        )

    # --- code ---

    def _in_fence(self, line: str, fence: "_Fence") -> str:
        if not fence.closed_by(line):
            fence.new.append(fence.without_indent(line))
            return self._code(fence) if len(fence.new) >= PIECE else ""
        self._fence = None
        return self._code(fence)

    def _code(self, fence: "_Fence") -> str:
        if not fence.new:
            return ""
        source = "\n".join([*fence.seen, *fence.new])
        syntax = Syntax("", fence.language or "text", theme=self._paper.code_theme, background_color="default")
        highlighted = syntax.highlight(source).split("\n", allow_blank=True)[len(fence.seen) :][: len(fence.new)]
        fence.seen = [*fence.seen, *fence.new][-CONTEXT:]
        fence.new = []
        for line in highlighted:
            line.rstrip()
        return self._paper.rendered(*highlighted, wrap=False)

    # --- tables ---

    def _end_table(self) -> str:
        rows, self._rows = self._rows, []
        if not rows:
            return ""
        if len(rows) < 2 or not _EDGE.match(rows[1]):
            return "".join(map(self._outside, rows))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        heads, edges = _cells(rows[0]), _cells(rows[1])
        for number, head in enumerate(heads):
            right = number < len(edges) and edges[number].endswith(":") and not edges[number].startswith(":")
            table.add_column(self._text(head), justify="right" if right else "left", overflow="fold")
        for row in rows[2:]:
            cells = [*_cells(row), *[""] * len(heads)][: len(heads)]
            table.add_row(*map(self._text, cells))
        self._blank = False
        return self._paper.rendered(table)

    # --- words ---

    def _text(self, line: str, style: str = "") -> Text:
        if not 0 < len(_SPECIAL.findall(line)) <= MARKS:
            return Text(line, style=style)
        text = Text(style=style)
        styles: list[str] = []
        for token in self._inline.parseInline(line)[0].children or []:
            _add(text, token, styles)
        return text


class _Fence:
    """A code block that has not ended."""

    def __init__(self, mark: str, indent: int, language: str) -> None:
        self.mark = mark
        self.indent = indent
        self.language = language
        self.seen: list[str] = []
        self.new: list[str] = []

    def closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.mark) and not bare.strip(self.mark[0])

    def without_indent(self, line: str) -> str:
        return line[min(self.indent, len(line) - len(line.lstrip())) :]


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(row.strip().removeprefix("|").removesuffix("|"))]


def _add(text: Text, token: Token, styles: list[str]) -> None:
    """Adds one piece of a line. A link shows its target, so that its text cannot hide it."""
    kind, _, edge = token.type.rpartition("_")
    if edge == "open" and kind in _STYLES:
        styles.append(_STYLES[kind])
        if kind == "link":
            styles.append(f"\0{token.attrGet('href') or ''}")
    elif edge == "close" and kind in _STYLES:
        if kind == "link":
            target = styles.pop()[1:]
            if target not in text.plain:
                text.append(f" ({target})", "dim")
        styles.pop()
    elif token.type == "code_inline":
        text.append(token.content, "cyan")
    elif token.type == "image":
        text.append(f"[image: {token.content}] ({token.attrGet('src') or ''})", "dim")
    else:
        text.append(token.content, " ".join(style for style in styles if not style.startswith("\0")))
