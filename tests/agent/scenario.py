"""A real App against a loopback server, in one process: what a program that imports ra would have."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ra.agent.session import Session
from ra.app import App, Options
from ra.config.load import resolve
from ra.core.events import Event, RunEnded, TextDelta
from ra.core.messages import say
from ra.core.ports import Provider
from ra.providers.retry import Retries
from ra.testing.server import LoopbackServer

MODELS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.2", "openai-chat": "llama-x", "google": "gemini-2.5-pro"}


class World(App):
    """An App whose provider waits on the clock that it is given."""

    retries: Retries | None = None

    def connect(self, *, retries: Retries | None = None) -> Provider:
        return super().connect(retries=retries or self.retries)


def world(
    folder: Path,
    server: LoopbackServer,
    dialect: str,
    *,
    retries: Retries | None = None,
    timeout_s: float = 60,
    options: Options | None = None,
    home: str = "data",
    made: type[World] = World,
    **settings: Any,
) -> World:
    """`settings` are dotted keys of the configuration, below `agent` unless they begin with `session`; dots are written
    as two underscores."""
    (folder / "project" / ".git").mkdir(parents=True, exist_ok=True)
    provider = {"baseUrl": server.url, "apiKey": "k", "timeout": timeout_s}
    flags: Mapping[str, Any] = {
        "agent.provider": dialect,
        "agent.model": MODELS[dialect],
        f"app.providers.{dialect}": provider,
    } | {("" if key.startswith("session__") else "agent.") + key.replace("__", "."): settings[key] for key in settings}
    env = {"HOME": str(folder / "home"), "RA_HOME": str(folder / home), "PATH": "/usr/bin:/bin"}
    resolved = resolve(
        cwd=(folder / "project").resolve(), env=env, flags={key: (value, "test") for key, value in flags.items()}
    )
    app = made(resolved, options or Options(write=True), env=env, warn=lambda _: None)
    app.retries = retries
    return app


async def events_of(session: Session, prompt: str) -> list[Event]:
    return [event async for event in session.start(say("user", prompt))]


def run(app: App, prompt: str, **opening: Any) -> list[Event]:
    """One prompt in a session of its own, or in one that `opening` names; closed behind it."""

    async def once() -> list[Event]:
        session = app.open(**opening)
        try:
            return await events_of(session, prompt)
        finally:
            await session.close()

    return asyncio.run(once())


def interrupted(app: App) -> RunEnded:
    """Ask for a story, and stop it at its first words."""

    async def main() -> RunEnded:
        session = app.open()
        going = session.start(say("user", "Tell me a story."))
        async for event in going:
            if isinstance(event, TextDelta):
                going.interrupt()
        await session.close()
        assert going.ended is not None
        return going.ended

    return asyncio.run(main())


def ended(events: list[Event]) -> RunEnded:
    last = events[-1]
    assert isinstance(last, RunEnded)
    return last
