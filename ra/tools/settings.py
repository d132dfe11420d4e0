"""Declares the settings of what the model may do: `agent.permissions`, `agent.tools`, `agent.mcpServers`."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ra.core.settings import Settings


class RuleSettings(Settings, frozen=True, kw_only=True):
    """One of `allow`, `ask`, `deny` is a `Tool(pattern)`. `outside` lets exactly that command leave the sandbox."""

    allow: str | None = None
    ask: str | None = None
    deny: str | None = None
    outside: bool = False


class SandboxSettings(Settings, frozen=True, kw_only=True):
    """`readable`: folders of the home directory that commands in the sandbox may read."""

    readable: tuple[str, ...] = ()


Edits = Literal["ask", "auto", "off"]
"""How a file tool's write in the project is treated: ask the user, allow it, refuse it."""


class PermissionSettings(Settings, frozen=True, kw_only=True):
    """`edits` unset: ask on a terminal, off elsewhere."""

    rules: tuple[RuleSettings, ...] = ()
    edits: Edits | None = None
    sandbox: SandboxSettings = SandboxSettings()


class McpServerSettings(Settings, frozen=True, kw_only=True):
    """A server started by `command`, or reached at `url`; `sse`: with the transport of the protocol's first version."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    sse: bool = False
    timeout: Annotated[float, Meta(gt=0)] = 30
    enabled: bool = True


Sandbox = Literal["auto", "off"]

ToolSettings = dict[str, Any]
"""`agent.tools`: per tool {enabled, rootDir, …}, and `custom`: a list of paths. Checked by tools.toolbox."""
