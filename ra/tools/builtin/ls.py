"""The LS tool: lists a folder. Folders end in a slash, symlinks show their target."""

import asyncio
import heapq
import itertools
import os

import msgspec

from ra.system.files import stable_path
from ra.tools.files import why_not
from ra.tools.policy.paths import shown
from ra.tools.tool import Mistake, Say, Tool, declare
from ra.tools.workspace import Workspace

MAX_NAMES = 1000


class LSArgs(msgspec.Struct):
    path: str = "."


def tool(workspace: Workspace) -> Tool:
    async def run(args: LSArgs, say: Say) -> str:
        return await asyncio.to_thread(_list, workspace.resolve(args.path, "LS"))

    return declare(LSArgs, run, name="LS", description="List a folder.", reads_only=True)


def _list(path: str) -> str:
    try:
        with stable_path(path) as folder, os.scandir(folder) as entries:
            count = itertools.count()
            counted = (entry for entry, _ in zip(entries, count, strict=False))  # lazily: there may be millions
            first = heapq.nsmallest(MAX_NAMES, counted, key=lambda entry: entry.name)
            left_out = next(count) - len(first)
            lines = [_line(entry) for entry in first]
    except OSError as error:
        raise Mistake(why_not(path, error)) from error
    if left_out:
        lines.append(f"[{left_out} more; use Glob]")
    return "\n".join(lines) or "(The folder is empty.)"


def _line(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        try:
            return f"{shown(entry.name)} -> {shown(os.readlink(entry.path))}"
        except OSError:
            return shown(entry.name)
    return shown(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")
