"""A real session against a loopback server, in one process: what a program that imports ra would have."""

import asyncio
from typing import Any

from ra.app import App
from ra.core.events import Event, RunEnded, TextDelta
from ra.core.messages import say
from ra.session.session import Session
from ra.testing.kit import app as world

__all__ = ["ended", "events_of", "interrupted", "run", "world"]


async def events_of(session: Session, prompt: str) -> list[Event]:
    return [event async for event in session.prompt(say("user", prompt))]


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
        going = session.prompt(say("user", "Tell me a story."))
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
