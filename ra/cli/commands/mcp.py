"""`ra mcp`: which servers are there and what do they bring, and how does another program use ra as one?"""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from ra.app import App
from ra.app.mcp import servers
from ra.cli import oneshot, table
from ra.cli.commands import Call
from ra.cli.safe import one_line
from ra.tools.mcp.listing import Listing
from ra.tools.mcp.offered import LAZY_ABOVE, specs
from ra.tools.settings import McpServerSettings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Model Context Protocol: list servers and tools, or serve ra itself.",
)


@app.command("list")
def list_servers(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="SERVER…", help="only these, with their tools")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> int:
    """Start every server, ask what it offers, and keep that for later runs. Exit 1 if one is not there."""
    call: Call = ctx.obj
    everything = call.resolved.config.agent.mcp_servers
    chosen = tuple(server for server in everything if not names or server.name in names)
    if names and (unknown := set(names) - {server.name for server in everything}):
        raise typer.BadParameter(f"no server is named {min(unknown)!r}; there is {_all(everything)}")
    waiting = [item for item in call.resolved.untrusted if item.kind == "MCP server"]
    if waiting:
        call.streams.err(f"ra: {len(waiting)} of this project's servers are not trusted; `ra trust` shows them.\n")
    if not chosen:
        call.streams.err("No MCP servers; add some under agent.mcpServers in your configuration (docs/tools.md).\n")
        return 0
    listings = asyncio.run(_asked(call, chosen))
    rows = [(server, listings.get(server.name)) for server in chosen]
    if as_json:
        call.streams.out(msgspec.json.encode([_told(server, listing) for server, listing in rows]).decode() + "\n")
    else:
        heads = ["server", "state", "tools", "tokens", "told as", "resources", "prompts", "reached by"]
        table.show(call.streams, heads, [_row(server, listing) for server, listing in rows], right=(2, 3, 5, 6))
        _show_tools(call, rows, all_words=bool(names))
    return 1 if any(listing is not None and listing.failed for _, listing in rows) else 0


@app.command()
def serve(ctx: typer.Context) -> None:
    """Be an MCP server on stdin and stdout: ask, recall and sessions, for the project in this folder.

    Nothing is asked: what would ask is refused. Flags of a run stand before the command: ra --write mcp serve.
    """
    call: Call = ctx.obj
    options = oneshot.options(call.args, None)
    made = App(call.trusted(None), options, env=call.env, warn=lambda text: call.streams.err(f"ra: {text}\n"))
    from ra.server.mcp_stdio import serve as run  # the SDK: 0.9 s, and an error above need not wait for it

    run(made)


async def _asked(call: Call, chosen: Sequence[McpServerSettings]) -> dict[str, Listing]:
    found = servers(call.resolved, call.env, lambda text: call.streams.err(f"ra: {text}\n"), only=chosen)
    try:
        return await asyncio.to_thread(found.listings, fresh=True)
    finally:
        await found.close()


def _all(known: tuple[McpServerSettings, ...]) -> str:
    return ", ".join(server.name for server in known) or "none"


def _row(server: McpServerSettings, listing: Listing | None) -> list[str]:
    reached = server.url or " ".join([server.command or "", *server.args])
    if listing is None:
        return [server.name, "off", "", "", "", "", "", reached]
    if listing.failed:
        return [server.name, f"failed: {listing.failed}", "", "", "", "", "", reached]
    told = "one tool" if listing.tokens > LAZY_ABOVE else "tools"
    counts = [str(len(listing.resources)), str(len(listing.prompts))]
    return [server.name, "ok", str(len(listing.tools)), f"{listing.tokens:,}", told, *counts, reached]


def _told(server: McpServerSettings, listing: Listing | None) -> dict[str, object]:
    told: dict[str, object] = {"name": server.name, "state": "off" if listing is None else "ok"}
    if listing is None:
        return told
    if listing.failed:
        return told | {"state": "failed", "error": listing.failed}
    return told | {
        "tokens": listing.tokens,
        "lazy": listing.tokens > LAZY_ABOVE,
        "tools": [{"name": spec.name, "description": spec.description} for spec in specs(server.name, listing)],
        "resources": [thing.uri for thing in listing.resources],
        "prompts": [thing.uri for thing in listing.prompts],
    }


def _show_tools(call: Call, rows: list[tuple[McpServerSettings, Listing | None]], *, all_words: bool) -> None:
    for server, listing in rows:
        if listing is None or listing.failed:
            continue
        call.streams.out("\n")
        for spec in specs(server.name, listing):
            call.streams.out(f"{spec.name}  {one_line(spec.description, 400 if all_words else 80)}\n")
        for thing in (*listing.resources, *listing.prompts) if all_words else ():
            call.streams.out(f"@{one_line(f'{server.name}:{thing.uri}  {thing.words}', 400)}\n")
