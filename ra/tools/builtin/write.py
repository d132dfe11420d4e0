"""How does a file get new content? Write: whole and atomic."""

import asyncio
import os

import msgspec

from ra.tools.files import read_whole, replace_file
from ra.tools.kit import Kit
from ra.tools.paths import shown
from ra.tools.tool import Say, Tool, declare
from ra.tools.undo import Undo


class WriteArgs(msgspec.Struct):
    path: str
    content: str


def tool(kit: Kit) -> Tool:
    async def run(args: WriteArgs, say: Say) -> str:
        path = kit.place.resolve(args.path, "Write")
        return await asyncio.to_thread(_write, path, args, kit.undo)

    return declare(WriteArgs, run, name="Write", description="Create a file or replace all of it.")


def _write(path: str, args: WriteArgs, undo: Undo) -> str:
    before = read_whole(path) if os.path.lexists(path) else None
    data = args.content.encode("utf-8", "replace")
    replace_file(path, data)
    undo.note(path, before, data)
    return f"{'Created' if before is None else 'Replaced'} {shown(args.path)} ({len(args.content.splitlines())} lines)."
