"""How do the MCP servers of the configuration reach a session, and a prompt that refers to them?"""

import re
from collections.abc import Callable, Mapping, Sequence

from ra import __version__
from ra.config.load import Resolved
from ra.core.messages import Content, Text
from ra.core.model import ToolSpec
from ra.resolvers.label import label, shown
from ra.resolvers.resolver import Place
from ra.resolvers.resolver import Resolved as Brought
from ra.tools.environment import clean
from ra.tools.mcp.servers import Servers
from ra.tools.settings import McpServerSettings
from ra.tools.tool import Mistake


def servers(
    resolved: Resolved,
    env: Mapping[str, str],
    warn: Callable[[str], None],
    *,
    only: Sequence[McpServerSettings] | None = None,
) -> Servers:
    """The configured servers, or `only` some of them."""

    def weigh(specs: Sequence[ToolSpec]) -> int:
        from ra.context.tokens import Estimator  # only for a server that was not met before

        return Estimator(1.0).tools(specs)

    return Servers(
        resolved.config.agent.mcp_servers if only is None else only,
        root=str(resolved.root),
        env=clean(env),
        shelf=resolved.data_dir / "mcp",
        weigh=weigh,
        warn=warn,
        version=__version__,
    )


class References:
    """`@server:uri` attaches a resource, `@server:prompt:NAME?argument=value` what a prompt says."""

    name = "mcp"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        names = "|".join(re.escape(server.name) for server in servers.settings) or r"(?!)"
        self.pattern = re.compile(rf"(?<![\w@])@((?:{names}):[^\s]*[^\s.,;:!?)\]}}'\"])")

    async def resolve(self, ref: str, place: Place, *, in_code: bool) -> Brought:
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
