"""List every text that a user can meet, place by place, so that they can be read in one sitting.

python -m tests.user_words
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent / "ra"
HELP_FOLDERS = ("cli/commands", "bench/command.py", "bench/live_command.py")  # docstrings there are help texts
_LOOKS_LIKE_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z]*\s+\S*[A-Za-z]{2,}")
_SQL = "SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|LISTEN|NOTIFY"
_CODE = re.compile(rf"^({_SQL})\b|\(\?[:=!P]|^[\w.-]+( [\w.-]+){{4,}}$")


class Words(NamedTuple):
    place: str
    line: int
    text: str


def user_words() -> Iterator[Words]:
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text())
        docstrings = {id(node) for node in _docstrings(tree)}
        is_help = place.startswith(HELP_FOLDERS)
        for node, text in _texts(tree):
            if id(node) in docstrings and not is_help:
                continue
            flat = " ".join(text.split())
            if _LOOKS_LIKE_WORDS.search(flat) and not _CODE.search(flat):
                yield Words(place, node.lineno, flat)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Strings that stand as a statement: they are read by programmers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _texts(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            ]
            yield node, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node, node.value


if __name__ == "__main__":
    last = ""
    for words in user_words():
        if words.place != last:
            print(f"\n{words.place}")
            last = words.place
        print(f"  {words.line:4} {words.text}")
