"""Builds the text of a permission prompt: exactly what would run."""

import os

import msgspec

from ra.core.events import FileChange
from ra.core.messages import ToolCall
from ra.tools.difference import as_text, difference
from ra.tools.edition import EditArgs, edition
from ra.tools.files import read_whole
from ra.tools.policy.paths import Project


def preview(call: ToolCall, change: FileChange | None, *, cwd: str, outside: bool) -> str:
    args = call.args
    if change is not None:
        return as_text(change)
    match call.name:
        case "Bash":
            where = "outside the sandbox" if outside else "in the sandbox"
            return f"{args.get('command', '')}\n({where}, in {cwd})"
        case "WebFetch":
            return str(args.get("url", ""))
        case name if name.startswith("mcp__"):
            return f"{name}\n{msgspec.json.encode(args).decode()}"
        case _ if set(args) == {"path"}:
            return str(args["path"])
        case _:
            return msgspec.json.encode(args).decode()


def planned_change(call: ToolCall, place: Project) -> FileChange | None:
    """The difference that a call would make. Raises Mistake for an edit that does not fit its file."""
    args = call.args
    match call.name:
        case "Write":
            path = place.resolve(args["path"], "Write")
            before = read_whole(path) if os.path.isfile(path) else None
            return difference(
                place.inside(path) or path, before, str(args.get("content", "")).encode("utf-8", "replace")
            )
        case "Edit":
            path = place.resolve(args["path"], "Edit")
            edited = edition(path, msgspec.convert(args, EditArgs))
            return difference(place.inside(path) or path, edited.before, edited.after)
        case _:
            return None
