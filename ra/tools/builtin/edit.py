"""The Edit tool: replaces exact text in a file."""

import asyncio

from ra.tools.edition import SHOWN_LINES, EditArgs, edition
from ra.tools.files import replace_file
from ra.tools.policy.paths import shown
from ra.tools.tool import Output, Say, Tool, declare, text_output
from ra.tools.workspace import Workspace


def tool(workspace: Workspace) -> Tool:
    async def run(args: EditArgs, say: Say) -> Output:
        path = workspace.resolve(args.path, "Edit")
        return await asyncio.to_thread(_edit, path, args, workspace)

    return declare(EditArgs, run, name="Edit", description="Replace exact text in a file.")


def _edit(path: str, args: EditArgs, workspace: Workspace) -> Output:
    edited = edition(path, args)
    replace_file(path, edited.after)
    workspace.undo.note(path, edited.before, edited.after)
    count, lines = edited.replacements, edited.lines[:SHOWN_LINES]
    places = ", ".join(map(str, lines)) + (" …" if count > len(lines) else "")
    words = f"Edited {shown(args.path)}: {count} replacement{'s' * (count != 1)} (line {places})."
    from ra.tools.difference import difference  # start-up time: not before the first request

    change = difference(workspace.project.inside(path) or path, edited.before, edited.after)
    return text_output(words, change=change)
