"""A conversation in process: real app, real store, a real server, and a clock that the test moves."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from ra.app import App
from ra.config.load import resolve
from ra.config.options import Options
from ra.context.compose.strategy import TaskOrigin
from ra.core.events import Event, RunEnded
from ra.core.facts import Fact
from ra.core.messages import Message, say
from ra.providers.script import Step
from ra.session.log import Line
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

NOON = 1_800_000_000.0  # a Friday in January, 08:00 UTC


class Talk:
    """Every prompt is a process of its own: the app is built anew and the session is opened again from the disk."""

    def __init__(self, shell: Shell, server: LoopbackServer, **settings: Any) -> None:
        shell.serve(server)
        self.shell = shell
        self.server = server
        self.settings = settings
        self.now = NOON
        self.session: str | None = None
        self.events: list[Event] = []
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def app(self, strategy: str | None = None) -> App:
        flags = {key.replace("__", "."): (value, "test") for key, value in self.settings.items()}
        if strategy:
            flags["session.contextStrategy"] = (strategy, "test")
        resolved = resolve(cwd=self.shell.project, env=self.shell.env, flags=flags)
        return App(
            resolved,
            Options(channel="telegram", agent="ops"),
            env=self.shell.env,
            warn=self.warnings.append,
            clock=self.clock,
            log=self,
        )

    def write(self, line: Line) -> None:
        """A line of the log."""
        self.lines.append(line.text)

    def clock(self) -> float:
        return self.now

    def say(self, prompt: str | Message, strategy: str | None = None, task: TaskOrigin | None = None) -> RunEnded:
        async def once() -> RunEnded:
            app = self.app(strategy)
            session = app.open(resume=self.session)
            message = say("user", prompt) if isinstance(prompt, str) else prompt
            run = session.prompt(message, task=task or TaskOrigin("ops", "telegram", "42", "ana"))
            async for event in run:
                self.events.append(event)
            self.session = session.id
            await session.close()
            app.store.close()
            assert run.ended is not None
            return run.ended

        return asyncio.run(once())

    def facts(self) -> list[Fact]:
        app = self.app()
        return [event.fact for event in app.store.open(self.session or "", write=False).events()]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Requests of the main model."""
        return [body for body in self.server.bodies if "haiku" not in body["model"]]


def answering(plan: str | Step, answer: str = "I look after servers.") -> Callable[[dict[str, Any]], Step]:
    """A server whose small model plans so, and whose other models answer so."""

    def step(body: dict[str, Any]) -> Step:
        if "haiku" in body["model"]:
            return plan if isinstance(plan, Step) else Step(text=plan)
        return Step(text=answer)

    return step


def shown(body: dict[str, Any]) -> str:
    """Everything that a request says, without its marks."""
    return json.dumps([body.get("system"), body["messages"]], ensure_ascii=False)
