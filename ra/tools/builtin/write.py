"""The Write tool: creates or replaces a file atomically."""

import asyncio
import os

import msgspec

from ra.tools.files import read_whole, replace_file
from ra.tools.policy.paths import shown
from ra.tools.tool import Output, Say, Tool, declare, text_output
from ra.tools.workspace import Workspace


class WriteArgs(msgspec.Struct):
    path: str
    content: str


def tool(workspace: Workspace) -> Tool:
    async def run(args: WriteArgs, say: Say) -> Output:
        path = workspace.resolve(args.path, "Write")
        return await asyncio.to_thread(_write, path, args, workspace)

    return declare(WriteArgs, run, name="Write", description="Create a file or replace all of it.")


def _write(path: str, args: WriteArgs, workspace: Workspace) -> Output:
    before = read_whole(path) if os.path.lexists(path) else None
    content = args.content.encode("utf-8", "replace")
    replace_file(path, content)
    workspace.undo.note(path, before, content)
    verb = "Created" if before is None else "Replaced"
    words = f"{verb} {shown(args.path)} ({len(args.content.splitlines())} lines)."
    from ra.tools.difference import difference  # start-up time: not before the first request

    return text_output(words, change=difference(workspace.project.inside(path) or path, before, content))
