"""What does the team's wiki say? Passages of Markdown, one for each heading, ranked by BM25, with file:line."""

import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ra.core.text import clean
from ra.core.value import Value

MAX_FILES = 5_000
MAX_BYTES = 200_000  # of one article, and with the number of files a bound for all of them
PASSAGE = 1_200  # characters of a passage that are shown
SUFFIXES = (".md", ".markdown")

# BM25 as Robertson has it: how soon a repeated word stops counting, and how much long passages are held back.
_K1, _B = 1.2, 0.75
_HEADING_WEIGHT = 3  # a word in a heading counts as three in the text

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
# Scripts without spaces between words are read by pairs of characters.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_WORD = re.compile(r"\w+")


class Passage(Value, frozen=True):
    """Text under one heading; `heading` is the way there from the article's first."""

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
    """The best passages, best first. Files are named relative to the project where they are in it."""
    wanted = Counter(_terms(words))
    if not wanted:
        return []
    passages = [passage for path in _articles(dirs) for passage in _passages(_text(path), _name(path, root))]
    counts = [Counter(_terms(passage.text)) for passage in passages]
    for count, passage in zip(counts, passages, strict=True):
        for term in _terms(passage.heading):
            count[term] += _HEADING_WEIGHT
    scored = [(score, index) for index, score in enumerate(_scores(wanted, counts)) if score > 0]
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:limit]
    return [
        Passage(found.file, found.line, found.heading, _shown(found.text), round(score, 3))
        for score, index in best
        for found in (passages[index],)
    ]


def _scores(wanted: Counter[str], counts: Sequence[Counter[str]]) -> Iterator[float]:
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    holding = {term: sum(term in count for count in counts) for term in wanted}
    rarity = {
        term: math.log(1 + (len(counts) - number + 0.5) / (number + 0.5)) for term, number in holding.items() if number
    }
    for count, length in zip(counts, lengths, strict=True):
        yield sum(
            weight * count[term] * (_K1 + 1) / (count[term] + _K1 * (1 - _B + _B * length / (average or 1.0)))
            for term, weight in rarity.items()
            if term in count
        )


def _articles(dirs: Sequence[Path]) -> Iterator[Path]:
    """Markdown files of the folders, in a steady order; hidden ones and links that lead out are left alone."""
    left = MAX_FILES
    for folder in dirs:
        home = os.path.realpath(folder)
        for place, subfolders, names in os.walk(home):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            for name in sorted(names):
                if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                    path = Path(place, name)
                    if path.is_file() and Path(os.path.realpath(path)).is_relative_to(home):
                        yield path
                        left -= 1
                    if not left:
                        return


def _text(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""  # gone, or not ours to read
    with os.fdopen(descriptor, "rb") as file:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        return file.read(MAX_BYTES).decode("utf-8", "replace") if regular else ""


def _passages(text: str, name: str) -> Iterator[Passage]:
    """Text by headings; a hash in a fenced block is no heading. What stands before the first has the file's name."""
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


def _terms(text: str) -> list[str]:
    folded = text.casefold()
    pairs = [run[at : at + 2] for run in _SPACELESS.findall(folded) for at in range(max(1, len(run) - 1))]
    return pairs + _WORD.findall(_SPACELESS.sub(" ", folded))


def _name(path: Path, root: Path) -> str:
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return clean(str(shown))


def _shown(text: str) -> str:
    return text if len(text) <= PASSAGE else text[: PASSAGE - 1].rstrip() + "…"
