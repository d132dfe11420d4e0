"""What does this run stand on? The strategy's answer, once per run, as facts."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ra.agent.hooked import Hooked
from ra.agent.thinking import effort, output_limit
from ra.context.engine import Engine
from ra.core.facts import Configured, Fact, Noticed
from ra.core.messages import Message
from ra.core.model import Level, Section, ToolSpec

Sections = Callable[[], Sequence[Section]]


class Composed(msgspec.Struct, frozen=True):
    """What a strategy decided. With `base`, these messages replace the conversation so far, the prompt included.

    `name` is the strategy that was followed, where that is not the one that was asked.
    """

    sections: tuple[Section, ...]
    base: tuple[Message, ...] | None = None
    noticed: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""


Strategy = Callable[[Message], Awaitable[Composed]]


class Composer:
    """Turns what the strategy decided into facts. What has not changed since the last run is not said again."""

    def __init__(
        self,
        *,
        engine: Engine,
        hooked: Hooked,
        provider: str,
        model: str,
        name: str,
        strategy: Strategy,
        tools: Sequence[ToolSpec],
        level: Level,
        cap: int | None,
        warn: Callable[[str], None],
        observe: Callable[[Composed, Message], None] = lambda composed, message: None,
    ) -> None:
        self.engine = engine
        self.hooked = hooked
        self.provider = provider
        self.model = model
        self.name = name
        self.strategy = strategy
        self.tools = tuple(tools)
        self.level = level
        self.cap = cap
        self.warn = warn
        self.observe = observe

    async def __call__(self, message: Message) -> Sequence[Fact]:
        composed = await self.strategy(message)
        self.observe(composed, message)
        for warning in composed.warnings:
            self.warn(warning)
        sections = await self.hooked.on_context_build(composed.sections)
        thinking = effort(self.level, iteration=1, cap=self.cap, provider=self.provider, info=self.engine.info)
        configured = Configured(
            provider=self.provider,
            model=self.model,
            strategy=composed.name or self.name,
            sections=tuple(sections),
            tools=self.tools,
            effort=thinking,
            max_output=output_limit(self.engine.info, thinking),
            base=composed.base,
        )
        known = self.engine.view.notices()
        news = [Noticed(section) for section in composed.noticed if known.get(section.name) != section]
        # A base replaces what was said so far, so that it is news even when it is the same as the last one.
        same = configured == self.engine.configured and configured.base is None
        return [*([] if same else [configured]), *news]


def replaying(sections: Sections, noticed: Sections) -> Strategy:
    """`timeline`: the conversation as it is, after the system part; what changes often enters at the tail."""

    async def strategy(_: Message) -> Composed:
        return Composed(tuple(sections()), noticed=tuple(noticed()))

    return strategy
