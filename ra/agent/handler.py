"""How does an agent file run? `async def handler(ctx, wake)`: it composes the context and runs the agent."""

import asyncio
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ra.agent.compose import Composed, Composer
from ra.agent.ground import Ground
from ra.agent.loop import Loop
from ra.agent.user_strategies import guard_sources, rendered_to, sourced
from ra.context import entries
from ra.context.items import Projection
from ra.context.slots import Slots
from ra.context.sources import Source, check
from ra.context.strategies.channels import Task
from ra.context.timed import TimestampedMessage
from ra.core.errors import HookFailed, RaError, UsageError
from ra.core.events import RunEnded, Warned
from ra.core.facts import Entry, Interrupted, Said, TimelineEvent
from ra.core.functions import CallPlugin, Emit
from ra.core.messages import Message, say
from ra.core.model import Section, Usage
from ra.core.value import Value
from ra.tools.custom import function_tool
from ra.tools.tool import Tool

if TYPE_CHECKING:
    from ra.context.strategies.custom import StrategyContext

T = TypeVar("T")
Handler = Callable[["HandlerContext", "Wake"], object]


class Wake(Value, frozen=True):
    """What woke the agent: a message, and who sent it from where."""

    message: Message
    context: Task

    @property
    def text(self) -> str:
        return self.message.text


class AgentHandle:
    """`ctx.agent`: the model with its tools."""

    def __init__(self, handling: "Handling") -> None:
        self._handling = handling

    async def run(self, prompt: str | None = None) -> RunEnded:
        """Answer the message that woke the agent; with a `prompt`, one that follows it. Says how that ended."""
        return await self._handling.elsewhere(lambda: self._handling.run_agent(prompt))


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
        return self._handling.message

    def timeline_messages(
        self, since: int | None = None, projection: Projection | None = None
    ) -> list[TimestampedMessage]:
        return self._handling.here(lambda: self._handling.ground.timeline_messages(since, projection))

    @property
    def events(self) -> list[TimelineEvent]:
        """Everything that has happened in this session, oldest first."""
        return self._handling.here(lambda: list(self._handling.ground.journal.timeline.events()))

    # --- entries ---

    def insert_context(
        self, id: str, name: str = "", content: str = "", attrs: Mapping[str, object] | None = None
    ) -> None:
        """Keep text in this session, in every request from now on. An entry with this id is replaced."""
        handling, words = self._handling, {key: str(value) for key, value in (attrs or {}).items()}
        handling.here(lambda: handling.record(*entries.insert(handling.view, id, content, name=name, attrs=words)))

    def remove_context(self, id: str) -> None:
        handling = self._handling
        handling.here(lambda: handling.record(*entries.remove(handling.view, id)))

    def get_context(self, id: str) -> Entry | None:
        return self._handling.here(lambda: entries.get(self._handling.view, id))

    def list_context(self) -> list[Entry]:
        return self._handling.here(lambda: list(entries.all_of(self._handling.view)))


