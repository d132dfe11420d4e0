"""Gives a Python program a conversation with a model."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, get_args, overload

from typing_extensions import TypeVar

from ra.app import App
from ra.config.load import resolve
from ra.config.options import Options
from ra.core.asking import Answer, Asker, Question
from ra.core.errors import RaError, Refused, UsageError
from ra.core.events import Event, RunEnded
from ra.core.facts import Checkpointed, Entry, Said, Spent
from ra.core.messages import Message
from ra.core.model import Level, ModelInfo
from ra.core.ports import Provider, Timeline
from ra.library.arguments import (
    HistoryMessage,
    asker_of,
    check_choices,
    check_kinds,
    check_lists,
    check_rules,
    left_out,
    message_of,
    name_of,
    tools_of,
)
from ra.library.guesses import ARGUMENTS, METHODS, OF_A_PROMPT, EventStream, explains, instead
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName
from ra.session.budget import RUNNING, Limits
from ra.session.session import Session
from ra.tools.settings import Edits
from ra.tools.tool import Output, Tool, text_output

if TYPE_CHECKING:
    from ra.session.agent_file import Handler
    from ra.session.snapshot import Snapshot

OutputT = TypeVar("OutputT", default=str)


class Unanswered(RaError):
    """A run ended without an answer; `ended` says why, and what the run cost."""

    def __init__(self, ended: RunEnded) -> None:
        super().__init__(ended.error or f"The run ended: {ended.outcome}.")
        self.ended = ended


class Agent(Generic[OutputT]):
    """One conversation with a model: every prompt continues it. `session` continues a stored conversation.

    Settings are those of ra.yaml, by their dotted keys: `Agent("…", settings={"agent.compaction.strategy": "digest"})`.
    The configuration files of `cwd` apply as on the command line. Whatever a project's configuration runs needs
    `ra trust`, as always.

    `tools` are functions with type hints and a docstring, in addition to the built-in tools; `builtin_tools` lists the
    built-in ones to offer. `output_type` is the type of an answer: a struct, a dataclass, a pydantic model or a JSON
    schema. `provider` is a name, or an object that answers requests itself. `history` lists the earlier messages of
    the conversation. A `handler(ctx, wake)` composes the context and runs the agent, like the handler of an agent file.
    `edits` is the permission for writes by the file tools: `auto` (`write=True`), `ask` (the default with an `ask`
    function), `off` (the default without one).
    """

    @explains(ARGUMENTS)
    def __init__(
        self,
        model: str | None = None,
        *,
        provider: str | Provider | None = None,
        system_prompt: str | None = None,
        thinking: Level | None = None,
        output_type: type[OutputT] | UnionType | Mapping[str, Any] | None = None,
        tools: bool | Sequence[Callable[..., Any] | Tool] = True,
        builtin_tools: bool | Sequence[str] = True,
        history: Sequence[HistoryMessage] = (),
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_iterations: int | None = None,
        max_duration: float | None = None,
        settings: Mapping[str, Any] | None = None,
        session: str | None = None,
        save: bool = True,
        edits: Edits | None = None,
        write: bool = False,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        ask: Asker | Callable[[Question], Answer] | None = None,
        agent: str | None = None,
        handler: "Handler | None" = None,
        untrusted: Literal["refuse", "ignore", "trust"] = "refuse",
    ) -> None:
        check_choices(edits=(edits, get_args(Edits)), untrusted=(untrusted, ("refuse", "ignore", "trust")))
        check_lists(builtin_tools=builtin_tools, history=history, allow=allow, deny=deny)
        check_kinds(settings=(settings, Mapping), session=(session, str), save=(save, bool), write=(write, bool))
        check_rules(allow, deny)
        own_provider = None if provider is None or isinstance(provider, str) else provider
        if model is not None and not isinstance(model, str):
            raise UsageError(f"Agent: model must be a name, not {type(model).__name__}; an object goes to provider=.")
        if cwd is not None and not Path(cwd).is_dir():
            raise UsageError(f"Agent: cwd {str(cwd)!r} is not a folder.")
        named = {
            "agent.model": model if own_provider is None else model or name_of(own_provider),
            "agent.provider": provider if own_provider is None else "scripted",
            "agent.systemPrompt": system_prompt,
            "agent.thinking": thinking,
            "agent.maxCost": max_cost,
            "agent.maxTokenBudget": max_tokens,
            "agent.maxIterations": max_iterations,
            "agent.maxDuration": max_duration,
        }
        chosen = {key: value for key, value in named.items() if value is not None} | dict(settings or {})
        chosen |= {f"agent.tools.{name}": {"enabled": False} for name in left_out(builtin_tools)}
        self._env = os.environ if env is None else env
        self._output_format: Any = None
        if output_type is not None and output_type is not str:
            from ra.library.output import format_of  # start-up time: jsonschema, only for answers that are not text

            self._output_format = format_of(output_type)
        brought = tools_of(tools)
        self._history = tuple(message_of(message) for message in history)
        if self._history and session is not None:
            raise UsageError("Agent: a session already has a history; give either session or history.")
        resolved = resolve(
            cwd=Path(cwd or Path.cwd()).resolve(),
            env=self._env,
            flags={key: (value, f"Agent({key})") for key, value in chosen.items()},
            agent=agent,
            trusting=untrusted == "trust",
        )
        if resolved.untrusted and untrusted == "refuse":
            raise Refused(
                "This project's configuration wants to run or reach things that you have not trusted: "
                f"{', '.join(item.line for item in resolved.untrusted)}. "
                'Look at it, then run `ra trust`; Agent(untrusted="ignore") runs without it.'
            )
        options = Options(
            tools=bool(brought) or tools is True,
            edits=edits or ("auto" if write else None),
            allow=tuple(allow),
            deny=tuple(deny),
            terminal=ask is not None,
            channel="api",
            agent=agent or "",
        )
        self.warnings: list[str] = list(resolved.notes)
        factory = OwnProvider(own_provider) if own_provider is not None else None
        self.app: App = App(
            resolved,
            options,
            env=self._env,
            warn=self.warnings.append,
            handler=handler,
            providers=factory,
            tools=brought,
        )
        self.app.check()
        self.ended: RunEnded | None = None
        self._resume = session
        self._save = save
        self._ask = asker_of(ask)
        self._session: Session | None = None
        self._memory: Timeline | None = None  # the conversation of an agent that does not save it
        self._running = False

    @property
    def session(self) -> str:
        """The id of the conversation, "" before the first prompt."""
        return self._session.id if self._session else self._resume or ""

    # --- prompts ---

    @explains(OF_A_PROMPT)
    def run(self, prompt: str | Message, *, files: Sequence[Path | str] = ()) -> AsyncGenerator[Event, None]:
        """Streams the events of a run; the last one is RunEnded. References in the prompt are resolved.

        Closing the stream (`contextlib.aclosing`) interrupts the run and keeps the answer so far.
        """
        return EventStream(self._run(prompt, files))

    async def _run(self, prompt: str | Message, files: Sequence[Path | str]) -> AsyncGenerator[Event, None]:
        if self._running:
            raise UsageError("This agent is still answering a prompt. Use another Agent, or wait for its RunEnded.")
        self._running, self.ended = True, None
        try:
            message = await self._message(prompt, files)
            above = RUNNING.get()  # a run that uses this agent as a tool: both share its budget
            run = self._open().prompt(
                message,
                ask=self._ask,
                budget=above if above is not None and self.app.recipe.limits == Limits() else None,
                answer_format=self._output_format,
            )
            async with aclosing(aiter(run)) as events:
                async for event in events:
                    if isinstance(event, RunEnded):
                        self.ended = event
                    yield event
        finally:
            self._running = False

    @explains(OF_A_PROMPT)
    async def answer(self, prompt: str | Message, *, files: Sequence[Path | str] = ()) -> OutputT:
        """The answer alone: text, or a value of `output_type`. Raises Unanswered if there is none."""
        async for _ in self.run(prompt, files=files):
            pass
        assert self.ended is not None
        if self.ended.outcome != "answered":
            raise Unanswered(self.ended)
        text: Any = self.ended.answer
        value: OutputT = self._output_format.value(text) if self._output_format else text
        return value

    @explains(OF_A_PROMPT)
    def ask(self, prompt: str | Message, *, files: Sequence[Path | str] = ()) -> OutputT:
        """The answer, for programs without `async`. The next `ask` continues the conversation."""

        async def once() -> OutputT:
            async with self:
                return await self.answer(prompt, files=files)

        answer: OutputT = _run_sync(once())
        return answer

    @explains(OF_A_PROMPT)
    def stream(self, prompt: str | Message, *, files: Sequence[Path | str] = ()) -> Iterator[Event]:
        """The events of `run`, for programs without `async`. Closing the iterator interrupts the run."""
        events: queue.Queue[Event | BaseException | None] = queue.Queue()
        leave = threading.Event()

        async def pump() -> None:
            async with self, aclosing(self.run(prompt, files=files)) as stream:
                async for event in stream:
                    events.put(event)
                    if leave.is_set():
                        return

        def work() -> None:
            try:
                asyncio.run(pump())
            except BaseException as error:  # noqa: BLE001 - raised to the reader of the events
                events.put(error)
            events.put(None)

        thread = threading.Thread(target=work, name="ra-stream", daemon=True)
        thread.start()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            leave.set()
            thread.join()

    @explains(OF_A_PROMPT)
    def show(self, prompt: str | Message, *, files: Sequence[Path | str] = ()) -> None:
        """Shows the answer as it arrives: rendered in a notebook, else printed. The outcome is in `ended`."""
        from ra.library.notebook import show  # start-up time: only for this call

        show(self.stream(prompt, files=files))

    def _repr_html_(self) -> str:
        """An agent in a notebook: its next request, as a bar of its sources."""
        from ra.library.notebook import context_bar  # start-up time: only for notebooks

        if self._running or self._session is not None:  # the session is open in another event loop
            return f"<small>Session {self.session or 'without a file'}, in use.</small>"

        async def snapshot() -> "Snapshot":
            async with self:
                return await self.context()

        return context_bar(_run_sync(snapshot()))

    # --- the conversation ---

    @property
    def history(self) -> list[Message]:
        """All messages and tool results, oldest first; `Agent(history=…)` continues from there."""
        if self._session is not None:
            events = list(self._session.events())
        elif self._memory is not None:
            events = list(self._memory.events())
        elif self._resume:
            events = list(self.app.store.open(self._resume, write=False).events())
        else:
            return list(self._history)
        return [event.fact.message for event in events if isinstance(event.fact, Said)]

    async def context(self, prompt: str | None = None) -> "Snapshot":
        """The next request, by source, with tokens and price: `.report.rows`, `.report.total`, `.report.cost`."""
        session = self._open()
        return await session.preview(await self._message(prompt, ())) if prompt else await session.context()

    async def compact(self, focus: str = "") -> Checkpointed | None:
        """Compacts the conversation now. None if there was nothing to gain."""
        return await self._open().compact(focus)

    async def recall(self, query: str) -> str:
        """Searches the conversation, or quotes a reference word for word."""
        return await self._open().recall(query)

    def pin(self, id: str, content: str, *, name: str = "") -> bool:
        """Includes a text in every request from now on. False if exactly this text is already pinned."""
        return self._open().pin(id, content, name=name)

    def unpin(self, id: str) -> bool:
        """Removes a pinned text. False if there is no such entry."""
        return self._open().unpin(id)

    def entries(self) -> tuple[Entry, ...]:
        """The pinned texts."""
        return self._open().entries()

    def as_tool(self, *, name: str, description: str) -> Tool:
        """This agent as a tool of another: each call is a separate conversation, and uses the other's budget."""
        from ra.tools.functions import function_tool

        async def run(task: str) -> Output:
            session = self.app.session(self.app.timeline(ephemeral=True))
            prepared = await self.app.prompts.prepare(task)
            above = RUNNING.get() if self.app.recipe.limits == Limits() else None
            nested = session.prompt(prepared.message, ask=self._ask, budget=above, answer_format=self._output_format)
            try:
                async for _ in nested:
                    pass
            finally:
                await session.close()
            end = nested.ended
            assert end is not None, "a run ends with RunEnded"
            spent = Spent(end.model, end.usage, end.dollars, purpose="agent", seconds=round(end.seconds, 3))
            if end.outcome == "answered":
                return text_output(end.answer, facts=(spent,))
            why = f"{name} gave no answer: {end.error or end.outcome}."
            return text_output(why, is_error=True, facts=(spent,))

        run.__name__ = name
        run.__doc__ = description
        return function_tool(run)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"An Agent has no {name!r}{instead(name, METHODS, dir(type(self)))}", name=name, obj=self
            )

    # --- the end ---

    async def close(self) -> None:
        """Closes the connections and the session's file. The next prompt opens them again."""
        if self._session is not None:
            session, self._session = self._session, None
            self._resume = session.id or None
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _run_sync(self.close())

    def _open(self) -> Session:
        if self._session is None and self._save:
            self._session = self.app.open(resume=self._resume, history=self._unsaid())
        elif self._session is None:
            if self._memory is None:
                self._memory = self.app.timeline(self._resume, ephemeral=True, history=self._unsaid())
            self._session = self.app.session(self._memory)
        return self._session

    def _unsaid(self) -> tuple[Message, ...]:
        return () if self._resume else self._history

    async def _message(self, prompt: str | Message, files: Sequence[Path | str]) -> Message:
        check_lists(files=files)
        if isinstance(prompt, Message):
            return prompt
        if not isinstance(prompt, str):
            raise UsageError(f"Agent: a prompt must be text or a Message, not {type(prompt).__name__}.")
        if not prompt.strip() and not files:
            raise UsageError("Agent: the prompt is empty.")
        prepared = await self.app.prompts.prepare(prompt, files=[Path(file) for file in files])
        self.warnings.extend(prepared.warnings)
        return prepared.message


class OwnProvider:
    """Connects every model name to one provider object of the program."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def connect(self, provider: str, model: str, *, retries: Retries | None = None) -> Provider:
        return self._provider

    def info(self, provider: str, model: str) -> ModelInfo:
        return ModelInfo(model)

    def named(self, model: str, in_force: ProviderName) -> tuple[ProviderName, str]:
        return in_force, model

    def address(self, provider: str) -> str:
        return f"python:{name_of(self._provider)}"


@overload
def ask(
    prompt: str | Message, *, output_type: type[OutputT], files: Sequence[Path | str] = (), **options: Any
) -> OutputT: ...


@overload
def ask(prompt: str | Message, *, files: Sequence[Path | str] = (), **options: Any) -> str: ...


def ask(prompt: str | Message, *, files: Sequence[Path | str] = (), **options: Any) -> Any:
    """One prompt, one answer: `ra.ask("…", model="…")`. Takes the options of an Agent."""
    agent: Agent[Any] = Agent(**options)
    return agent.ask(prompt, files=files)


def _run_sync(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A loop is already running, as in a notebook: ours runs in a thread, and this one waits for it.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
