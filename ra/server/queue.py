"""Queue tasks: those of a chat run in order, chats run side by side, the rest waits."""

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
LAST_WORDS_S = 5.0  # for an interrupted run to record what there is and to end its tools


class TaskAnswer(msgspec.Struct, frozen=True):
    """What the client gets in the end. `ran`: the model was asked, so asking again would be a second time."""

    status: int
    body: JsonObject
    ran: bool = True
    retry_after_s: int | None = None


class Job:
    """A task that was taken. It goes on when its client goes away."""

    def __init__(
        self, task: Task, key: str, done: "asyncio.Future[TaskAnswer]", *, run: str = "", accepted: float = 0
    ) -> None:
        self.id = run or secrets.token_hex(8)
        self.accepted = accepted or time.time()
        self.task = task
        self.key = key  # the Idempotency-Key, or ""
        self.done = done
        self.cancelled = False
        self.clients = 0  # how many wait for the answer
        self._run: Run | None = None
        self._interrupted = False
        self._listeners: list[Callable[[Event], None]] = []

    @property
    def begun(self) -> bool:
        return self._run is not None

    def follow(self, run: Run) -> Run:
        """This is the run that works on it."""
        self._run = run
        if self._interrupted:
            run.interrupt()
        return run

    def interrupt(self) -> None:
        self._interrupted = True
        if self._run is not None:
            self._run.interrupt()

    def cancel(self) -> None:
        """A client asked to end it."""
        self.cancelled = True
        self.interrupt()

    def tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """A client waits: it would send the task again if the server stopped."""
        self.clients += 1
        try:
            yield
        finally:
            self.clients -= 1

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Hear the run's events; returns how to stop hearing them."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


Work = Callable[[Job], Awaitable[TaskAnswer]]


class TaskQueue:
    """Takes tasks, at most `workers` at a time and at most `room` in line.

    `crashed` is told of a bug in the work: that task is answered with 500, and the others go on.
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
        self._usual_s = 1.0  # how long a task took of late
        self._hurried = asyncio.Event()
        self.stopping = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def need_room(self, task: Task) -> None:
        """Raises Refusal: 429 when it would have to wait and the line is full, 503 when the server is going down."""
        if self.stopping:
            raise Refusal(503, "The server is stopping.", retry_after_s=5)
        at_once = len(self._running) < self._workers and task.chat not in self._running
        if not at_once and len(self._waiting) >= self._room:
            # Until half of the line is gone: who comes back then finds room, and no worker has been idle.
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
        """Take a job out of the line; False when it has begun."""
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        return True

    async def stop(self, grace_s: float) -> list[Job]:
        """Take no more; let what there is end within the grace, then interrupt it. Returns what never began."""
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
        """Asked to stop once more: the grace is over."""
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
