"""Searches the team's wiki: Markdown passages, one per heading, ranked by full-text search, with file:line."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ra.core.text import clean
from ra.core.value import Value
from ra.system.files import open_resolved
from ra.system.secret_names import is_secret
from ra.timeline.query import rank

MAX_FILES = 5_000
MAX_BYTES = 200_000  # of one article; the number of files is limited too
PASSAGE = 1_200  # characters of a passage that are shown
SUFFIXES = (".md", ".markdown")

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")


class Passage(Value, frozen=True):
    """The text under one heading; `heading` is the path of headings that lead to it."""

    file: str
    line: int
    heading: str
    text: str
    score: float = 0.0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def has_articles(dirs: Sequence[Path]) -> bool:
    return next(_articles(dirs), None) is not None


def query(words: str, dirs: Sequence[Path], *, root: Path, limit: int = 5) -> list[Passage]:
    """The best passages, best first. Files inside the project are named relative to it."""
    passages = [passage for path in _articles(dirs) for passage in _passages(_text(path), _name(path, root))]
    ranked = rank(words, [(passage.heading, passage.text) for passage in passages], limit)
    return [
        Passage(passage.file, passage.line, passage.heading, _shown(passage.text), float(f"{score:.4g}"))
        for index, score in ranked
        for passage in (passages[index],)
    ]


def _articles(dirs: Sequence[Path]) -> Iterator[Path]:
    """The Markdown files of the folders, in a fixed order, without hidden files and links to secrets or to outside."""
    remaining = MAX_FILES
    for folder in dirs:
        home = os.path.realpath(folder)
        for place, subfolders, names in os.walk(home):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            for name in sorted(names):
                if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                    path = Path(place, name)
                    real = Path(os.path.realpath(path))
                    if path.is_file() and real.is_relative_to(home) and not is_secret(str(real.relative_to(home))):
                        yield path
                        remaining -= 1
                    if not remaining:
                        return


def _text(path: Path) -> str:
    try:
        with open_resolved(path) as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""  # deleted, not readable, or not a file


def _passages(text: str, name: str) -> Iterator[Passage]:
    """The text by headings. Hashes in fenced blocks are no headings; text before the first has the file's name."""
    trail: list[tuple[int, str]] = []
    start, lines, fence = 1, list[str](), ""

    def passage() -> Iterator[Passage]:
        body = "\n".join(lines).strip()
        heading = " › ".join(title for _, title in trail) or Path(name).stem
        if body or trail:
            yield Passage(name, start, heading, body)

    for number, line in enumerate(text.splitlines(), 1):
        opened = _FENCE.match(line)
        if opened and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else opened[1]
        found = None if fence else _HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        yield from passage()
        level = len(found[1])
        trail = [(above, title) for above, title in trail if above < level] + [(level, found[2])]
        start, lines = number, []
    yield from passage()


def _name(path: Path, root: Path) -> str:
    name = path.relative_to(root) if path.is_relative_to(root) else path
    return clean(str(name))


def _shown(text: str) -> str:
    return text if len(text) <= PASSAGE else text[: PASSAGE - 1].rstrip() + "…"
