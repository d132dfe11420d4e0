"""Queues tasks: the tasks of a chat run in order, chats run concurrently, the rest waits."""

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from ra.core.events import Event
from ra.core.value import JsonObject
from ra.server.task import Refusal, Task
from ra.session.run import Run

WORKERS = 8
ROOM = 64
MAX_WAIT_S = 60
LAST_WORDS_S = 5.0  # for an interrupted run to record its partial answer and to stop its tools


class TaskAnswer(msgspec.Struct, frozen=True):
    """What the client finally receives. `ran`: the model was called, so another request would run the task twice."""

    status: int
    body: JsonObject
    ran: bool = True
    retry_after_s: int | None = None


class Job:
    """An accepted task. It continues when its client disconnects."""

    def __init__(
        self, task: Task, key: str, done: "asyncio.Future[TaskAnswer]", *, run: str = "", accepted: float = 0
    ) -> None:
        self.id = run or secrets.token_hex(8)
        self.accepted = accepted or time.time()
        self.task = task
        self.key = key  # the Idempotency-Key, or ""
        self.done = done
        self.cancelled = False
        self.clients = 0  # the number of clients that wait for the answer
        self.begun = False
        self._run: Run | None = None
        self._interrupted = False
        self._listeners: list[Callable[[Event], None]] = []

    def follow(self, run: Run) -> Run:
        """Sets the run that works on the job."""
        self.begun = True
        self._run = run
        if self._interrupted:
            run.interrupt()
        return run

    def interrupt(self) -> None:
        self._interrupted = True
        if self._run is not None:
            self._run.interrupt()

    def cancel(self) -> None:
        """Ends the task at a client's request."""
        self.cancelled = True
        self.interrupt()

    def let_go(self) -> None:
        """Drops what an ended job no longer needs, so that its session and its message do not stay in memory."""
        self._run = None
        self._listeners.clear()
        context = msgspec.structs.replace(self.task.context, more={})
        self.task = msgspec.structs.replace(self.task, message="", context=context)

    def tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Whether a client waits, which would send the task again if the server stopped."""
        self.clients += 1
        try:
            yield
        finally:
            self.clients -= 1

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Subscribes to the run's events; returns the function that unsubscribes."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


Work = Callable[[Job], Awaitable[TaskAnswer]]


class TaskQueue:
    """Accepts tasks: at most `workers` run and at most `room` wait.

    `crashed` is called for a bug in the work: that task is answered with 500, and the others go on.
    """

    def __init__(
        self,
        work: Work,
        *,
        crashed: Callable[[Job, BaseException], None],
        workers: int = WORKERS,
        room: int = ROOM,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._crashed = crashed
        self._workers, self._room = workers, room
        self._clock = clock
        self._running: dict[tuple[str, str, str], Job] = {}
        self._waiting: list[Job] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._usual_s = 1.0  # the recent duration of a task
        self._hurried = asyncio.Event()
        self.stopping = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def need_room(self, task: Task) -> None:
        """Raises Refusal: 429 if the task would have to wait and the queue is full, 503 if the server is stopping."""
        if self.stopping:
            raise Refusal(503, "The server is stopping.", retry_after_s=5)
        at_once = len(self._running) < self._workers and task.chat not in self._running
        if not at_once and len(self._waiting) >= self._room:
            # The time until the queue is half empty: a client that comes back then finds room, and no worker has been
            # idle.
            wait_s = math.ceil(self._usual_s * len(self._waiting) / self._workers / 2)
            raise Refusal(
                429,
                f"Busy: {self.running} tasks are running and {self.waiting} are waiting.",
                retry_after_s=min(max(wait_s, 1), MAX_WAIT_S),
            )

    def submit(self, task: Task, key: str = "") -> Job:
        """Raises Refusal."""
        self.need_room(task)
        job = Job(task, key, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._begin_what_can()
        return job

    def withdraw(self, job: Job) -> bool:
        """Removes a job from the queue; False if it has begun."""
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        return True

    async def stop(self, grace_s: float) -> list[Job]:
        """Accepts no more tasks; interrupts those that outlast the grace. Returns the jobs that never began."""
        self.stopping = True
        hurried = asyncio.create_task(self._hurried.wait())
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._tasks and not hurried.done():
                    await asyncio.wait({*self._tasks, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        never, self._waiting = self._waiting, []
        for job in self._running.values():
            job.interrupt()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORDS_S)
        return never

    def hurry(self) -> None:
        """Ends the grace: a second signal arrived."""
        self._hurried.set()

    def _begin_what_can(self) -> None:
        behind: set[tuple[str, str, str]] = set(self._running)
        for job in list(self._waiting):
            if len(self._running) >= self._workers:
                return
            chat = job.task.chat
            if chat not in behind:
                self._waiting.remove(job)
                self._running[chat] = job
                task = asyncio.create_task(self._do(job))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            behind.add(chat)

    async def _do(self, job: Job) -> None:
        began = self._clock()
        work = asyncio.ensure_future(self._work(job))
        await asyncio.wait({work})
        self._usual_s += 0.2 * (self._clock() - began - self._usual_s)
        del self._running[job.task.chat]
        if bug := work.exception():
            self._crashed(job, bug)
            job.done.set_result(TaskAnswer(500, {"error": "The task failed: a bug in the server. See its log."}))
        else:
            job.done.set_result(work.result())
        self._begin_what_can()
