"""What may a user configure about what the model may do? Spec keys agent.permissions, agent.tools, agent.mcpServers."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ra.core.settings import Settings


class RuleSettings(Settings, frozen=True, kw_only=True):
    """One of allow, ask, deny holds `Tool(pattern)`."""

    allow: str | None = None
    ask: str | None = None
    deny: str | None = None


class PermissionSettings(Settings, frozen=True, kw_only=True):
    rules: tuple[RuleSettings, ...] = ()


class McpServerSettings(Settings, frozen=True, kw_only=True):
    """A server started by `command`, or reached at `url`."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0)] = 30
    enabled: bool = True


Sandbox = Literal["auto", "off"]

ToolSettings = dict[str, Any]
"""`agent.tools`: per tool {enabled, rootDir, …}, and `custom`: a list of paths. Checked by tools.toolbox."""
