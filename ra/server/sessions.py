"""The sessions of chats: open while a chat is busy, closed afterwards."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

from ra.app import App
from ra.context.compose.strategy import TaskOrigin as Origin
from ra.context.compose.strategy import task as origin
from ra.core.errors import RaError, SessionInUse
from ra.core.facts import Interrupted, Said
from ra.core.messages import Message, Text
from ra.server.agents import Agents
from ra.server.log import Log
from ra.server.task import Task
from ra.session.session import Session
from ra.timeline import folds
from ra.timeline.store import StoredTimeline

IDLE_S = 20.0  # how long a chat keeps its session open, so that no other process can write it
HANDOVER_S = 10.0  # how long to wait for a chat that another process writes
HANDOVER_LOOK_S = 0.05
MAX_OPEN = 64

Chat = tuple[str, str, str]


class Neighbours(Protocol):
    """What a process knows about the others that use the same store."""

    @property
    def alone(self) -> bool: ...


class OpenSession:
    """An open session, its options, and the lock of its chat, which the running task holds."""

    def __init__(
        self, app: App, strategy: str | None, session: Session, timeline: StoredTimeline, turn: asyncio.Lock
    ) -> None:
        self.app = app
        self.strategy = strategy
        self.session = session
        self.timeline = timeline
        self.turn = turn
        self.used = 0.0

    async def close(self) -> None:
        await self.session.close()
        self.timeline.close()  # on a full disk the session has given it up already, but the lock is still held


class Chats:
    """Opens sessions for tasks; a chat has one task at a time.

    The queue ensures that, too, but a worker that was presumed dead may still run the last task of a chat when the next
    one begins.
    """

    def __init__(
        self,
        agents: Agents,
        presence: Neighbours,
        log: Log,
        *,
        idle_s: float = IDLE_S,
        most: int = MAX_OPEN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agents = agents
        self._presence = presence
        self._log = log
        self._idle_s = idle_s
        self._most = most
        self._clock = clock
        self._open: dict[Chat, OpenSession] = {}
        self._closing: dict[Chat, asyncio.Task[None]] = {}
        self._turns: WeakValueDictionary[Chat, asyncio.Lock] = WeakValueDictionary()

    async def enter(self, task: Task) -> OpenSession:
        """The session of the task's chat. Raises SessionInUse while another process writes it, RaError."""
        app, chat = self._agents.app(task), task.chat
        turn = self._turns.setdefault(chat, asyncio.Lock())
        await turn.acquire()
        try:
            live = self._open.get(chat)
            if live is not None and (live.app is not app or live.strategy != task.strategy):
                self._let_go(chat)
            if chat in self._closing:
                await asyncio.wait({self._closing[chat]})
            live = self._open.pop(chat, None) or await self._opened(app, task, turn)
        except BaseException:
            turn.release()
            raise
        self._open[chat] = live  # last: the first entry is the one that has been idle for longest
        return live

    async def _opened(self, app: App, task: Task, turn: asyncio.Lock) -> OpenSession:
        """Waits while another server holds the chat: it releases the chat at the end of its task."""
        give_up = self._clock() + HANDOVER_S
        while True:
            try:
                return _opened(app, task, turn)
            except SessionInUse:
                if self._presence.alone or self._clock() >= give_up:
                    raise
            await asyncio.sleep(HANDOVER_LOOK_S)

    def leave(self, task: Task, *, keep: bool) -> None:
        """Ends the task. `keep`: its session can be used again."""
        live = self._open[task.chat]
        live.used = self._clock()
        live.turn.release()
        if not keep or not live.session.saved or not self._presence.alone:
            self._let_go(task.chat)
        idle = [chat for chat, one in self._open.items() if not one.turn.locked()]
        for chat in idle[: max(0, len(self._open) - self._most)]:
            self._let_go(chat)

    async def sweep(self) -> None:
        """Closes sessions that have been idle for a while; never returns."""
        while True:
            await asyncio.sleep(min(1.0, self._idle_s / 4))
            # Another server may be waiting for any of them.
            idle_since = self._clock() - (self._idle_s if self._presence.alone else 0)
            for chat in [chat for chat, one in self._open.items() if not one.turn.locked() and one.used <= idle_since]:
                self._let_go(chat)

    def _let_go(self, chat: Chat) -> None:
        """Closes a session in the background; a task of its chat waits meanwhile, since the lock is still held."""
        closing = asyncio.create_task(self._close(self._open.pop(chat)))
        self._closing[chat] = closing
        closing.add_done_callback(lambda _: self._closing.pop(chat))

    async def _close(self, live: OpenSession) -> None:
        try:
            await live.close()
        except RaError as error:
            self._log.say("lost", str(error), level="error")

    def record_unanswered(self, task: Task) -> None:
        """Records a message that was accepted but never begun; the next turn of its chat sees it. Raises RaError."""
        timeline = _timeline(self._agents.app(task), task)
        try:
            timeline.append(Said(message_of(task)), Interrupted("the server stopped before this was begun"))
        finally:
            timeline.close()

    def record_interrupted(self, task: Task) -> None:
        """Records that the worker died. Raises RaError; SessionInUse if another process has the chat already."""
        timeline = _timeline(self._agents.app(task), task)
        try:
            timeline.append(*folds.repair(timeline.events()), Interrupted("the worker died"))
        finally:
            timeline.close()

    async def close(self) -> None:
        for chat in list(self._open):
            self._let_go(chat)
        if self._closing:
            await asyncio.wait(self._closing.values())


def message_of(task: Task) -> Message:
    """The message, unexpanded: the author is not the user of this machine."""
    return Message("user", (Text(task.message),))


def origin_of(task: Task) -> Origin:
    """The sender and the place of a task, in the form that strategies expect."""
    place = {"channel": task.context.channel, "chatId": task.context.chat_id, "sender": task.context.sender}
    return origin(task.agent, task.context.more | place)


def _opened(app: App, task: Task, turn: asyncio.Lock) -> OpenSession:
    timeline = _timeline(app, task)
    try:
        session = app.session(timeline, strategy=task.strategy)
        session.ready()
    except BaseException:
        timeline.close()
        raise
    return OpenSession(app, task.strategy, session, timeline, turn)


def _timeline(app: App, task: Task) -> StoredTimeline:
    return app.store.open_chat(str(app.resolved.root), *task.chat)
