"""Declares what a user may configure about what the model sees: agent.compaction, agent.context, session.*."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from ra.core.model import Tier
from ra.core.settings import INSTRUCTION_FILES, Settings

STRATEGIES = ("timeline", "layered", "planner")
CompactionName = Literal["truncate", "summarize", "digest", "auto"]
COMPACTIONS: tuple[CompactionName, ...] = get_args(CompactionName)

Positive = Annotated[int, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, le=1)]


class CompactionSettings(Settings, frozen=True, kw_only=True):
    enabled: bool = True
    threshold: Share = 0.90
    strategy: CompactionName = "truncate"
    model: str | None = None
    prompt: str | None = None
    context_window: Positive | None = None
    max_tokens: Positive | None = None
    recent: Share = 0.20


class ResolverSettings(Settings, frozen=True, kw_only=True):
    name: str
    path: str | None = None
    enabled: bool = True


class SourceSettings(Settings, frozen=True, kw_only=True):
    """One source in YAML. Exactly one of file, command, text, timeline, python says where its content comes from."""

    file: str | None = None
    command: str | None = None
    text: str | None = None
    timeline: bool = False
    python: str | None = None
    max: float | None = None
    cache: Tier = "volatile"
    priority: int = 0
    position: int | None = None
    role: Literal["system", "user", "assistant"] | None = None
    trim: Literal["head", "tail", "middle"] = "head"


class ContextSettings(Settings, frozen=True, kw_only=True):
    enabled: bool = True
    patterns: tuple[str, ...] = INSTRUCTION_FILES
    resolvers: tuple[ResolverSettings, ...] = ()
    source_budget: float | None = None
    sources: dict[str, SourceSettings] = {}
    must_keep: tuple[str, ...] = ()


class LayersSettings(Settings, frozen=True, kw_only=True):
    """Token budgets of the `layered` strategy."""

    total: Positive = 6000
    channel: Positive = 200
    scope: Positive = 200
    landscape: Positive = 800
    identity: Positive = 200
    intent: Positive = 200
    artifacts: Positive = 500
    history: Positive = 1200
    wiki: Positive = 1000


class PlannerSettings(Settings, frozen=True, kw_only=True):
    model: str | None = None
    timeout: Annotated[float, Meta(gt=0)] = 8
    max_output: Positive = 256


class WikiSettings(Settings, frozen=True, kw_only=True):
    dirs: tuple[str, ...] = ()


class SessionSettings(Settings, frozen=True, kw_only=True):
    """None means the strategy's own default: 45, 15 and 180 000 under `layered`, off under `timeline`."""

    stale_minutes: Annotated[float, Meta(ge=1, le=1440)] | None = None
    max_turns_per_session: Annotated[int, Meta(ge=2, le=200)] | None = None
    tier_two_threshold_tokens: Annotated[int, Meta(ge=50_000, le=200_000)] | None = None
    context_strategy: str | None = None
    layers: LayersSettings = LayersSettings()
    planner: PlannerSettings = PlannerSettings()
    wiki: WikiSettings = WikiSettings()
