"""What does a run stand on when it is composed? Sources, strategy files and slots, turned into what a run replays."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ra import plugins
from ra.agent.compose import Composed, Strategy
from ra.agent.ground import Ground
from ra.context.slots import Rendered
from ra.context.sources import Source, compose
from ra.context.strategies.custom import OnContextBuild, build, system_part
from ra.core.functions import CallPlugin
from ra.core.messages import Message

TIMEOUT_S = 30.0  # of one call of the user's code


def sourced(ground: Ground, source_budget: float, sources: Mapping[str, Source]) -> Strategy:
    """The prompt is composed from sources alone, after the agent's system part. The current input is in it once."""

    async def strategy(message: Message) -> Composed:
        ground.prompt = message
        made = await compose(source_budget, sources, ground.engine.estimator, prompt=message)
        ground.journal.keep(made.kept.values())
        was_cut = any(text.startswith("The current input was cut") for text in made.warnings)
        return Composed(
            (*ground.sections(), *made.sections),
            base=once(made.messages, message, was_cut=was_cut),
            warnings=made.warnings,
        )

    return strategy


def once(messages: Sequence[Message], prompt: Message, *, was_cut: bool = False) -> tuple[Message, ...]:
    """The messages with the prompt exactly once: where it stands last, or at the end when no source had it."""
    places = [index for index, message in enumerate(messages) if message is prompt]
    if not places:
        return (*messages, *(() if was_cut else (prompt,)))
    return tuple(message for index, message in enumerate(messages) if message is not prompt or index == places[-1])


def filed(ground: Ground, function: OnContextBuild, default: Strategy) -> Strategy:
    """A strategy file decides; when it returns None, the default does."""

    async def strategy(message: Message) -> Composed:
        ground.prompt = message
        rendered = await build(function, ground.strategy_context())
        return await default(message) if rendered is None else rendered_to(ground, rendered)

    return strategy


def rendered_to(ground: Ground, rendered: Rendered) -> Composed:
    """What slots made. System messages that open it take the place of the agent's own system prompt."""
    ground.journal.keep(rendered.kept.values())
    sections, messages = system_part(rendered.messages)
    own = ground.sections()
    kept = [section for section in own if section.name != "system"] if sections else own
    base = messages if any(message.role == "user" for message in messages) else (*messages, ground.prompt)
    return Composed((*sections, *kept), base=base, warnings=rendered.warnings)


def guarded(function: Callable[..., Any], *, call: CallPlugin, file: Path, what: str) -> Callable[..., Awaitable[Any]]:
    """The user's function, run where it can be left behind when it takes too long."""
    return partial(call, function, timeout_s=TIMEOUT_S, file=file, what=what)


async def alone(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """As `Worker.call`, in a thread of its own: sources are read side by side, and one that blocks stops no other."""
    worker = plugins.Worker()
    try:
        return await worker.call(function, *args, **options)
    finally:
        worker.close()


def guard_sources(sources: Mapping[str, Source], *, file: Path, timeout_s: float = TIMEOUT_S) -> dict[str, Source]:
    """Sources whose functions are the user's, each run where it can be left behind."""

    def guard(name: str, source: Source) -> Source:
        if isinstance(source.content, str):
            return source
        read = partial(alone, source.content, timeout_s=timeout_s, file=file, what=f"source {name!r}")
        return msgspec.structs.replace(source, content=read)

    return {name: guard(name, source) for name, source in sources.items()}
