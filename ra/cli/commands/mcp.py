"""`ra mcp`: list MCP servers with their tools, or serve ra itself as one."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from ra.app import App
from ra.cli import configuration, table
from ra.cli.commands import CommandContext
from ra.config.mcp import mcp_servers
from ra.core.errors import UserError
from ra.core.text import visible_line
from ra.session.recipe import Notices
from ra.tools.mcp.listing import Listing, Unreachable
from ra.tools.mcp.offered import LAZY_ABOVE, specs
from ra.tools.settings import McpServerSettings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List MCP servers (Model Context Protocol) and their tools, or run ra as one.",
)


@app.command("list")
def list_servers(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SERVER", help="only these servers, with their tools")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> int:
    """Start every server and list what it offers. Later runs use the list. Exits with 1 if a server does not answer."""
    call: CommandContext = ctx.obj
    everything = call.resolved.config.agent.mcp_servers
    servers = tuple(server for server in everything if not names or server.name in names)
    if names and (unknown := set(names) - {server.name for server in everything}):
        raise typer.BadParameter(f"no server is named {min(unknown)!r}; there is {_all(everything)}")
    waiting = [item for item in (*call.resolved.untrusted, *call.resolved.waiting) if item.kind == "MCP server"]
    if waiting:
        call.streams.err(f"ra: {len(waiting)} of this project's servers are not trusted; `ra trust` shows them.\n")
    if not servers:
        call.streams.err("No MCP servers; add some under agent.mcpServers in your configuration (docs/tools.md).\n")
        return 0
    listings = asyncio.run(_asked(call, servers))
    rows = [(server, listings.get(server.name)) for server in servers]
    if as_json:
        call.streams.out(msgspec.json.encode([_told(server, listing) for server, listing in rows]).decode() + "\n")
    else:
        heads = ["server", "state", "tools", "tokens", "shown as", "resources", "prompts", "reached by"]
        table.show(call.streams, heads, [_row(server, listing) for server, listing in rows], right=(2, 3, 5, 6))
        _show_tools(call, rows, all_words=bool(names))
    return 1 if any(listing is not None and listing.failed for _, listing in rows) else 0


@app.command()
def login(
    ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="SERVER", help="a server with a url")]
) -> None:
    """Sign in to a remote server with your browser. The tokens are kept in a file that only you can read."""
    call: CommandContext = ctx.obj
    server = _remote(call, name)
    try:
        listing = asyncio.run(mcp_servers(call.resolved, call.env, Notices(call.warn), [server]).login(server))
    except Unreachable as error:
        raise UserError(f"{name}: {error}.") from error
    call.streams.err(f"Signed in to {name}: {len(listing.tools)} tools.\n")


@app.command()
def logout(
    ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="SERVER", help="the name of the server")]
) -> None:
    """Sign out of a remote server: delete its tokens."""
    call: CommandContext = ctx.obj
    server = _remote(call, name)
    tokens = mcp_servers(call.resolved, call.env, Notices(call.warn), [server]).tokens(server)
    had_tokens = tokens is not None and tokens.forget()
    call.streams.err(f"The tokens of {name} are forgotten.\n" if had_tokens else f"There are no tokens of {name}.\n")


def _remote(call: CommandContext, name: str) -> McpServerSettings:
    servers = call.resolved.config.agent.mcp_servers
    server = next((server for server in servers if server.name == name), None)
    if server is None:
        raise UserError(f"No server is named {name!r}; there is {_all(servers)}.")
    if not server.url:
        raise UserError(f"{name} is a program on this machine; there is nothing to sign in to.")
    return server


@app.command()
def serve(ctx: typer.Context) -> None:
    """Run as an MCP server for this project, on stdin and stdout, with the tools ask, recall and sessions.

    Tool calls that would ask are refused. Put the flags of a run before the command: ra --write mcp serve.
    """
    call: CommandContext = ctx.obj
    options = configuration.options(call.args, None)
    opener = App(call.trusted(None), options, env=call.env, warn=call.warn)
    opener.check()
    from ra.server.mcp_stdio import serve as run  # start-up time: the SDK takes 0.9 s

    run(opener)


async def _asked(call: CommandContext, settings: Sequence[McpServerSettings]) -> dict[str, Listing]:
    servers = mcp_servers(call.resolved, call.env, Notices(call.warn), settings)
    try:
        return await asyncio.to_thread(servers.listings, fresh=True)
    finally:
        await servers.close()


def _all(servers: tuple[McpServerSettings, ...]) -> str:
    return ", ".join(server.name for server in servers) or "none"


def _row(server: McpServerSettings, listing: Listing | None) -> list[str]:
    reached = server.url or " ".join([server.command or "", *server.args])
    if listing is None:
        return [server.name, "off", "", "", "", "", "", reached]
    if listing.failed:
        return [server.name, f"failed: {listing.failed}", "", "", "", "", "", reached]
    offered_as = "one tool" if listing.tokens > LAZY_ABOVE else "tools"
    counts = [str(len(listing.resources)), str(len(listing.prompts))]
    return [server.name, "ok", str(len(listing.tools)), f"{listing.tokens:,}", offered_as, *counts, reached]


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


def _show_tools(call: CommandContext, rows: list[tuple[McpServerSettings, Listing | None]], *, all_words: bool) -> None:
    for server, listing in rows:
        if listing is None or listing.failed:
            continue
        call.streams.out("\n")
        for spec in specs(server.name, listing):
            call.streams.out(f"{spec.name}  {visible_line(spec.description, 400 if all_words else 80)}\n")
        for thing in (*listing.resources, *listing.prompts) if all_words else ():
            call.streams.out(f"@{visible_line(f'{server.name}:{thing.uri}  {thing.words}', 400)}\n")
