"""What the routes ask of a queue of tasks, whether it is in this process or in a database that many share."""

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
    """A task that was taken, by the id of its run; or the answer that its Idempotency-Key already has."""

    run: str
    answer: TaskAnswer | None = None


class RunFilter(msgspec.Struct, frozen=True):
    """Which runs a client wants to see; None means all."""

    state: str | None = None
    agent: str | None = None
    chat_id: str | None = None
    limit: int = 50


class Tasks(Protocol):
    """Takes tasks and tells what becomes of them. Tasks of one chat run in order, one at a time."""

    agents: Agents
    log: Log
    metrics: Metrics

    @property
    def stopping(self) -> bool: ...

    @property
    def unready(self) -> str:
        """Why no task can be taken now, such as a database that is away; "" when one can."""
        ...

    async def ready(self) -> None:
        """Waits until tasks can be taken."""
        ...

    async def load(self) -> Load:
        """How many tasks run and wait."""
        ...

    def current(self) -> tuple[int, int]:
        """The same, as known without asking anybody."""
        ...

    async def take(self, task: Task, key: str | None) -> Accepted:
        """Durable when this returns, where the queue is. Raises Refusal."""
        ...

    async def answer(self, run: str) -> TaskAnswer:
        """Waits for the end of a run that was taken here."""
        ...

    async def run(self, run: str) -> RunBody | None: ...

    async def runs(self, wanted: RunFilter) -> list[RunBody]:
        """The newest first."""
        ...

    async def cancel(self, run: str) -> RunBody | None:
        """End a task, as Ctrl-C ends a run: what was done so far stays in the session. None: there is no such run."""
        ...

    def follow(self, run: str, after: int) -> AsyncIterator[bytes]:
        """The events of a run as server-sent events, from number `after` + 1 on, until it has ended."""
        ...

    def hurry(self) -> None:
        """Asked to stop once more: the grace is over."""
        ...

    async def serve(self) -> None:
        """What has to be done all the time, until it is cancelled."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Take no more; let tasks end, or record that they did not."""
        ...
