"""What is in a folder? LS: names, folders with a slash, links with where they lead."""

import asyncio
import os

import msgspec

from ra.tools.files import standing_in, why_not
from ra.tools.kit import Kit
from ra.tools.paths import shown
from ra.tools.tool import Mistake, Say, Tool, declare

MAX_NAMES = 1000


class LSArgs(msgspec.Struct):
    path: str = "."


def tool(kit: Kit) -> Tool:
    async def run(args: LSArgs, say: Say) -> str:
        return await asyncio.to_thread(_list, kit.place.resolve(args.path, "LS"))

    return declare(LSArgs, run, name="LS", description="List a folder.", reads_only=True)


def _list(path: str) -> str:
    try:
        with standing_in(path) as folder, os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
            lines = [_line(entry) for entry in found[:MAX_NAMES]]
    except OSError as error:
        raise Mistake(why_not(path, error)) from error
    if len(found) > MAX_NAMES:
        lines.append(f"[{len(found) - MAX_NAMES} more; use Glob]")
    return "\n".join(lines) or "(The folder is empty.)"


def _line(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        try:
            return f"{shown(entry.name)} -> {shown(os.readlink(entry.path))}"
        except OSError:
            return shown(entry.name)
    return shown(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")
