"""The Entry tool: keyed notes that stay visible through compactions and restarts."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ra.core.facts import EntryRemoved, EntrySet
from ra.core.text import clean
from ra.tools.tool import Mistake, Output, Say, Tool, declare, text_output
from ra.tools.workspace import Workspace


class EntryArgs(msgspec.Struct):
    action: Literal["set", "remove", "list"]
    id: Annotated[str, Meta(max_length=200)] = ""
    content: Annotated[str, Meta(description="For set; replaces what the id held")] = ""


def tool(workspace: Workspace) -> Tool | None:
    """The tool returns changes as facts; the loop records them."""
    session = workspace.session
    if session is None:
        return None

    async def run(args: EntryArgs, say: Say) -> Output:
        live = {entry.id: entry for entry in session.entries()}
        if args.action == "list":
            return text_output("\n".join(f"{id}: {entry.content}" for id, entry in live.items()) or "No entries.")
        if not args.id.strip():
            raise Mistake(f"{args.action} needs an id.")
        if args.action == "remove":
            if args.id not in live:
                raise Mistake(f"There is no entry {args.id!r}; entries: {', '.join(live) or 'none'}.")
            return text_output(f"Removed {args.id}.", facts=(EntryRemoved(args.id),))
        if not args.content.strip():
            raise Mistake("set needs content.")
        return text_output(f"Kept {args.id}.", facts=(EntrySet(args.id, clean(args.content)),))

    return declare(
        EntryArgs,
        run,
        name="Entry",
        description="Keep a note that survives when old conversation is cut: decisions, plans.",
        free=True,
    )