class Handling:
    """Runs one session's handler, message by message.

    An agent file runs in the thread of the plugins (`call`), so that code that blocks freezes nobody; what it asks of
    the session is done in the session's own thread. A handler of a program that uses the library is simply awaited.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        loop: Loop,
        ground: Ground,
        compose: Composer,
        task: Callable[[], Task],
        use_model: Callable[[str], None],
        call: CallPlugin | None = None,
        file: Path | None = None,
    ) -> None:
        self._handler = handler
        self._loop = loop
        self.ground = ground
        self._compose = compose
        self._task = task
        self._use_model = use_model
        self._call = call
        self._file = file or Path()
        self._usual = (compose.strategy, compose.name, compose.model, compose.tools, ground.sections)
        self._usual_tools = loop.calls.toolbox.tools
        self._forget(say("user", ""))

    def _forget(self, message: Message) -> None:
        """Every message finds the agent as it is configured."""
        self.message = message
        self.sources: tuple[float, dict[str, Source]] | None = None
        self.system_prompt: str | None = None
        self.model: str | None = None
        self.tools: list[Tool] | None = None
        self._strategy_context: StrategyContext | None = None
        self._ended: list[RunEnded] = []
        self._running: asyncio.Task[None] | None = None

    async def run(self, message: Message, emit: Emit) -> None:
        """One message, from its arrival to RunEnded, which comes once and last whatever the handler does."""
        self._forget(message)
        self._emit = emit
        self._home, self._thread = asyncio.get_running_loop(), threading.get_ident()
        ctx = HandlerContext(self, self._usual_tools)
        error, outcome = "", "empty"
        try:
            await self._call_handler(ctx, Wake(message, self._task()))
        except asyncio.CancelledError:
            error, outcome = "Interrupted.", "interrupted"
            await self._stop()
        except RaError as failure:
            error, outcome = str(failure), "failed"
            await self._stop()
        finally:
            self._restore()
        if not self._ended:
            self.record(Said(message), *([Interrupted("user")] if outcome == "interrupted" else []))
            if not error:
                error = "The handler ended without ctx.agent.run(); await it to have the message answered."
                emit(Warned(error))
        emit(self._end(outcome, error))

    async def run_agent(self, prompt: str | None) -> RunEnded:
        if prompt is None and self._ended:
            raise UsageError("ctx.agent.run() has answered the message already; run(prompt) goes on with another.")
        message = self.message if prompt is None else say("user", prompt)
        self._prepare()
        before = len(self._ended)

        def heard(event: Any) -> None:
            if isinstance(event, RunEnded):
                self._ended.append(event)
            else:
                self._emit(event)

        self._running = asyncio.create_task(self._loop.run(message, heard))
        await asyncio.wait({self._running})
        self._running.result()  # a bug crashes, and is not swallowed here
        return self._ended[before]

    # --- between the handler's thread and the session's ---

    def here(self, function: Callable[[], T]) -> T:
        """Do something with the session, in its thread."""
        if threading.get_ident() == self._thread:
            return function()

        async def do() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(do(), self._home).result()

    async def elsewhere(self, start: Callable[[], Awaitable[T]]) -> T:
        """Await something of the session, from whichever thread."""
        if threading.get_ident() == self._thread:
            return await start()

        async def do() -> T:
            return await start()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(do(), self._home))

    async def _call_handler(self, ctx: HandlerContext, wake: Wake) -> None:
        if self._call is not None:
            await self._call(self._handler, ctx, wake, timeout_s=math.inf, file=self._file, what="handler")
            return
        try:
            made = self._handler(ctx, wake)
            if inspect.isawaitable(made):
                await made
        except RaError:
            raise
        except Exception as error:
            raise HookFailed(f"handler raised {type(error).__name__}: {error}") from error

    async def _stop(self) -> None:
        """The handler is over; a run that it began ends too, and says so."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait({self._running})

    # --- what the run stands on ---

    @property
    def view(self) -> Any:
        return self.ground.engine.view

    def record(self, *facts: Any) -> None:
        self.ground.journal.record(*facts)

    def strategy_context(self) -> "StrategyContext":
        if self._strategy_context is None:
            self.ground.prompt = self.message
            self._strategy_context = self.here(self.ground.strategy_context)
        return self._strategy_context

    def _prepare(self) -> None:
        compose, ground = self._compose, self.ground
        if self.model:
            self._use_model(self.model)
        if self.system_prompt:
            own, usual = Section("system", "pinned", self.system_prompt), self._usual[4]
            ground.sections = lambda: (own, *(section for section in usual() if section.name != "system"))
        if self.tools is not None and self._usual[3]:  # with --no-tools there are none
            self._loop.calls.toolbox.use(self.tools)
            compose.tools = ground.tools = self._loop.calls.toolbox.specs
        rendered = self._strategy_context.slots.render() if self._strategy_context else None
        filled = rendered is not None and bool(rendered.messages)
        if self.sources and filled:
            raise UsageError("The handler filled ctx.slots and called ctx.use_context; use one of the two.")
        if self.sources:
            budget, sources = self.sources
            if self._call is not None:
                sources = guard_sources(sources, file=self._file)
            compose.name, compose.strategy = "sources", sourced(ground, budget, sources)
        elif rendered is not None and filled:
            compose.name, compose.strategy = "slots", self._rendered

    async def _rendered(self, message: Message) -> Composed:
        assert self._strategy_context is not None
        self.ground.prompt = message
        return rendered_to(self.ground, self._strategy_context.slots.render())

    def _restore(self) -> None:
        compose = self._compose
        model = compose.model
        compose.strategy, compose.name, compose.model, compose.tools, self.ground.sections = self._usual
        self.ground.tools = compose.tools
        self._loop.calls.toolbox.use(self._usual_tools)
        if model != compose.model:
            self._use_model(compose.model)

    def _end(self, outcome: str, error: str) -> RunEnded:
        """All runs of the handler as one; the handler's own failure is the last word."""
        runs = self._ended
        priced = all(run.dollars for run in runs)
        total = msgspec.structs.replace(
            runs[-1]
            if runs
            else RunEnded("empty", "", self.ground.journal.session, self._compose.model, Usage(), "", 0, 0),
            usage=sum((run.usage for run in runs), Usage()),
            dollars=_sum(run.dollars for run in runs) if priced else "",
            iterations=sum(run.iterations for run in runs),
            seconds=sum(run.seconds for run in runs),
            compactions=sum(run.compactions for run in runs),
        )
        broken = outcome != "empty" or not runs
        return msgspec.structs.replace(total, outcome=outcome, error=error) if broken else total


def _tool(tool: object) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if callable(tool):
        return function_tool(tool)
    raise UsageError(f"use_agent: tools holds a {type(tool).__name__}; use ctx.tools and functions.")


def _sum(amounts: Any) -> str:
    from decimal import Decimal

    return str(sum(map(Decimal, amounts), Decimal(0)))
