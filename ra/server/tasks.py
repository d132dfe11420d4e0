"""The interface between the routes and a queue of tasks, in this process or in a database that many share."""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from ra.server.agents import Agents
from ra.server.bodies import RunBody
from ra.server.log import Log
from ra.server.metrics import Load, Metrics
from ra.server.queue import TaskAnswer
from ra.server.task import Task


class Accepted(msgspec.Struct, frozen=True):
    """An accepted task, by the id of its run; or the answer that its Idempotency-Key already has."""

    run: str
    answer: TaskAnswer | None = None


class RunFilter(msgspec.Struct, frozen=True):
    """A client's selection of runs; None means all."""

    state: str | None = None
    agent: str | None = None
    chat_id: str | None = None
    limit: int = 50


class Tasks(Protocol):
    """Accepts tasks and reports on them. Tasks of one chat run in order, one at a time."""

    agents: Agents
    log: Log
    metrics: Metrics

    @property
    def stopping(self) -> bool: ...

    async def trouble(self) -> str:
        """Why no task can be run now, such as an unreachable or damaged database; "" if one can."""
        ...

    async def ready(self) -> None:
        """Waits until tasks can be taken."""
        ...

    async def load(self) -> Load:
        """The number of running and waiting tasks."""
        ...

    def current(self) -> tuple[int, int]:
        """The same, from memory."""
        ...

    async def take(self, task: Task, key: str | None) -> Accepted:
        """Durable on return, if the queue is. Raises Refusal."""
        ...

    async def answer(self, run: str) -> TaskAnswer:
        """Waits for the end of a run that was accepted here."""
        ...

    async def run(self, run: str) -> RunBody | None: ...

    async def runs(self, wanted: RunFilter) -> list[RunBody]:
        """The runs, newest first."""
        ...

    async def cancel(self, run: str) -> RunBody | None:
        """Ends a task, as Ctrl-C ends a run: its work so far stays in the session. None: there is no such run."""
        ...

    def follow(self, run: str, after: int) -> AsyncIterator[bytes]:
        """The events of a run as server-sent events, from number `after` + 1 until its end."""
        ...

    def hurry(self) -> None:
        """Ends the grace: a second signal arrived."""
        ...

    async def serve(self) -> None:
        """The permanent duties; runs until it is cancelled."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Accepts no more tasks; lets those that run end, or records that they did not."""
        ...
