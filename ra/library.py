"""How does a Python program use ra? `Agent(...).ask("…")`, or `async for event in agent.run("…")`."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from ra.agent.session import Session
from ra.app import App, Options, parts
from ra.config.load import resolve
from ra.core.asking import Asker
from ra.core.errors import RaError, Refused, UsageError
from ra.core.events import Event, RunEnded
from ra.core.ports import Timeline

if TYPE_CHECKING:
    from ra.agent.handler import Handler


class Unanswered(RaError):
    """A run that ended without an answer; `ended` says how, and what it cost."""

    def __init__(self, ended: RunEnded) -> None:
        super().__init__(ended.error or f"The run ended: {ended.outcome}.")
        self.ended = ended


class Agent:
    """One conversation with a model. Prompts follow each other; `session` goes on with one that is stored.

    Settings are those of ra.yaml, by their dotted keys: `Agent(model="…", settings={"agent.maxCost": 0.5})`.
    The configuration files of `cwd` hold as they do on the command line. A `handler(ctx, wake)` composes the context
    and runs the agent, as that of an agent file does. What a project's configuration may run needs `ra trust`, as ever.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        provider: str | None = None,
        system_prompt: str | None = None,
        settings: Mapping[str, Any] | None = None,
        session: str | None = None,
        save: bool = True,
        tools: bool = True,
        write: bool = False,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        ask: Asker | None = None,
        agent: str | None = None,
        handler: "Handler | None" = None,
        untrusted: Literal["refuse", "ignore", "trust"] = "refuse",
    ) -> None:
        named = {"agent.model": model, "agent.provider": provider, "agent.systemPrompt": system_prompt}
        chosen = {key: value for key, value in named.items() if value is not None} | dict(settings or {})
        self._env = os.environ if env is None else env
        resolved = resolve(
            cwd=Path(cwd or Path.cwd()).resolve(),
            env=self._env,
            flags={key: (value, f"Agent({key})") for key, value in chosen.items()},
            agent=agent,
            trusting=untrusted == "trust",
        )
        if resolved.untrusted and untrusted == "refuse":
            raise Refused(
                "This project's configuration wants to run or reach what you have not agreed to: "
                f"{', '.join(item.line for item in resolved.untrusted)}. "
                'Look at it, then run `ra trust`; Agent(untrusted="ignore") goes on without it.'
            )
        options = Options(
            tools=tools, write=write, allow=tuple(allow), deny=tuple(deny), channel="api", agent=agent or ""
        )
        self.warnings: list[str] = list(resolved.notes)
        self.app: App = App(resolved, options, env=self._env, warn=self.warnings.append, handler=handler)
        self.ended: RunEnded | None = None
        self._resume = session
        self._save = save
        self._ask = ask
        self._session: Session | None = None
        self._memory: Timeline | None = None  # the conversation, if it is not saved
        self._running = False

    @property
    def session(self) -> str:
        """The id of the conversation, "" before the first prompt."""
        return self._session.id if self._session else self._resume or ""

    async def run(self, prompt: str, *, files: Sequence[Path | str] = ()) -> AsyncGenerator[Event, None]:
        """Everything that happens, as it happens; the last event is RunEnded. References in the prompt are resolved.

        Closing the stream interrupts the run (`contextlib.aclosing`): what was said until then is kept.
        """
        if self._running:
            raise UsageError("This agent is still at work on a prompt. Take another Agent, or wait for its RunEnded.")
        self._running, self.ended = True, None
        try:
            prepared = await self.app.prepare(prompt, files=[Path(file) for file in files])
            self.warnings.extend(prepared.warnings)
            run = self._open().start(prepared.message, ask=self._ask)
            async with aclosing(aiter(run)) as events:
                async for event in events:
                    if isinstance(event, RunEnded):
                        self.ended = event
                    yield event
        finally:
            self._running = False

    def _open(self) -> Session:
        if self._session is None and self._save:
            self._session = self.app.open(resume=self._resume)
        elif self._session is None:
            if self._memory is None:
                self._memory = parts.timeline(self.app, self._resume, ephemeral=True)
            self._session = self.app.session(self._memory)
        return self._session

    async def answer(self, prompt: str, *, files: Sequence[Path | str] = ()) -> str:
        """The answer alone. Raises Unanswered when there is none."""
        async for _ in self.run(prompt, files=files):
            pass
        assert self.ended is not None
        if self.ended.outcome != "answered":
            raise Unanswered(self.ended)
        return self.ended.answer

    async def close(self) -> None:
        """Let go of connections and of the session's file. The next prompt opens them again."""
        if self._session is not None:
            session, self._session = self._session, None
            self._resume = session.id or None
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def ask(self, prompt: str, *, files: Sequence[Path | str] = ()) -> str:
        """The answer, for programs that do not use `async`. The conversation goes on with the next `ask`."""

        async def once() -> str:
            async with self:
                return await self.answer(prompt, files=files)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(once())
        # A loop is running already, as in a notebook: ours runs in a thread, and this one waits for it.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, once()).result()


def ask(prompt: str, **options: Any) -> str:
    """One prompt, one answer: `ra.ask("…", model="…")`."""
    return Agent(**options).ask(prompt)
