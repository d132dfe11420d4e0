"""What exactly would run? The text that a question shows before a call is allowed."""

import difflib
import os

import msgspec

from ra.core.messages import ToolCall
from ra.tools.paths import Place

MAX_LINES = 200


def preview(call: ToolCall, place: Place, *, cwd: str, outside: bool) -> str:
    args = call.args
    match call.name:
        case "Bash":
            where = "outside the sandbox" if outside else "in the sandbox"
            return f"{args.get('command', '')}\n({where}, in {cwd})"
        case "Write":
            return f"{args['path']}\n{_diff(_held(place.resolve(args['path'], 'Write')), args.get('content', ''))}"
        case "Edit":
            edits = args.get("edits") or [args]
            return "\n".join([args["path"], *(_diff(e.get("old_string", ""), e.get("new_string", "")) for e in edits)])
        case "WebFetch":
            return str(args.get("url", ""))
        case name if name.startswith("mcp__"):
            return f"{name}\n{msgspec.json.encode(args).decode()}"
        case _ if set(args) == {"path"}:
            return str(args["path"])
        case _:
            return msgspec.json.encode(args).decode()


def _held(path: str) -> str:
    if not os.path.isfile(path) or os.path.getsize(path) > 1_000_000:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _diff(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
    more = [f"[{len(lines) - MAX_LINES} more lines]"] if len(lines) > MAX_LINES else []
    return "\n".join(lines[:MAX_LINES] + more)
