"""Runs an agent file: `async def handler(ctx, wake)` composes the context and runs the agent."""

import asyncio
import inspect
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from ra.context.compose.composed import SlotsStrategy, SourcesStrategy, strategy_context
from ra.context.compose.slots import Slots
from ra.context.compose.source_content import guard_sources
from ra.context.compose.sources import Source, check
from ra.context.compose.strategy import SessionView, Strategy, TaskOrigin
from ra.context.items import Projection, TimestampedMessage
from ra.core.errors import HookFailed, RaError, UsageError, UserError
from ra.core.events import Event, RunEnded
from ra.core.facts import Entry, Interrupted, Said, TimelineEvent
from ra.core.functions import Emit
from ra.core.messages import Message, say
from ra.core.model import Section, Usage
from ra.core.value import Value
from ra.session.budget import Budget
from ra.session.run import Prompt
from ra.session.session import Session
from ra.system import plugins
from ra.tools.functions import function_tool
from ra.tools.tool import Tool

if TYPE_CHECKING:
    from ra.context.compose.custom import StrategyContext

T = TypeVar("T")
Handler = Callable[["HandlerContext", "Wake"], object]


class Wake(Value, frozen=True):
    """What woke the agent: a message, and who sent it from where."""

    message: Message
    context: TaskOrigin

    @property
    def text(self) -> str:
        return self.message.text


class AgentHandle:
    """`ctx.agent`: the model with its tools."""

    def __init__(self, handling: "Handling") -> None:
        self._handling = handling

    async def run(self, prompt: str | None = None) -> RunEnded:
        """Answer the message that woke the agent; with a `prompt`, one that follows it. Says how that ended."""
        return await self._handling.elsewhere(self._handling.run_agent(prompt))


class HandlerContext:
    """The `ctx` of an agent file. It may be used from the handler and from the functions of its sources."""

    def __init__(self, handling: "Handling", tools: Sequence[Tool]) -> None:
        self.agent = AgentHandle(handling)
        self.tools = tuple(tools)
        self._handling = handling

    # --- what the model will see ---

    def use_context(self, *, source_budget: float, sources: Mapping[str, Source]) -> None:
        """Compose the prompt from these sources. Raises UsageError for what cannot be composed."""
        check(source_budget, sources)
        self._handling.sources = (source_budget, dict(sources))

    def use_agent(
        self,
        *,
        system_prompt: str | None = None,
        model: str | None = None,
        tools: Sequence[Tool | Callable[..., Any]] | None = None,
    ) -> None:
        """What is not named stays as it is configured. A tool may be a plain function with type hints and docstring."""
        handling = self._handling
        handling.system_prompt = system_prompt or handling.system_prompt
        handling.model = model or handling.model
        if tools is not None:
            handling.tools = [_tool(tool) for tool in tools]

    @property
    def slots(self) -> Slots:
        """The slots of this prompt. When they are filled, the prompt is what they render."""
        return self._handling.strategy_context().slots

    @property
    def history(self) -> Any:
        """The conversation before this message: `.recent(n)`, `.all()`."""
        return self._handling.strategy_context().history

    @property
    def budget(self) -> Any:
        """`.remaining_input_tokens`."""
        return self._handling.strategy_context().budget

    @property
    def input(self) -> Message:
        return self._handling.prompt.message

    def timeline_messages(
        self, since: int | None = None, projection: Projection | None = None
    ) -> list[TimestampedMessage]:
        return self._handling.here(lambda: self._handling.view().timeline_messages(since, projection))

    @property
    def events(self) -> list[TimelineEvent]:
        """Everything that has happened in this session, oldest first."""
        return self._handling.here(lambda: list(self._handling.session.events()))

    # --- entries ---

    def insert_context(
        self, id: str, name: str = "", content: str = "", attrs: Mapping[str, object] | None = None
    ) -> None:
        """Keep text in this session, in every request from now on. An entry with this id is replaced."""
        session, texts = self._handling.session, {key: str(value) for key, value in (attrs or {}).items()}
        self._handling.here(lambda: session.pin(id, content, name=name, attrs=texts))

    def remove_context(self, id: str) -> None:
        self._handling.here(lambda: self._handling.session.unpin(id))

    def get_context(self, id: str) -> Entry | None:
        return next((entry for entry in self.list_context() if entry.id == id), None)

    def list_context(self) -> list[Entry]:
        return list(self._handling.here(self._handling.session.entries))


class AgentFile(msgspec.Struct, frozen=True):
    """A handler: of a file, which runs in a thread of its own, or of the program that uses the library."""

    handler: Handler
    worker: plugins.Worker | None = None
    file: Path = Path()

    def answering(self, session: Session) -> "Handling":
        return Handling(self, session)


