"""Runs a task in the session of its chat and produces its answer, for every kind of queue."""

import time
from typing import Protocol

import msgspec

from ra.core.errors import RaError, SessionInUse, StoreAway, StoreError
from ra.core.events import Warned
from ra.core.model import TokenCounts
from ra.server import responses
from ra.server.agents import Agents
from ra.server.log import Log
from ra.server.metrics import Metrics
from ra.server.queue import Job, TaskAnswer
from ra.server.sessions import Chats, Neighbours, message_of, origin_of
from ra.server.task import Task, TaskContext
from ra.session.log import LogLevel

STORE_S = 2  # delay before the next attempt to use an unusable store
REFUSED_S = 5.0  # how long the server says that it is not ready after its store refused a task
IN_USE_S = 5  # delay before the next attempt to open a session that another process writes


class RunJournal(Protocol):
    """Where a queue records that the model may have been called: from then on no other worker gets the task."""

    async def begin(self, job: Job) -> bool:
        """Durable on return. False: another worker has begun the task, and it must not run here. Raises RaError."""
        ...


class Executor:
    """Does everything between a task that is due and its answer."""

    def __init__(self, agents: Agents, presence: Neighbours, log: Log) -> None:
        self.log = log
        self._agents = agents
        self.metrics = Metrics()
        self.chats = Chats(agents, presence, log)
        self._refusal = ""
        self._refused_at = -REFUSED_S

    @property
    def store_trouble(self) -> str:
        """Why the store refused the last task; "" if it did not, or if that was more than `REFUSED_S` ago."""
        return self._refusal if time.monotonic() < self._refused_at + REFUSED_S else ""

    def warm_up(self) -> None:
        try:
            self._agents.app(Task("", "", TaskContext("api", "warm-up"))).warm_up()
        except RaError as error:
            self.log.say("warm-up", str(error), level="warning")

    async def answer(self, job: Job, journal: RunJournal) -> TaskAnswer | None:
        """None if another worker has begun the task.

        Raises SessionInUse while another process writes the session, StoreAway while the database is unreachable.
        """
        task = job.task
        try:
            live = await self.chats.enter(task)
        except (SessionInUse, StoreAway):  # temporary: the task still has to be done
            raise
        except RaError as error:
            self.tell(task, f"task {task.name} cannot run: {error}", level="error")
            if isinstance(error, StoreError):  # a full disk, a database under repair: may be temporary
                self._refusal, self._refused_at = str(error), time.monotonic()
                return TaskAnswer(503, {"error": str(error)}, ran=False, retry_after_s=STORE_S)
            return TaskAnswer(500, {"error": str(error)}, ran=False)
        self._refusal = ""
        complete = False
        try:
            if not await journal.begin(job):
                complete = True
                return None
            if live.app.telemetry is not None:
                live.app.telemetry.wait.record(max(0.0, time.time() - job.accepted))
            run = job.follow(live.session.prompt(message_of(task), task=origin_of(task)))
            async for event in run:
                job.tell(event)
                if isinstance(event, Warned):
                    self.tell(task, f"task {task.name}: {event.text}", level="warning")
            assert run.ended is not None, "a run ends with RunEnded"
            configured = live.session.configured
            strategy = configured.strategy if configured else task.strategy or ""
            complete = True
        finally:
            self.chats.leave(task, keep=complete)
        end = run.ended
        self.metrics.count(end)
        cost = f", ${float(end.dollars):.4f}" if end.dollars else ""
        self.tell(
            task,
            f"task {task.name} {end.outcome} in {end.seconds:.1f} s ({strategy}, "
            f"{end.usage.total_input} in, {end.usage.output} out{cost}){': ' if end.error else ''}{end.error}",
            level="warning" if end.error else "info",
            session=end.session,
            run=job.id,
            outcome=end.outcome,
            seconds=round(end.seconds, 3),
            dollars=float(end.dollars) if end.dollars else None,
            tokens=msgspec.to_builtins(TokenCounts.of(end.usage)),
        )
        return responses.answer(end, strategy=strategy, cancelled=job.cancelled)

    def tell(self, task: Task, text: str, *, level: LogLevel, **more: object) -> None:
        self.log.say("task", text, level=level, agent=task.agent or "ra", place=task.name, **more)
