"""What a prompt is answered with (Recipe), and what a session needs from the outside (Services)."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ra.context.compose.prompt import Environment
from ra.context.compose.rotation import RotationLimits
from ra.context.compose.strategy import Strategy
from ra.context.settings import CompactionSettings
from ra.core.model import Level, ModelInfo, Request, Section, Usage
from ra.core.ports import Provider
from ra.costs.prices import Prices
from ra.costs.settings import CacheSettings
from ra.middleware.hooks import Hooks
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName
from ra.session.budget import Limits
from ra.session.log import EventLog
from ra.session.prepare import Prompts
from ra.timeline.store import Store
from ra.tools.port import SessionPort
from ra.tools.tool import Tool

if TYPE_CHECKING:
    from ra.session.telemetry import Telemetry
    from ra.timeline.spending import DailySpending
    from ra.tools.toolbox import Toolbox


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is answered with. The configuration makes the usual one; a change makes another.

    `tools` None: all that the session has. `tier_two` is the total input from which a turn is logged as expensive.
    `fallback_rotation` holds instead of `rotation` after a turn that should have been planned and was layered: it was
    replayed, and so is the next one while no plan comes.
    """

    provider: ProviderName
    model: str
    info: ModelInfo
    strategy: Strategy
    sections: tuple[Section, ...] = ()
    tools: tuple[Tool, ...] | None = None
    thinking: Level = "off"
    thinking_cap: int | None = None
    limits: Limits = Limits()
    compaction: CompactionSettings = CompactionSettings()
    cache: CacheSettings = CacheSettings()
    must_keep: tuple[str, ...] = ()
    parallel_calls: bool = True
    rotation: RotationLimits = RotationLimits()
    fallback_rotation: RotationLimits | None = None
    handover_tokens: int = 1_200
    tier_two: int | None = None

    def same_model(self, other: "Recipe") -> bool:
        return (self.provider, self.model) == (other.provider, other.model)


class Notices:
    """Where warnings go. Everybody holds this object, so that whoever listens can be replaced for all of them."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener

    def listen(self, listener: Callable[[str], None]) -> None:
        """Hear warnings from now on, instead of whoever heard them before."""
        self._listener = listener

    def warn(self, text: str) -> None:
        self._listener(text)


class ProviderFactory(Protocol):
    """Connects providers as the configuration has them."""

    def connect(self, provider: ProviderName, model: str, *, retries: Retries | None = None) -> Provider:
        """A provider, ready but not yet connected. Raises UserError when something that the user must supply is
        missing."""
        ...

    def info(self, provider: ProviderName, model: str) -> ModelInfo: ...

    def named(self, model: str, in_force: ProviderName) -> tuple[ProviderName, str]:
        """Whom a model's name goes to, and its id: `sonnet` is the newest. Raises UserError for a near miss."""
        ...

    def address(self, provider: ProviderName) -> str:
        """Where its requests go, without secrets: what was learned there holds only there."""
        ...


class ToolboxFactory(Protocol):
    """Makes the tools of a session as the configuration and the flags have them."""

    def toolbox(self, session: SessionPort, *, offered: bool, nested: bool) -> "Toolbox":
        """`offered`: the model can use tools. `nested`: they are a sub-agent's."""
        ...


class InstructionFiles(Protocol):
    """Finds a subdirectory's instruction files, when a tool first touches something in it."""

    def nested(self, path: Path, given: tuple[Section, ...]) -> tuple[Section, ...]: ...


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What a session needs from the outside; built once, handed down as one argument. `clock` is the time of day."""

    store: Store
    providers: ProviderFactory
    prices: Prices
    hooks: Hooks
    toolboxes: ToolboxFactory
    prompts: Prompts
    environment: Environment
    instructions: InstructionFiles
    notices: Notices
    log: EventLog
    clock: Callable[[], float]
    spending: "DailySpending | None" = None  # of an agent with a daily budget
    telemetry: "Telemetry | None" = None


class Pricing(msgspec.Struct, frozen=True):
    """The prices of one provider's models. With `long_lived`, what is written to the cache is kept for an hour."""

    prices: Prices
    provider: str
    long_lived: bool = False

    def __call__(self, model: str, usage: Usage) -> Decimal | None:
        row = self.prices.row(model, self.provider)
        return None if row is None else row.price(usage, long_lived=self.long_lived)

    def of(self, request: Request) -> "Pricing":
        """As this request is billed: by its cache marks."""
        return msgspec.structs.replace(self, long_lived=request.marks.long_lived)