class Handling:
    """Runs a handler for one message of a session.

    An agent file runs in the thread of the plugins, so that code that blocks freezes nobody; what it asks of the
    session is done in the session's own thread. A handler of a program that uses the library is simply awaited.
    """

    def __init__(self, agent_file: AgentFile, session: Session) -> None:
        self.session = session
        self.sources: tuple[float, dict[str, Source]] | None = None
        self.system_prompt: str | None = None
        self.model: str | None = None
        self.tools: list[Tool] | None = None
        self.prompt: Prompt
        self._agent = agent_file
        self._strategy_context: StrategyContext | None = None
        self._ended: list[RunEnded] = []
        self._running: asyncio.Task[None] | None = None

    async def answer(self, prompt: Prompt, emit: Emit) -> None:
        """One message, from its arrival to RunEnded, which comes once and last whatever the handler does."""
        # All runs of the handler answer one message: they share its limits.
        self.prompt = replace(prompt, budget=prompt.budget or Budget(prompt.recipe.limits))
        self._emit = emit
        self._home, self._thread = asyncio.get_running_loop(), threading.get_ident()
        ctx = HandlerContext(self, prompt.toolbox.tools)
        error, outcome = "", "empty"
        try:
            await self._call_handler(ctx, Wake(prompt.message, prompt.task))
        except asyncio.CancelledError:
            error, outcome = "Interrupted.", "interrupted"
            await self._stop()
        except RaError as failure:
            # What the handler asked for cannot be: as wrong as the same words in ra.yaml.
            mistaken = isinstance(failure, UserError) or isinstance(failure.__cause__, UserError)
            error, outcome = str(failure), "mistake" if mistaken else "failed"
            await self._stop()
        finally:
            await self.session.loop_for(prompt.recipe)
        if not self._ended:
            interrupted = [Interrupted("user")] if outcome == "interrupted" else []
            self.session.loop.journal.record(Said(prompt.message), *interrupted)
            if not error:
                error = "The handler ended without ctx.agent.run(); await it to have the message answered."
        emit(self._end(outcome, error))

    async def run_agent(self, text: str | None) -> RunEnded:
        if text is None and self._ended:
            raise UsageError("ctx.agent.run() has answered the message already; run(prompt) asks another.")
        message = self.prompt.message if text is None else say("user", text)
        prompt = self._prompt(message)
        loop = await self.session.loop_for(prompt.recipe)
        before = len(self._ended)
        self._running = asyncio.create_task(loop.answer(prompt, self._hear))
        await asyncio.wait({self._running})
        self._running.result()  # a bug crashes, and is not swallowed here
        return self._ended[before]

    def _hear(self, event: Event) -> None:
        if isinstance(event, RunEnded):
            self._ended.append(event)
        else:
            self._emit(event)

    # --- between the handler's thread and the session's ---

    def here(self, function: Callable[[], T]) -> T:
        """Do something with the session, in its thread."""
        if threading.get_ident() == self._thread:
            return function()

        async def do() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(do(), self._home).result()

    async def elsewhere(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something of the session, from whichever thread."""
        if threading.get_ident() == self._thread:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._home))

    async def _call_handler(self, ctx: HandlerContext, wake: Wake) -> None:
        agent = self._agent
        if agent.worker is not None:
            await agent.worker.call(agent.handler, ctx, wake, timeout_s=math.inf, file=agent.file, what="handler")
            return
        try:
            result = agent.handler(ctx, wake)
            if inspect.isawaitable(result):
                await result
        except RaError:
            raise
        except Exception as error:
            raise HookFailed(f"handler raised {type(error).__name__}: {error}") from error

    async def _stop(self) -> None:
        """The handler is over; a run that it began ends too, and says so."""
        if self._running is None:
            return
        self._running.cancel()
        while not self._running.done():
            try:
                await asyncio.wait({self._running})
            except asyncio.CancelledError:
                continue  # interrupted once more: it is ending already, and has a bill to record

    # --- what the run stands on ---

    def view(self) -> SessionView:
        return self.session.loop.view(self.prompt.message, self.prompt)

    def strategy_context(self) -> "StrategyContext":
        if self._strategy_context is None:
            self._strategy_context = self.here(self._new_strategy_context)
        return self._strategy_context

    def _new_strategy_context(self) -> "StrategyContext":
        return strategy_context(self.view())

    def _prompt(self, message: Message) -> Prompt:
        """The prompt with the recipe that the handler asked for. The next one finds the agent as it is configured."""
        usual = self.prompt
        recipe = usual.recipe
        if self.model:
            providers = self.session.services.providers
            provider, model = providers.named(self.model, recipe.provider)
            recipe = replace(recipe, provider=provider, model=model, info=providers.info(provider, model))
        if self.system_prompt:
            system = Section("system", "pinned", self.system_prompt)
            sections = (section for section in recipe.sections if section.name != "system")
            recipe = replace(recipe, sections=(system, *sections))
        recipe = replace(recipe, strategy=self._strategy(recipe.strategy))
        toolbox = usual.toolbox if self.tools is None else usual.toolbox.offering(self.tools)
        return replace(usual, message=message, recipe=recipe, toolbox=toolbox)

    def _strategy(self, usual: Strategy) -> Strategy:
        rendered = self._strategy_context.slots.render() if self._strategy_context else None
        filled = rendered is not None and bool(rendered.messages)
        if self.sources and filled:
            raise UsageError("The handler filled ctx.slots and called ctx.use_context; use one of the two.")
        if self.sources:
            budget, sources = self.sources
            if self._agent.worker is not None:
                sources = guard_sources(sources, file=self._agent.file)
            return SourcesStrategy(budget, sources)
        if filled and self._strategy_context is not None:
            return SlotsStrategy(self._strategy_context)
        return usual

    def _end(self, outcome: str, error: str) -> RunEnded:
        """All runs of the handler as one; the handler's own failure is the last word."""
        runs = self._ended
        recipe = self.prompt.recipe
        total = replace(
            runs[-1] if runs else RunEnded("empty", "", self.session.id, recipe.model, Usage(), "", 0, 0),
            usage=sum((run.usage for run in runs), Usage()),
            dollars=str(sum((Decimal(run.dollars) for run in runs), Decimal(0)))
            if all(run.dollars for run in runs)
            else "",
            iterations=sum(run.iterations for run in runs),
            seconds=sum(run.seconds for run in runs),
            compactions=sum(run.compactions for run in runs),
        )
        broken = outcome != "empty" or not runs
        return replace(total, outcome=outcome, error=error) if broken else total


def _tool(tool: object) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if callable(tool):
        return function_tool(tool)
    raise UsageError(f"use_agent: tools holds a {type(tool).__name__}; use ctx.tools and functions.")
