"""Searches files by a regular expression, and lists them, without ripgrep: in a worker with bounded memory and time."""

import os
import re
import time
from collections.abc import Callable, Iterable
from io import BufferedReader
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.system import worker
from ra.system.files import open_regular, open_without_links
from ra.tools.policy.globs import glob_regex
from ra.tools.policy.paths import shown
from ra.tools.tool import Mistake
from ra.tools.walk import walk

MAX_FOUND = 100_000
MAX_FILE_BYTES = 50_000_000
MAX_LINE_CHARACTERS = 500
MAX_PATTERN_CHARACTERS = 10_000


class GrepArgs(msgspec.Struct):
    pattern: Annotated[str, Meta(description="Regular expression")]
    path: Annotated[str, Meta(description="File or folder")] = "."
    glob: Annotated[str, Meta(description="Only files with such a name: *.py")] = ""
    ignore_case: bool = False
    context: Annotated[int, Meta(description="Lines around each match", ge=0, le=20)] = 0
    files_only: Annotated[bool, Meta(description="Names instead of lines")] = False


class MatchLine(msgspec.Struct, frozen=True, order=True):
    """A line of the answer: a `hit`, or context around one. Ordered by file and number."""

    path: str
    number: int
    hit: bool
    text: str


class _Order(msgspec.Struct):
    """A task for the worker. `careful`: a running command could place a symlink on the way. No `args`: list names."""

    start: bytes
    only: bytes
    seconds: float
    careful: bool = False
    args: GrepArgs | None = None


class _Answer(msgspec.Struct):
    lines: list[tuple[bytes, int, bool, str]] = []
    names: list[bytes] = []
    mistake: str = ""


def search_in_worker(args: GrepArgs, start: str, only: str, deadline: float, *, careful: bool) -> list[MatchLine]:
    """`search`, bounded in time and memory. Raises Mistake."""
    order = _Order(os.fsencode(start), os.fsencode(only), max(0.1, deadline - time.monotonic()), careful, args)
    try:
        answer = _ask(order, deadline)
    except worker.OutOfMemory as error:
        raise Mistake("The search needs more memory than it may have; write a simpler pattern.") from error
    except worker.OutOfTime as error:
        raise Mistake("The search takes too long; write a simpler pattern, or search fewer files.") from error
    if answer.mistake:
        raise Mistake(answer.mistake)
    return [MatchLine(os.fsdecode(path), number, hit, text) for path, number, hit, text in answer.lines]


def names_from_worker(start: str, deadline: float) -> list[str]:
    """`walk`, bounded in time and memory: a project's ignore rules are patterns that we do not control."""
    try:
        answer = _ask(_Order(os.fsencode(start), b"", max(0.1, deadline - time.monotonic())), deadline)
    except worker.OutOfMemory as error:
        raise Mistake("The folder holds more than can be listed; give a smaller one as path.") from error
    except worker.OutOfTime as error:
        raise Mistake("Listing the folder takes too long; give a smaller one as path.") from error
    return [os.fsdecode(name) for name in answer.names]


def _ask(order: _Order, deadline: float) -> _Answer:
    answer = worker.call(f"{__name__}:serve", msgspec.json.encode(order), until=deadline)
    return msgspec.json.decode(answer, type=_Answer)


def serve(raw: bytes) -> bytes:
    """Runs in the worker: answers `_ask`."""
    order = msgspec.json.decode(raw, type=_Order)
    deadline = time.monotonic() + order.seconds
    start, only = os.fsdecode(order.start), os.fsdecode(order.only)
    if order.args is None:
        return msgspec.json.encode(_Answer(names=[os.fsencode(name) for name in walk(start, deadline=deadline)]))
    try:
        lines = search(order.args, start, only, deadline, careful=order.careful)
    except Mistake as mistake:
        return msgspec.json.encode(_Answer(mistake=str(mistake)))
    rows = [(os.fsencode(line.path), line.number, line.hit, cut_line(line.text)) for line in lines]
    return msgspec.json.encode(_Answer(lines=rows))


def search(args: GrepArgs, start: str, only: str, deadline: float, *, careful: bool = False) -> list[MatchLine]:
    """The matching lines and their context. Raises Mistake."""
    # Like re, but with a timeout: (a+)+$ on one long line would never end.
    import regex

    flags = regex.IGNORECASE if args.ignore_case else 0
    try:
        line = regex.compile(args.pattern, flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise Mistake(
            f"The pattern is not a valid regular expression: {error}. Escape signs that are meant as they are."
        ) from error
    paths: Iterable[str] = [only] if only else filter(name_filter(args.glob), walk(start, deadline=deadline))
    # One search of the whole text rules out most files. Not with look-around, which would see beyond the line.
    whole_text = (
        None if re.search(r"\(\?|\\[AZzB]", args.pattern) else regex.compile(args.pattern, flags | regex.MULTILINE)
    )
    # Checking each folder on the way takes time, and only a running command could place a symlink there.
    opened = open_without_links if careful else open_regular
    lines: list[MatchLine] = []
    for path in paths:
        if time.monotonic() > deadline or len(lines) > MAX_FOUND:
            break
        text = _text_of(os.path.join(start, path), opened)
        try:
            if text is None or (whole_text and not whole_text.search(text, timeout=_left(deadline), concurrent=True)):
                continue
            lines += _matching(path, text, lambda row: bool(line.search(row, timeout=_left(deadline))), args.context)
        except TimeoutError as error:
            raise Mistake(f"The pattern takes too long in {shown(path)}; write a simpler one.") from error
    return lines


def name_filter(glob: str) -> Callable[[str], bool]:
    if not glob:
        return lambda path: True
    negated, pattern = glob.startswith("!"), glob.removeprefix("!").removeprefix("./")
    # As in ripgrep and gitignore: a bare name matches at every depth.
    regex = glob_regex(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}", paths=True)
    return lambda path: bool(regex.fullmatch(path)) != negated


def cut_line(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]} [… {len(text)} characters]"


def _left(deadline: float) -> float:
    return max(0.01, deadline - time.monotonic())


def _text_of(path: str, opened: Callable[[str], BufferedReader]) -> str | None:
    """The text of a file, at most MAX_FILE_BYTES of it; None if it is binary or unreadable."""
    try:
        with opened(path) as file:
            content = file.read(MAX_FILE_BYTES)
    except OSError:
        return None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace").replace("\r\n", "\n")
    if b"\0" in content:
        return None
    return content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _matching(path: str, text: str, hit: Callable[[str], bool], context: int) -> list[MatchLine]:
    rows = text.split("\n")
    if rows and not rows[-1]:
        rows.pop()
    hits = {number for number, row in enumerate(rows) if hit(row)}
    around = {n for hit in hits for n in range(hit - context, hit + context + 1) if 0 <= n < len(rows)}
    return [MatchLine(path, number + 1, number in hits, rows[number]) for number in sorted(around)]
