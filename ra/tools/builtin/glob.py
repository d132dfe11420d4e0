"""The Glob tool: finds files by name, newest first, except those that git ignores."""

import asyncio
import heapq
import os
import subprocess
import time
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.tools.policy.globs import glob_regex
from ra.tools.policy.paths import shown
from ra.tools.search import names_from_worker
from ra.tools.tool import Mistake, Say, Tool, declare
from ra.tools.walk import RIPGREP_RULES, ripgrep
from ra.tools.workspace import Workspace

MAX_NAMES = 500


class GlobArgs(msgspec.Struct):
    pattern: Annotated[str, Meta(description="Such as src/**/*.{ts,tsx}")]
    path: Annotated[str, Meta(description="Folder to look in")] = "."


def tool(workspace: Workspace) -> Tool:
    async def run(args: GlobArgs, say: Say) -> str:
        start = workspace.resolve(args.path, "Glob")
        if not os.path.isdir(start):
            raise Mistake(f"{shown(args.path)} is not a folder.")
        prefix = "" if args.path in (".", "./", "") else args.path
        return await asyncio.to_thread(
            _glob, start, args.pattern, prefix, workspace.timeout_s, ripgrep(workspace.project.root)
        )

    return declare(
        GlobArgs,
        run,
        name="Glob",
        description="Find files by name, newest first; git-ignored ones are left out.",
        reads_only=True,
        own_timeout=True,
    )


def _glob(start: str, pattern: str, prefix: str, timeout_s: float, rg: str | None) -> str:
    deadline = time.monotonic() + timeout_s
    if os.path.isabs(pattern):
        real = os.path.relpath(pattern, start)
        if real.startswith(".."):
            raise Mistake("The pattern lies outside the folder; give the folder as path.")
        pattern = real
    regex = glob_regex(pattern.removeprefix("./"), paths=True)
    matches = [name for name in _names(start, deadline, rg) if regex.fullmatch(name)]
    late = time.monotonic() > deadline
    newest = heapq.nsmallest(MAX_NAMES, ((-_mtime(f"{start}/{name}"), name) for name in matches))
    lines = [shown(os.path.join(prefix, name)) for _, name in newest]
    if len(matches) > MAX_NAMES:
        lines.append(f"[{len(matches) - MAX_NAMES} more; narrow the pattern]")
    if late:
        lines.append(f"[stopped after {timeout_s:g} s; there may be more]")
    if not lines:
        hint = f" To look in subfolders as well: **/{pattern}." if "/" not in pattern and "**" not in pattern else ""
        return f"No files match.{hint}"
    return "\n".join(lines)


def _names(start: str, deadline: float, rg: str | None) -> Iterable[str]:
    if rg is None:
        return names_from_worker(start, deadline)
    command = [rg, "--files", "--null", *RIPGREP_RULES]
    try:
        process = subprocess.run(
            command, cwd=start, stdin=subprocess.DEVNULL, capture_output=True, timeout=deadline - time.monotonic()
        )
    except subprocess.TimeoutExpired as late:
        return os.fsdecode(late.stdout or b"").split("\0")[:-1]
    return os.fsdecode(process.stdout).split("\0")[:-1]


def _mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
