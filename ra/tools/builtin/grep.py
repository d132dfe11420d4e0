"""The Grep tool: searches file contents with ripgrep, or with our own search and the same results."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import msgspec

from ra.system.process import anything_runs
from ra.tools.policy.paths import shown
from ra.tools.search import (
    MAX_FOUND,
    MAX_PATTERN_CHARACTERS,
    GrepArgs,
    MatchLine,
    cut_line,
    name_filter,
    search_in_worker,
)
from ra.tools.tool import Mistake, Say, Tool, declare
from ra.tools.walk import RIPGREP_RULES, ripgrep
from ra.tools.workspace import Workspace

MAX_LINES = 300
MAX_FILES = 500
READ_BYTES = 50_000_000
RIPGREP_BYTES = 4 << 30
"""Address space for ripgrep, which keeps whole lines in memory, however long they are."""


def tool(workspace: Workspace) -> Tool:
    async def run(args: GrepArgs, say: Say) -> str:
        target = workspace.resolve(args.path, "Grep")
        if not os.path.exists(target):
            raise Mistake(f"{shown(args.path)} does not exist.")
        if not os.path.isdir(target) and not os.path.isfile(target):  # a pipe or a device could block or never end
            raise Mistake(f"{shown(args.path)} is neither a folder nor a regular file.")
        until = time.monotonic() + workspace.timeout_s
        return await asyncio.to_thread(_grep, args, target, workspace.readable, until, workspace.project.root)

    return declare(
        GrepArgs, run, name="Grep", description="Search file contents; git-ignored files are left out.", reads_only=True
    )


def _grep(args: GrepArgs, target: str, readable: Callable[[str], bool], deadline: float, root: str) -> str:
    if len(args.pattern) > MAX_PATTERN_CHARACTERS:
        raise Mistake(f"The pattern has {len(args.pattern)} characters; {MAX_PATTERN_CHARACTERS} is the most.")
    start, only = (target, "") if os.path.isdir(target) else os.path.split(target)
    # ripgrep lists a folder and then opens it by name: a command that runs meanwhile could place a symlink there.
    careful = anything_runs()
    rg = None if careful or "\0" in args.pattern + args.glob else ripgrep(root)
    try:
        lines = search_with_ripgrep(args, start, only, deadline, rg) if rg else None
        if lines is None:  # no ripgrep, or an expression that it does not support (look-around, back-references)
            lines = search_in_worker(args, start, only, deadline, careful=careful)
    except UnicodeEncodeError as error:
        raise Mistake("The pattern holds half a character (a lone surrogate).") from error
    prefix = "" if args.path in (".", "./", "") else (args.path if not only else os.path.dirname(args.path))
    may = {path: readable(os.path.join(start, path)) for path in {line.path for line in lines}} if not only else {}
    shown_lines = [line for line in lines if may.get(line.path, True)]
    hidden = sorted(path for path, allowed in may.items() if not allowed)
    return _answer(args, sorted(shown_lines), prefix, hidden, late=time.monotonic() > deadline)


def _answer(args: GrepArgs, lines: list[MatchLine], prefix: str, hidden: list[str], *, late: bool) -> str:
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
            out.append(f"{shown(os.path.join(prefix, line.path))}{mark}{line.number}{mark}{cut_line(line.text)}")
            last = line
        if len(lines) > MAX_LINES:
            out.append(f"[{len(lines) - MAX_LINES} more lines; narrow the search, or files_only]")
    if hidden:
        out.append(
            f"[matches in {', '.join(map(shown, hidden[:5]))} not shown: reading there needs the user's permission]"
        )
    if late:
        out.append("[stopped at the time limit; there may be more]")
    return "\n".join(out) or "No matches."


# ripgrep


def search_with_ripgrep(
    args: GrepArgs, start: str, only: str, deadline: float, rg: str = "rg"
) -> list[MatchLine] | None:
    """The matching lines; None if ripgrep does not support the expression. Raises Mistake if it runs out of memory."""
    command = [rg, "--json", "--crlf", *RIPGREP_RULES, f"--context={args.context}", "--max-columns=0"]
    command += ["--max-count=1"] if args.files_only else []
    command += ["--ignore-case"] if args.ignore_case else ["--case-sensitive"]
    if args.glob and not set(args.glob) & set("/!") and not only:
        # Not --glob, which would include git-ignored files. This only saves reading: names are filtered below.
        command += ["--type-add", f"wanted:{args.glob}", "--type", "wanted"]
    command += ["--no-ignore"] if only else []
    command += ["--regexp", args.pattern, "--", f"./{only}" if only else "./"]
    process = subprocess.Popen(
        command, cwd=start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    _bound_memory(process.pid)
    # ripgrep may search for long without output, while readline blocks; then the timer ends it.
    clock = threading.Timer(max(0.1, deadline - time.monotonic()), process.kill)
    clock.start()
    lines: list[MatchLine] = []
    bytes_left = READ_BYTES
    try:
        while row := process.stdout.readline(bytes_left):
            bytes_left -= len(row)
            if bytes_left <= 0 or len(lines) > MAX_FOUND:
                process.kill()
                break
            if row.startswith((b'{"type":"match"', b'{"type":"context"')):
                lines.append(_line_of(msgspec.json.decode(row, type=_Row)))
    finally:
        clock.cancel()
        process.stdout.close()
        code = process.wait()
    if code not in (0, 1, 2, -signal.SIGKILL, -signal.SIGPIPE) and not lines:
        raise Mistake("The search needs more memory than it may have; search fewer or smaller files.")
    name_matches = name_filter("" if only else args.glob)
    return None if code == 2 and not lines else [line for line in lines if name_matches(line.path)]


def _bound_memory(pid: int) -> None:
    import resource

    if hasattr(resource, "prlimit"):  # Linux
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, (RIPGREP_BYTES, RIPGREP_BYTES))


class _Bytes(msgspec.Struct):
    text: str | None = None
    bytes: str | None = None

    def string(self) -> str:
        if self.text is not None:
            return self.text
        import base64  # start-up time: only for text that is not UTF-8

        return os.fsdecode(base64.b64decode(self.bytes or ""))


class _Found(msgspec.Struct):
    path: _Bytes
    lines: _Bytes
    line_number: int


class _Row(msgspec.Struct):
    type: str
    data: _Found


def _line_of(row: _Row) -> MatchLine:
    path = row.data.path.string().removeprefix("./")
    text = row.data.lines.string().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return MatchLine(path, row.data.line_number, row.type == "match", text.removesuffix("\n").removesuffix("\r"))
