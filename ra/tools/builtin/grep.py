"""Which lines hold such text? Grep: with ripgrep when it is there, else by our own search, with the same results."""

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from ra.tools.files import open_regular
from ra.tools.globs import glob_regex
from ra.tools.kit import Kit
from ra.tools.paths import shown
from ra.tools.process import anything_runs
from ra.tools.tool import Mistake, Say, Tool, declare
from ra.tools.walk import RIPGREP_RULES, ripgrep, walk

MAX_LINES = 300
MAX_FILES = 500
MAX_LINE_CHARACTERS = 500
MAX_FOUND = 100_000
MAX_FILE_BYTES = 50_000_000
READ_BYTES = 50_000_000


class GrepArgs(msgspec.Struct):
    pattern: Annotated[str, Meta(description="Regular expression")]
    path: Annotated[str, Meta(description="File or folder")] = "."
    glob: Annotated[str, Meta(description="Only files with such a name: *.py")] = ""
    ignore_case: bool = False
    context: Annotated[int, Meta(description="Lines around each match", ge=0, le=20)] = 0
    files_only: Annotated[bool, Meta(description="Names instead of lines")] = False


class Line(msgspec.Struct, frozen=True, order=True):
    """A line of the answer, `hit` or around one. Ordered by file and number."""

    path: str
    number: int
    hit: bool
    text: str


def tool(kit: Kit) -> Tool:
    async def run(args: GrepArgs, say: Say) -> str:
        target = kit.place.resolve(args.path, "Grep")
        if not os.path.exists(target):
            raise Mistake(f"{shown(args.path)} does not exist.")
        until = time.monotonic() + kit.timeout_s
        return await asyncio.to_thread(_grep, args, target, kit.readable, until, kit.place.root)

    return declare(
        GrepArgs, run, name="Grep", description="Search file contents; git-ignored files are left out.", reads_only=True
    )


def _grep(args: GrepArgs, target: str, readable: Callable[[str], bool], deadline: float, root: str) -> str:
    try:
        re.compile(args.pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Mistake(
            f"The pattern is no regular expression: {error}. Escape signs that are meant as they are."
        ) from error
    start, only = (target, "") if os.path.isdir(target) else os.path.split(target)
    # ripgrep finds a folder and opens it by its name: a command that runs meanwhile could put a link there.
    rg = None if anything_runs() else ripgrep(root)
    lines = search_with_ripgrep(args, start, only, deadline, rg) if rg else None
    if lines is None:  # no ripgrep, or an expression that it does not know (look-around, back-references)
        lines = search(args, start, only, deadline)
    prefix = "" if args.path in (".", "./", "") else (args.path if not only else os.path.dirname(args.path))
    may = {path: readable(os.path.join(start, path)) for path in {line.path for line in lines}} if not only else {}
    shown_lines = [line for line in lines if may.get(line.path, True)]
    hidden = sorted(path for path, allowed in may.items() if not allowed)
    return _answer(args, sorted(shown_lines), prefix, hidden, late=time.monotonic() > deadline)


def _answer(args: GrepArgs, lines: list[Line], prefix: str, hidden: list[str], *, late: bool) -> str:
    out: list[str] = []
    if args.files_only:
        names = list(dict.fromkeys(line.path for line in lines))
        out = [shown(os.path.join(prefix, name)) for name in names[:MAX_FILES]]
        if len(names) > MAX_FILES:
            out.append(f"[{len(names) - MAX_FILES} more files; narrow the search]")
    else:
        last = None
        for line in lines[:MAX_LINES]:
            if args.context and last and (line.path, line.number) != (last.path, last.number + 1):
                out.append("--")
            mark = ":" if line.hit else "-"
            out.append(f"{shown(os.path.join(prefix, line.path))}{mark}{line.number}{mark}{_cut(line.text)}")
            last = line
        if len(lines) > MAX_LINES:
            out.append(f"[{len(lines) - MAX_LINES} more lines; narrow the search, or files_only]")
    if hidden:
        out.append(f"[matches in {', '.join(map(shown, hidden[:5]))} not shown: reading there needs the user's word]")
    if late:
        out.append("[stopped at the time limit; there may be more]")
    return "\n".join(out) or "No matches."


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]} [… {len(text)} characters]"


# Our own search


