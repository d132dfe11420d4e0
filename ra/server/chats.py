"""Where does a chat's conversation live? In a session that stays open while the chat is busy, and is closed after."""

import asyncio
import time
from collections.abc import Callable

from ra.agent.session import Session
from ra.app import App
from ra.app.readonly import bar
from ra.context.strategies.channels import Task as Origin
from ra.context.strategies.channels import task as origin
from ra.core.facts import Interrupted, Said
from ra.core.messages import Message, Text
from ra.server.agents import Agents
from ra.server.task import Task
from ra.timeline.sqlite import SqliteTimeline

IDLE_S = 20.0  # so long a chat keeps its session to itself: no other process can write it
MAX_OPEN = 64

Chat = tuple[str, str, str]


class Live:
    """An open session and what it was opened with."""

    def __init__(self, app: App, strategy: str | None, session: Session, timeline: SqliteTimeline) -> None:
        self.app = app
        self.strategy = strategy
        self.session = session
        self.timeline = timeline
        self.busy = True
        self.used = 0.0

    async def close(self) -> None:
        await self.session.close()
        self.timeline.close()  # the session has left it when the disk was full, but its lock is held


class Chats:
    """Opens sessions for tasks. The desk sees to it that a chat has one task at a time."""

    def __init__(
        self,
        agents: Agents,
        *,
        idle_s: float = IDLE_S,
        most: int = MAX_OPEN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agents = agents
        self._idle_s = idle_s
        self._most = most
        self._clock = clock
        self._open: dict[Chat, Live] = {}
        self._closing: dict[Chat, asyncio.Task[None]] = {}

    async def enter(self, task: Task) -> Live:
        """The session of the task's chat. Raises SessionInUse while another process writes it, RaError."""
        app, chat = self._agents.app(task), task.chat
        live = self._open.get(chat)
        if live is not None and (live.app is not app or live.strategy != task.strategy):
            self._let_go(chat)
        if chat in self._closing:
            await asyncio.wait({self._closing[chat]})
        live = self._open.pop(chat, None) or _opened(app, task)
        live.busy = True
        self._open[chat] = live  # at the end: the first is the one that was idle for longest
        return live

    def leave(self, task: Task, *, keep: bool) -> None:
        """The task is done. `keep`: its session can be used again."""
        live = self._open[task.chat]
        live.busy, live.used = False, self._clock()
        if not keep or live.session.journal.torn_off:
            self._let_go(task.chat)
        idle = [chat for chat, one in self._open.items() if not one.busy]
        for chat in idle[: max(0, len(self._open) - self._most)]:
            self._let_go(chat)

    async def sweep(self) -> None:
        """Close what nobody has used for a while, for ever."""
        while True:
            await asyncio.sleep(self._idle_s / 4)
            old = self._clock() - self._idle_s
            for chat in [chat for chat, one in self._open.items() if not one.busy and one.used <= old]:
                self._let_go(chat)

    def _let_go(self, chat: Chat) -> None:
        """Close a session in the background; who enters its chat meanwhile waits, since its lock is still held."""
        closing = asyncio.create_task(self._open.pop(chat).close())
        self._closing[chat] = closing
        closing.add_done_callback(lambda _: self._closing.pop(chat))

    def record_unanswered(self, task: Task) -> None:
        """Keep a message that was taken and never begun; the next turn of its chat sees it. Raises RaError."""
        timeline = _timeline(self._agents.app(task), task)
        try:
            timeline.append(Said(message_of(task)), Interrupted("the server stopped before this was begun"))
        finally:
            timeline.close()

    async def close(self) -> None:
        for chat in list(self._open):
            self._let_go(chat)
        if self._closing:
            await asyncio.wait(self._closing.values())


def message_of(task: Task) -> Message:
    """The message as it came. It is not expanded: who wrote to a chat is not the user of this machine."""
    return Message("user", (Text(task.message),))


def origin_of(task: Task) -> Origin:
    """Who asked and from where, as the strategies want to know it."""
    place = {"channel": task.context.channel, "chatId": task.context.chat_id, "sender": task.context.sender}
    return origin(task.agent, task.context.more | place)


def _opened(app: App, task: Task) -> Live:
    timeline = _timeline(app, task)
    try:
        session = app.session(timeline, strategy=task.strategy)
    except BaseException:
        timeline.close()
        raise
    if task.tools == "read-only":
        bar(session.toolbox)
    return Live(app, task.strategy, session, timeline)


def _timeline(app: App, task: Task) -> SqliteTimeline:
    agent, channel, chat_id = task.chat
    found = app.store.find(agent, channel, chat_id)
    if found is not None:
        return app.store.open(found, write=True)
    return app.store.create(str(app.resolved.root), agent=agent, channel=channel, chat_id=chat_id)
