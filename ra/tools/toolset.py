"""Collects the tools of a session: the built-in ones, the user's own, and those of MCP servers."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from ra.core.errors import ConfigError, UsageError
from ra.tools.options import ToolOptions
from ra.tools.policy.rules import BUILTIN
from ra.tools.tool import Tool
from ra.tools.workspace import Workspace

if TYPE_CHECKING:
    from ra.tools.mcp.client import ServerClient
    from ra.tools.mcp.servers import Servers

_NEEDS = {"Job": "Bash"}
"""A tool that is useless without another is off if the other one is off."""


def builtin_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools of `ra.tools.builtin`, one module each, that this workspace supports."""
    tools = []
    for name in BUILTIN:
        make: Callable[[Workspace], Tool | None] = import_module(f"ra.tools.builtin.{name.lower()}").tool
        if (tool := make(workspace)) is not None:
            tools.append(tool)
    return tuple(tools)


class Toolset:
    """The tools of a session by name, in `usual`; a single run may use others.

    `options` turn tools off, and without `offered` all are off. The tools of `servers` may change during the session;
    `client` answers the servers' questions.
    """

    def __init__(
        self,
        builtin: Sequence[Tool],
        custom: Sequence[Tool] = (),
        *,
        options: Mapping[str, ToolOptions],
        offered: bool = True,
        servers: "Servers | None" = None,
        client: "ServerClient | None" = None,
    ) -> None:
        builtin_names, names = {tool.name for tool in builtin}, [tool.name for tool in custom]
        if taken := [name for name in names if name in builtin_names]:
            raise ConfigError(f"agent.tools.custom: the name {taken[0]} is taken by a built-in tool; choose another.")
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise ConfigError(f"agent.tools.custom: two tools are named {twice[0]}; rename one.")
        self._own = (*builtin, *custom)
        # Built-in tools declare whether they touch anything outside ra; the user has agreed to the custom ones.
        self._free = (*(tool.name for tool in builtin if tool.free), *(tool.name for tool in custom))
        self._options = options
        self.offered = offered
        self._servers = servers
        self._client = client
        self._of_servers = servers.join(client) if servers else ()
        self._listings = servers.current if servers else None
        self._take_stock()

    def _take_stock(self) -> None:
        by_name = {tool.name: tool for tool in (*self._of_servers, *self._own)}
        listing = (tool.name for tool in self._of_servers if tool.passes_on)
        self.known = frozenset((*BUILTIN, *by_name))  # names that a rule may mention, including those of disabled tools
        self.free = (*self._free, *listing)  # names of tools that need no rule
        self.usual = {name: by_name[name] for name in sorted(by_name) if self._enabled(name)}

    def _enabled(self, name: str) -> bool:
        return self.offered and all(
            self._options.get(needed, ToolOptions()).enabled for needed in (name, _NEEDS.get(name, name))
        )

    def refresh(self) -> bool:
        """Adopts the present offer of the MCP servers. Returns whether requests must list other tools.

        A new list costs the cached prefix, so it is made only for tools that the model could not use otherwise: new
        ones, or ones with other arguments. Until then, a tool that is gone says so when it is called.
        """
        if self._servers is None or self._servers.current is self._listings:
            return False
        from ra.tools.mcp.offered import as_told  # start-up time: only with MCP servers

        self._listings = self._servers.current
        before = self.usual
        fresh = self._servers.tools(self._client)
        needed = any(
            tool.listed and self._enabled(tool.name) and not (tool.name in before and before[tool.name].told_like(tool))
            for tool in fresh
        )
        self._of_servers = fresh if needed else tuple(as_told(self._of_servers, fresh))
        self._take_stock()
        return needed

    def pick(self, tools: Sequence[Tool]) -> dict[str, Tool]:
        """Exactly these tools, the session's or the caller's, by name. Raises UsageError for a taken name."""
        names = [tool.name for tool in tools]
        brought = [tool for tool in tools if tool is not self.usual.get(tool.name)]
        if taken := [tool.name for tool in brought if tool.name in self.usual or names.count(tool.name) > 1]:
            raise UsageError(f"The name {taken[0]} is taken by another tool; choose another.")
        return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}

    async def close(self) -> None:
        if self._servers:
            await self._servers.leave()