def search(args: GrepArgs, start: str, only: str, deadline: float) -> list[Line]:
    # Like re, but it can be stopped: (a+)+$ over one long line would hold up everything for ever.
    import regex

    paths: Iterable[str] = [only] if only else filter(_name_filter(args.glob), walk(start, deadline=deadline))
    flags = regex.IGNORECASE if args.ignore_case else 0
    line = regex.compile(args.pattern, flags)
    # One search over the whole text rules most files out. Look-around could see the next line there, so not then.
    whole = None if re.search(r"\(\?|\\[AZzB]", args.pattern) else regex.compile(args.pattern, flags | regex.MULTILINE)
    opened = open_regular if anything_runs() else _open_fast
    lines: list[Line] = []
    for path in paths:
        if time.monotonic() > deadline or len(lines) > MAX_FOUND:
            break
        text = _text_of(os.path.join(start, path), opened)
        try:
            if text is None or (whole and not whole.search(text, timeout=_left(deadline), concurrent=True)):
                continue
            lines += _matching(path, text, lambda row: bool(line.search(row, timeout=_left(deadline))), args.context)
        except TimeoutError as error:
            raise Mistake(f"The pattern takes too long in {shown(path)}; write a simpler one.") from error
    return lines


def _left(deadline: float) -> float:
    return max(0.01, deadline - time.monotonic())


def _name_filter(glob: str) -> Callable[[str], bool]:
    if not glob:
        return lambda path: True
    negated, pattern = glob.startswith("!"), glob.removeprefix("!").removeprefix("./")
    # As in ripgrep and gitignore: a name alone is looked for at every depth.
    regex = glob_regex(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}", paths=True)
    return lambda path: bool(regex.fullmatch(path)) != negated


def _open_fast(path: str) -> BinaryIO:
    """Without a look at each folder on the way: for when nobody can put a link there. Raises OSError."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def _text_of(path: str, opened: Callable[[str], BinaryIO]) -> str | None:
    """The text of a file, None for binary, huge or unreadable ones."""
    try:
        with opened(path) as file:
            data = file.read(MAX_FILE_BYTES)
    except (Mistake, OSError):
        return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").replace("\r\n", "\n")
    if b"\0" in data:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _matching(path: str, text: str, hit: Callable[[str], bool], context: int) -> list[Line]:
    rows = text.split("\n")
    if rows and not rows[-1]:
        rows.pop()
    hits = {number for number, row in enumerate(rows) if hit(row)}
    around = {n for hit in hits for n in range(hit - context, hit + context + 1) if 0 <= n < len(rows)}
    return [Line(path, number + 1, number in hits, rows[number]) for number in sorted(around)]


# ripgrep


def search_with_ripgrep(args: GrepArgs, start: str, only: str, deadline: float, rg: str = "rg") -> list[Line] | None:
    """None when ripgrep does not know the expression."""
    command = [rg, "--json", "--crlf", *RIPGREP_RULES, f"--context={args.context}", "--max-columns=0"]
    command += ["--max-count=1"] if args.files_only else []
    command += ["--ignore-case"] if args.ignore_case else ["--case-sensitive"]
    if args.glob and not set(args.glob) & set("/!") and not only:
        # Not --glob, which would bring back what git ignores; and only to spare reading: names are filtered below.
        command += ["--type-add", f"wanted:{args.glob}", "--type", "wanted"]
    command += ["--no-ignore"] if only else []
    command += ["--regexp", args.pattern, "--", f"./{only}" if only else "./"]
    process = subprocess.Popen(
        command, cwd=start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    lines: list[Line] = []
    read = 0
    try:
        for row in process.stdout:
            read += len(row)
            if read > READ_BYTES or len(lines) > MAX_FOUND or time.monotonic() > deadline:
                process.kill()
                break
            if row.startswith((b'{"type":"match"', b'{"type":"context"')):
                lines.append(_line_of(msgspec.json.decode(row, type=_Row)))
    finally:
        process.stdout.close()
        code = process.wait()
    wanted = _name_filter("" if only else args.glob)
    return None if code == 2 and not lines else [line for line in lines if wanted(line.path)]


class _Bytes(msgspec.Struct):
    text: str | None = None
    bytes: str | None = None

    def string(self) -> str:
        if self.text is not None:
            return self.text
        import base64  # for what is not UTF-8

        return os.fsdecode(base64.b64decode(self.bytes or ""))


class _Found(msgspec.Struct):
    path: _Bytes
    lines: _Bytes
    line_number: int


class _Row(msgspec.Struct):
    type: str
    data: _Found


def _line_of(row: _Row) -> Line:
    path = row.data.path.string().removeprefix("./")
    text = row.data.lines.string().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Line(path, row.data.line_number, row.type == "match", text.removesuffix("\n").removesuffix("\r"))
