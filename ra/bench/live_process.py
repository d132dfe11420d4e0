"""Asks messages in process, in sessions in memory, so that the bench leaves no trace in your history."""

import asyncio
from types import TracebackType

from ra.app import App
from ra.bench.live import LiveAnswer, LivePlan, Order
from ra.context.compose.strategy import task
from ra.core.events import RunEnded
from ra.core.messages import say
from ra.session.session import Session
from ra.timeline.in_memory import MemoryTimeline

ENDS = {"empty": "The model gave an empty answer.", "refused": "The model refused to answer."}


class InProcess:
    """Asks an App. The turns of a chat go to one session, which is closed when the next chat begins."""

    def __init__(self, app: App, plan: LivePlan) -> None:
        self._app = app
        self._plan = plan
        self._runner = asyncio.Runner()  # turns Ctrl-C into a cancelled task, so that sessions still close
        self._chat = ""
        self._session: Session | None = None

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        self._runner.close()

    def __call__(self, order: Order) -> LiveAnswer:
        if order.chat_id != self._chat or self._session is None:
            self._leave()
            self._chat, self._session = order.chat_id, self._runner.run(self._enter(order))
        return self._runner.run(self._ask(self._session, order))

    async def _enter(self, order: Order) -> Session:
        timeline = MemoryTimeline(order.chat_id, clock=self._app.clock)
        return self._app.session(timeline, strategy=order.strategy)

    async def _ask(self, session: Session, order: Order) -> LiveAnswer:
        origin = task(self._plan.agent, {"channel": self._plan.channel, "chatId": order.chat_id, "sender": "bench"})
        run = session.prompt(say("user", order.message), task=origin)
        async for _ in run:
            pass
        assert run.ended is not None, "a run ends with RunEnded"
        configured = session.configured
        return _told(run.ended, configured.strategy if configured else "")

    def _leave(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            self._runner.run(session.close())


def _told(end: RunEnded, followed: str) -> LiveAnswer:
    error = "" if end.outcome == "answered" else ENDS.get(end.outcome) or end.error or end.outcome
    return LiveAnswer(end.answer, end.usage, end.dollars, end.seconds, followed, error)
