"""Offers an MCP server to the model: as its tools, or as a single tool if all of them would crowd the window.

A server whose tools take more than LAZY_ABOVE tokens is offered as one tool `mcp__SERVER`, which lists, describes
and calls them. Its calls are checked, confirmed and run as if the model had called the tool by its own name.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from ra.core.messages import Content
from ra.core.model import ToolSpec
from ra.core.value import JsonObject
from ra.tools.mcp.listing import Listing, Offer, Resource
from ra.tools.mcp.naming import server_name, tool_names
from ra.tools.tool import Mistake, Output, Say, Tool, text_output

LAZY_ABOVE = 2000
MAX_DESCRIPTION = 4000
MAX_TOLD = 1200
"""Characters of a list of names in a description; the model can request the rest."""

READ = "read_resource"
READ_SCHEMA: JsonObject = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
LAZY_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "description": "Without args: describe it. Left out: list all"},
        "args": {"type": "object", "description": "Call the tool with these; {} for none"},
    },
}

CallServer = Callable[[str, str, JsonObject, Say], Awaitable[Output]]
"""(server, tool, args, say) → the tool's output."""

ReadResource = Callable[[str, str], Awaitable[tuple[Content, ...]]]
"""(server, uri) → the content of the resource."""


def tools(listings: Mapping[str, Listing], call: CallServer, read: ReadResource) -> tuple[Tool, ...]:
    """All tools of all servers, under unique names; the tools of a large server can be called but are not listed."""
    by_name: dict[str, Tool] = {}
    for server, listing in listings.items():
        lazy = listing.tokens > LAZY_ABOVE
        server_tools = _tools(server, listing, call, read, taken=by_name, listed=not lazy)
        by_name |= {tool.name: tool for tool in server_tools}
        if lazy:
            gate = _gate(server, listing, server_tools)
            by_name[gate.name] = gate
    return tuple(by_name.values())


def as_told(before: Sequence[Tool], now: Sequence[Tool]) -> Iterator[Tool]:
    """The present tools with the descriptions that the model already has; a tool that is gone says so when called."""
    listed = {tool.name: tool for tool in before if tool.listed}
    for tool in now:
        yield msgspec.structs.replace(tool, spec=listed[tool.name].spec) if tool.name in listed else tool
    names = {tool.name for tool in now}
    for tool in listed.values():
        if tool.name not in names:
            yield msgspec.structs.replace(tool, run=_gone, passes_on=None)


async def _gone(args: JsonObject, say: Say) -> Output:
    raise Mistake("Its MCP server does not offer this tool any more. Go on without it.")


def specs(server: str, listing: Listing) -> list[ToolSpec]:
    """The specifications of a server's tools."""
    return [tool.spec for tool in _tools(server, listing, _nobody, _nobody)]


def _tools(
    server: str,
    listing: Listing,
    call: CallServer,
    read: ReadResource,
    *,
    taken: Mapping[str, Tool] = {},
    listed: bool = True,
) -> list[Tool]:
    readables = (*listing.resources, *listing.prompts)
    offers = list(listing.tools)
    if readables:
        offers.append(Offer(READ, _reading(server, readables), READ_SCHEMA, reads_only=True))
    names = tool_names(server, [offer.name for offer in offers], taken)
    tools_made = []
    for name, offer in zip(names, offers, strict=True):
        reads = bool(readables) and offer is offers[-1]
        run = partial(_run_read, server, read) if reads else partial(_run_call, server, offer.name, call)
        spec = ToolSpec(name, offer.description[:MAX_DESCRIPTION], offer.schema)
        tools_made.append(Tool(spec, run, reads_only=offer.reads_only, listed=listed))
    return tools_made


async def _run_call(server: str, tool: str, call: CallServer, args: JsonObject, say: Say) -> Output:
    return await call(server, tool, args, say)


async def _run_read(server: str, read: ReadResource, args: JsonObject, say: Say) -> Output:
    uri = args.get("uri")
    if not isinstance(uri, str):
        raise Mistake(f"{READ} takes uri (string, required).")
    return Output(await read(server, uri))


async def _nobody(*_: Any) -> Any:
    raise Mistake("Nobody is there to ask.")


def _gate(server: str, listing: Listing, group: Sequence[Tool]) -> Tool:
    """The single tool of a large server. `group` are its tools in the order of the listing, the reader last."""
    prefix = server_name(server)
    by_name = {name: tool for tool in group for name in (tool.name, tool.name.removeprefix(f"{prefix}__"))}
    by_name |= {offer.name: tool for offer, tool in zip(listing.tools, group, strict=False)}

    def meant(args: JsonObject) -> tuple[str, JsonObject] | None:
        tool, arguments = by_name.get(str(args.get("tool"))), args.get("args")
        return (tool.name, arguments) if tool is not None and isinstance(arguments, dict) else None

    async def run(args: JsonObject, say: Say) -> Output:
        name = args.get("tool")
        if not name:
            return text_output("\n".join(f"{_short(tool, prefix)}: {_first(tool)}" for tool in group))
        tool = by_name.get(str(name))
        if tool is None:
            raise Mistake(f"{server} has no tool {name!r}. Tools: {', '.join(_short(tool, prefix) for tool in group)}.")
        schema = msgspec.json.encode(tool.spec.schema).decode()
        return text_output(f"{_short(tool, prefix)}: {tool.spec.description}\nargs: {schema}")

    names = _abridged([_short(tool, prefix) for tool in group], "call without arguments for all")
    about = " ".join(listing.instructions.split())[:300]
    words = f"The tools of {server}. {about}".strip() + f" Describe one, then call it with args. Tools: {names}"
    return Tool(ToolSpec(prefix, words, LAZY_SCHEMA), run, passes_on=meant)


def _reading(server: str, things: Sequence[Resource]) -> str:
    lines = [f"{thing.uri} ({' '.join(thing.words.split())[:80]})" if thing.words else thing.uri for thing in things]
    return f"Read a resource or prompt of {server}: {_abridged(lines, 'others work too')}"


def _abridged(items: Sequence[str], more: str) -> str:
    """As many items as fit; `more` says how to get the rest."""
    shown: list[str] = []
    for item in items:
        if sum(map(len, shown)) + len(item) > MAX_TOLD:
            return f"{', '.join(shown)} and {len(items) - len(shown)} more; {more}."
        shown.append(item)
    return f"{', '.join(shown)}."


def _short(tool: Tool, prefix: str) -> str:
    return tool.name.removeprefix(f"{prefix}__")


def _first(tool: Tool) -> str:
    """The first sentence of a tool's description."""
    return " ".join(tool.spec.description.split()).partition(". ")[0][:160]
