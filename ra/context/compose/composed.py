"""The strategies of composed prompts: sources, strategy files, and the slots of an agent file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ra.context.compose.custom import StrategyContext, build, system_part
from ra.context.compose.slots import Rendered
from ra.context.compose.source_content import PLUGIN_S, SourceContents
from ra.context.compose.sources import Source, compose, from_settings
from ra.context.compose.strategy import Composed, SessionView, Strategy
from ra.context.settings import ContextSettings
from ra.core.messages import Message
from ra.core.model import Section
from ra.system import plugins

SOURCES = "sources"  # the strategy of a configuration with agent.context.sources
FUNCTION = "on_context_build"


class SourcesStrategy:
    """The prompt is composed from sources alone, after the agent's system part. The current input is in it once."""

    name = SOURCES

    def __init__(self, source_budget: float, sources: Mapping[str, Source]) -> None:
        self._budget = source_budget
        self._sources = sources

    async def compose(self, session: SessionView, message: Message) -> Composed:
        composition = await compose(self._budget, self._sources, session.estimator, prompt=message)
        was_cut = any(text.startswith("The current input was cut") for text in composition.warnings)
        return Composed(
            (*session.sections, *composition.sections),
            base=prompt_once(composition.messages, message, was_cut=was_cut),
            warnings=composition.warnings,
            texts=tuple(composition.kept.values()),
        )

    async def close(self) -> None:
        """Nothing is held."""


class ConfiguredSources:
    """The sources of `agent.context.sources`, read anew for each prompt."""

    name = SOURCES

    def __init__(self, settings: ContextSettings, root: Path, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._root = root
        self._env = env

    async def compose(self, session: SessionView, message: Message) -> Composed:
        sources = from_settings(self._settings, SourceContents(self._root, self._env, session))
        return await SourcesStrategy(self._settings.source_budget or 0, sources).compose(session, message)

    async def close(self) -> None:
        """Nothing is held."""


class FileStrategy:
    """A Python file with `async def on_context_build(ctx)`; when it returns None, `default` decides."""

    def __init__(self, path: str, *, root: Path, worker: plugins.Worker, default: Strategy) -> None:
        self.name = path
        self._file = plugins.locate(path, base=root)
        self._function = plugins.load(str(self._file), base=root, name=FUNCTION)
        self._worker = worker
        self._default = default

    async def compose(self, session: SessionView, message: Message) -> Composed:
        rendered = await build(self._call, strategy_context(session))
        return await self._default.compose(session, message) if rendered is None else rendered_to(session, rendered)

    async def _call(self, ctx: StrategyContext) -> object:
        """The user's function, run where it can be left behind when it takes too long."""
        return await self._worker.call(self._function, ctx, timeout_s=PLUGIN_S, file=self._file, what=FUNCTION)

    async def close(self) -> None:
        await self._default.close()


class SlotsStrategy:
    """What the slots of an agent file render."""

    name = "slots"

    def __init__(self, context: StrategyContext) -> None:
        self._context = context

    async def compose(self, session: SessionView, message: Message) -> Composed:
        return rendered_to(session, self._context.slots.render())

    async def close(self) -> None:
        """Nothing is held."""


def strategy_context(session: SessionView) -> StrategyContext:
    """The `ctx` of a strategy file, for one prompt."""
    return StrategyContext(
        input=session.message,
        history=session.history(),
        remaining_input_tokens=session.remaining_input_tokens(),
        estimator=session.estimator,
        entries=session.entries(),
        session=session.id,
        model=session.model,
    )


def prompt_once(messages: Sequence[Message], prompt: Message, *, was_cut: bool = False) -> tuple[Message, ...]:
    """The messages with the prompt exactly once: where it stands last, or at the end when no source had it."""
    places = [index for index, message in enumerate(messages) if message is prompt]
    if not places:
        return (*messages, *(() if was_cut else (prompt,)))
    return tuple(message for index, message in enumerate(messages) if message is not prompt or index == places[-1])


def rendered_to(session: SessionView, rendered: Rendered, usual: Sequence[Section] | None = None) -> Composed:
    """What slots made. System messages that open it take the place of the agent's own system prompt.

    `usual` are the sections without slots; the session's, unless told.
    """
    usual = session.sections if usual is None else usual
    sections, messages = system_part(rendered.messages)
    remaining = [section for section in usual if section.name != "system"] if sections else usual
    base = messages if any(message.role == "user" for message in messages) else (*messages, session.message)
    prompt = session.message.text
    warnings = rendered.warnings
    if not any(prompt in message.text for message in base) and prompt not in rendered.kept.values():
        warnings = (*warnings, "The current input is not in the prompt; add it with ctx.slots.add('input', ctx.input).")
    return Composed((*sections, *remaining), base=base, warnings=warnings, texts=tuple(rendered.kept.values()))
