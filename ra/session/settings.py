"""Declares what a user may configure about a run: the keys agent.* and session.*."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ra.context.settings import (
    STRATEGIES,
    CompactionSettings,
    ContextSettings,
)
from ra.core.errors import ConfigError
from ra.core.model import Level
from ra.core.settings import Settings
from ra.costs.settings import CacheSettings
from ra.middleware.settings import MiddlewareSettings
from ra.providers.settings import ProviderName, TransportName
from ra.tools.settings import McpServerSettings, PermissionSettings, ToolSettings

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]


class AgentSettings(Settings, frozen=True, kw_only=True):
    provider: ProviderName | None = None
    model: str | None = None
    system_prompt: str | None = None
    thinking: Level = "off"
    thinking_budget_cap: Annotated[int, Meta(gt=0)] | None = None
    transport: TransportName = "auto"
    max_iterations: Count = 0
    max_token_budget: Count = 0
    max_cost: Amount = 0
    max_duration: Amount = 0
    tool_timeout: Annotated[float, Meta(gt=0)] = 120
    parallel_tool_calls: bool = True
    compaction: CompactionSettings = CompactionSettings()
    cache: CacheSettings = CacheSettings()
    context: ContextSettings = ContextSettings()
    middleware: MiddlewareSettings = MiddlewareSettings()
    permissions: PermissionSettings = PermissionSettings()
    tools: ToolSettings = {}
    mcp_servers: tuple[McpServerSettings, ...] = ()


class BudgetSettings(Settings, frozen=True, kw_only=True):
    """`agents.ID.budget`: dollars a day, of the agent in all, of each channel and of each sender; 0 is no limit."""

    dollars: Amount = 0
    per: Literal["day"] = "day"
    per_channel: Amount = 0
    per_sender: Amount = 0


NamedAgent = dict[str, Any]
"""`agents.ID`: any key of agent and session, `handler` and `budget`; laid over them and checked by `config`."""


NO_AGENTS = "none; add one under agents: in ra.yaml"


def check_strategy(name: str, *, place: str = "contextStrategy") -> str:
    """The strategy, or an error that names the legal ones: a misspelt one is never ignored."""
    if name in STRATEGIES or name.endswith(".py"):
        return name
    raise ConfigError(f"{place} is {name!r}; use {', '.join(STRATEGIES)}, or the path of a Python file (strategy.py).")
