"""Attaches the resources and prompts of MCP servers that a prompt refers to."""

import re

from ra.core.messages import Content, Text
from ra.core.text import label, shown
from ra.resolvers.resolver import Resolution as Brought
from ra.resolvers.resolver import ResolverContext
from ra.tools.mcp.servers import Servers
from ra.tools.tool import Mistake


class References:
    """`@server:uri` attaches a resource, `@server:prompt:NAME?argument=value` the text of a prompt."""

    name = "mcp"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        names = "|".join(re.escape(server.name) for server in servers.settings) or r"(?!)"
        self.pattern = re.compile(rf"(?<![\w@])@((?:{names}):[^\s]*[^\s.,;:!?)\]}}'\"])")

    async def resolve(self, ref: str, place: ResolverContext, *, in_code: bool) -> Brought:
        if in_code:
            return Brought()
        server, _, uri = ref.partition(":")
        try:
            blocks = await self._servers.read(server, uri)
        except Mistake as mistake:
            return Brought(warnings=(f"@{shown(ref)}: not attached. {mistake}",))
        return Brought(tuple(_labelled(block, ref) for block in blocks), names=(ref,))


def _labelled(block: Content, ref: str) -> Content:
    return Text(label("resource", block.text, ref=ref)) if isinstance(block, Text) else block
