"""What may a user configure about a run? Spec keys agent.* and session.*."""

from typing import Annotated, Any

from msgspec import Meta

from ra.context.settings import (
    STRATEGIES,
    CompactionSettings,
    ContextSettings,
    LayersSettings,
    PlannerSettings,
    WikiSettings,
)
from ra.core.errors import ConfigError
from ra.core.model import Level
from ra.core.settings import Settings
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
    context: ContextSettings = ContextSettings()
    middleware: MiddlewareSettings = MiddlewareSettings()
    permissions: PermissionSettings = PermissionSettings()
    tools: ToolSettings = {}
    mcp_servers: tuple[McpServerSettings, ...] = ()


class SessionSettings(Settings, frozen=True, kw_only=True):
    """None means the strategy's own default: 45, 15 and 180 000 under `layered`, off under `timeline`."""

    stale_minutes: Annotated[float, Meta(ge=1, le=1440)] | None = None
    max_turns_per_session: Annotated[int, Meta(ge=2, le=200)] | None = None
    tier_two_threshold_tokens: Annotated[int, Meta(ge=50_000, le=200_000)] | None = None
    context_strategy: str | None = None
    layers: LayersSettings = LayersSettings()
    planner: PlannerSettings = PlannerSettings()
    wiki: WikiSettings = WikiSettings()


NamedAgent = dict[str, Any]
"""`agents.ID`: any key of agent and session, and `handler`; laid over them and checked by `config`."""


NO_AGENTS = "none; add one under agents: in ra.yaml"


def check_strategy(name: str, *, place: str = "contextStrategy") -> str:
    """The strategy, or an error that names the legal ones: a misspelt one is never ignored."""
    if name in STRATEGIES or name.endswith(".py"):
        return name
    raise ConfigError(f"{place} is {name!r}; use {', '.join(STRATEGIES)}, or the path of a Python file (strategy.py).")
