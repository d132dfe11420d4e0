"""The queue that many workers share: tasks are rows in PostgreSQL, and any worker answers any client."""

import asyncio
import logging
import math
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, assert_never

import procrastinate
import psycopg
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from ra.core.errors import RaError, SessionInUse, StoreError
from ra.server import responses
from ra.server.agents import Agents
from ra.server.bodies import RunBody
from ra.server.executor import IN_USE_S, Executor
from ra.server.idempotency import fingerprint, need_key
from ra.server.log import Log
from ra.server.metrics import Load
from ra.server.queue import LAST_WORDS_S, MAX_WAIT_S, ROOM, WORKERS, Job, TaskAnswer
from ra.server.run_events import EventBuffer
from ra.server.run_table import CHANNEL, Pool, QueueFull, RunTable, StoredRun, worker_key
from ra.server.runs import PING_S, end_state
from ra.server.task import Refusal, Task
from ra.server.tasks import Accepted, RunFilter
from ra.timeline.postgres_database import CONNECT_S, without_password

TASK = "ra.task"
REAP_S = 1.0
FORGET_S = 60.0
HEARTBEAT_S = 2.0
PATIENCE_S = 2.0  # how long a request waits for an unreachable database
AWAY_S = 0.5  # between two attempts to reach the database
SILENT_S = 5.0  # a database that takes longer to answer a heartbeat counts as unreachable
IN_USE_TRIES = 6
ACCEPTING = 4  # connections that clients may use to submit tasks: the others are for the work
STOPPING = "The server is stopping; another server runs the task. Ask GET /runs/{id} there."


class SharedPresence:
    """This worker among the others: its connection holds an advisory lock for as long as it lives."""

    def __init__(self) -> None:
        self.id = os.urandom(6).hex()
        self.workers = 2  # an assumption until they are counted: a session is closed after every task

    @property
    def alone(self) -> bool:
        return self.workers < 2


class SharedTasks:
    """Implements `Tasks` on a database. A session's writer lock and the row of a run keep two workers apart."""

    def __init__(self, agents: Agents, url: str, log: Log, *, queue: str) -> None:
        self.agents = agents
        self.log = log
        self.presence = SharedPresence()
        self._executor = Executor(agents, self.presence, log)
        self.metrics = self._executor.metrics
        self._url = url
        self._place = without_password(url)
        self._pool: Pool = AsyncConnectionPool(
            url,
            kwargs={"connect_timeout": CONNECT_S},
            min_size=2,
            max_size=WORKERS + 4,
            timeout=5.0,
            max_idle=60.0,  # others may need the connections that a burst has opened
            open=False,
            configure=_configure,
        )
        self._queue = procrastinate.App(connector=procrastinate.PsycopgConnector())
        # A failing job has not begun: it is retried, and the tasks of its chat wait behind it.
        self._queue.task(name=TASK, pass_context=True, retry=procrastinate.RetryStrategy(wait=1))(self._work)
        self.table = RunTable(self._pool, self._queue, queue, self._place)
        self._worker: Worker | None = None
        self._jobs: dict[str, Job] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._fetched: set[str] = set()  # the runs that they work on
        self._held_up = ""  # the last reason that was logged for a task that could not begin
        self._news: dict[str, set[asyncio.Event]] = {}
        self._usual_s = 1.0
        self._accepting = asyncio.Semaphore(ACCEPTING)
        self._arriving = 0  # tasks that wait for one of these connections
        self._waiting = 0  # at most a second ago
        self._present = asyncio.Event()
        self._hurried = asyncio.Event()
        self._stopped = asyncio.Event()
        self.stopping = False
        self.unready = "The database has not been reached yet."

    # --- requests of clients ---

    async def ready(self) -> None:
        await self._present.wait()

    async def trouble(self) -> str:
        return self.unready

    async def load(self) -> Load:
        try:
            return Load(len(self._jobs), await self.table.waiting())
        except StoreError:
            return Load(len(self._jobs), 0)

    def current(self) -> tuple[int, int]:
        return len(self._jobs), self._waiting

    async def take(self, task: Task, key: str | None) -> Accepted:
        self.agents.check(task)
        if self.stopping:
            raise Refusal(503, "The server is stopping.", retry_after_s=5)
        if key is not None:
            need_key(key)
        if self.unready:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ready(), PATIENCE_S)
        if self.unready:
            raise Refusal(503, self.unready, retry_after_s=2)
        room = ROOM * max(self.presence.workers, 1)
        if self._arriving >= room:
            raise self._busy(QueueFull(self._waiting + self._arriving))
        self._arriving += 1
        try:
            async with self._accepting:
                return await self._accept(task, key or "", room)
        except QueueFull as full:
            raise self._busy(full) from full
        except StoreError as error:
            raise Refusal(503, str(error), retry_after_s=2) from error
        finally:
            self._arriving -= 1

    def _busy(self, full: QueueFull) -> Refusal:
        wait_s = math.ceil(self._usual_s * full.waiting / (WORKERS * max(self.presence.workers, 1)) / 2)
        return Refusal(429, str(full), retry_after_s=min(max(wait_s, 1), MAX_WAIT_S))

    async def _accept(self, task: Task, key: str, room: int) -> Accepted:
        """Raises QueueFull, Refusal, StoreError."""
        if key and (earlier := await self.table.by_key(key)) is not None:
            return _same(earlier, task)
        run = secrets.token_hex(8)
        earlier = await self.table.accept(run, task, key, fingerprint(task), TASK, room=room)
        return Accepted(run) if earlier is None else _same(earlier, task)

    async def answer(self, run: str) -> TaskAnswer:
        with self._interest(f"ended {run}") as news:
            while True:
                news.clear()
                with suppress(StoreError):
                    stored = await self.table.get(run)
                    if stored is not None and stored.answer is not None:
                        return stored.answer
                if self._stopped.is_set():
                    return TaskAnswer(503, {"error": STOPPING.format(id=run)}, retry_after_s=5)
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), PING_S if not self.unready else AWAY_S)

    async def run(self, run: str) -> RunBody | None:
        stored = await self.table.get(run)
        return stored.shown() if stored else None

    async def runs(self, wanted: RunFilter) -> list[RunBody]:
        return [stored.shown() for stored in await self.table.newest(wanted)]

    async def cancel(self, run: str) -> RunBody | None:
        stored = await self.table.get(run)
        if stored is None:
            return None
        if stored.state == "waiting":
            answer = TaskAnswer(503, {"content": "", "error": "Cancelled before it was begun."}, ran=False)
            if await self.table.end(run, "", "cancelled", answer, (), 0):
                await self.table.drop_job(run)
                return await self.run(run)
        await self.table.ask_to_cancel(run)
        return await self.run(run)

    async def follow(self, run: str, after: int) -> AsyncIterator[bytes]:
        missed = False
        with self._interest(f"events {run}", f"ended {run}") as news:
            while True:
                news.clear()
                stored = await self.table.get(run)
                if stored is None:
                    return
                for number, frame in await self.table.events(run, after):
                    missed = missed or number > after + 1
                    after = number
                    yield b"id: %d\n%b" % (number, frame)
                if stored.answer is not None:
                    if after < stored.events and await self.table.events(run, after):
                        continue
                    yield responses.last_frames(stored.answer, heard=not missed and after >= stored.events > 0)
                    return
                if self._stopped.is_set():
                    return  # the client comes back, to another worker, with the number of its last event
                try:
                    await asyncio.wait_for(news.wait(), PING_S)
                except TimeoutError:
                    yield b": working\n\n"

    @contextmanager
    def _interest(self, *notices: str) -> Iterator[asyncio.Event]:
        """Wakes up on any of these notifications, from whichever worker."""
        news = asyncio.Event()
        for notice in notices:
            self._news.setdefault(notice, set()).add(news)
        try:
            yield news
        finally:
            for notice in notices:
                self._news[notice].discard(news)
                if not self._news[notice]:
                    del self._news[notice]

    def _wake(self, notice: str) -> None:
        for news in self._news.get(notice, ()):
            news.set()

    def _wake_all(self) -> None:
        for notice in self._news:
            self._wake(notice)

    # --- the work ---

    async def serve(self) -> None:
        """Listens, works and looks for dead workers; waits while the database is unreachable."""
        for library in ("procrastinate", "psycopg.pool"):  # this class logs what matters
            logging.getLogger(library).setLevel(logging.CRITICAL)
        asyncio.get_running_loop().set_exception_handler(_unheard)
        # A task that a dead worker had begun is reported as interrupted, so load now what would otherwise load before
        # its model call.
        await asyncio.to_thread(self._executor.warm_up)
        await self._pool.open()
        await self._queue.open_async(self._pool)
        await asyncio.gather(
            self._executor.chats.sweep(),
            self._attend("listen"),
            self._attend("fetch"),
            self._attend("reap"),
        )

    async def _attend(self, duty: Literal["listen", "fetch", "reap"]) -> None:
        """Runs one duty for ever, starting over when the database is reachable again."""
        while not self._stopped.is_set():
            try:
                match duty:
                    case "listen":
                        await self._listen()
                    case "fetch":
                        await self._present.wait()
                        await self._fetch()
                    case "reap":
                        await self._present.wait()
                        await self._look_after_the_dead()
                    case _:
                        assert_never(duty)
            except (psycopg.Error, StoreError, procrastinate.exceptions.ProcrastinateException) as error:
                if duty == "listen":
                    self._away(error)
            await asyncio.sleep(AWAY_S)

    def _away(self, error: Exception) -> None:
        reason = (str(error.__cause__ or error).strip().splitlines() or [type(error).__name__])[0]
        if not self.unready:
            self.log.say("database", f"The database {self._place} is away: {reason}", level="error")
        self.unready = f"The database {self._place} cannot be used: {reason}"

    def _back(self) -> None:
        if self.unready:
            self.log.say("database", f"working on the tasks of {self._place}")
        self.unready = ""

    async def _listen(self) -> None:
        """Runs until the connection is lost, and with it the lock that marks this worker as alive."""
        async with self._listening() as connection:
            await self._pool.check()  # after a restart of the database, all old connections are broken
            await self.table.prepare()
            self._back()
            self._present.set()
            self._wake_all()
            try:
                await self._hear(connection)
            finally:
                self._present.clear()

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[psycopg.AsyncConnection]:
        connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, connect_timeout=CONNECT_S, tcp_user_timeout=20_000, keepalives_idle=10
        )
        async with connection:
            # The server may not have noticed yet that another connection of this worker is gone: then this waits for
            # it.
            await connection.execute("SELECT pg_advisory_lock(%s)", (worker_key(self.presence.id),))
            await connection.execute(f"LISTEN {CHANNEL}")
            yield connection

    async def _hear(self, connection: psycopg.AsyncConnection) -> None:
        loop = asyncio.get_running_loop()
        while True:
            async for notification in connection.notifies(timeout=HEARTBEAT_S):
                kind, _, run = notification.payload.partition(" ")
                if kind == "cancel" and run in self._jobs:
                    self._jobs[run].cancel()
                self._wake(notification.payload)
            # This connection holds the lock that marks this worker as alive: it is kept while the server is frozen.
            silence = loop.call_later(SILENT_S, self._away, StoreError("it does not answer"))
            try:
                await connection.execute("SELECT 1")
            finally:
                silence.cancel()
            self._back()

    async def _look_after_the_dead(self) -> None:
        forgot = -FORGET_S
        loop = asyncio.get_running_loop()
        while True:
            self.presence.workers = await self.table.workers()
            self._waiting = await self.table.waiting()
            for abandoned in await self.table.reap():
                self._executor.tell(abandoned.task, f"run {abandoned.run} died with its worker", level="warning")
                try:
                    self._executor.chats.record_interrupted(abandoned.task)
                except RaError as error:  # the process that has the session open now repairs it
                    self.log.say("interrupted", f"task {abandoned.task.name}: {error}", level="debug")
            await self.table.give_back(self._worker.worker_id if self._worker else None, self._fetched)
            if loop.time() > forgot + FORGET_S:
                forgot = loop.time()
                await self.table.forget()
            await asyncio.sleep(REAP_S)

    async def _fetch(self) -> None:
        self._worker = Worker(
            self._queue,
            queues=[self.table.queue],
            concurrency=WORKERS,
            delete_jobs="always",
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_S,
            shutdown_graceful_timeout=0.1,  # the work itself goes on: `stop` waits for it
        )
        try:
            await self._worker.run()  # type: ignore[no-untyped-call]  # the library does not annotate it
        finally:
            self._worker = None
        if self.stopping:
            await self._stopped.wait()

    async def _work(self, context: procrastinate.JobContext, run: str) -> None:
        """Runs one job of the queue. Raises only before the task has begun."""
        self._fetched.add(run)
        work = asyncio.create_task(self._do(run, attempt=context.job.attempts))
        self._working.add(work)
        work.add_done_callback(self._working.discard)
        work.add_done_callback(lambda _: self._fetched.discard(run))
        await asyncio.shield(work)

    async def _do(self, run: str, *, attempt: int) -> None:
        run_task = await self.table.task(run)
        if run_task is None:
            return
        task, accepted = run_task
        loop = asyncio.get_running_loop()
        began = loop.time()
        job = Job(task, "", loop.create_future(), run=run, accepted=accepted)
        buffer = EventBuffer(self.table, job)
        self._jobs[run] = job
        try:
            try:
                answer = await self._executor.answer(job, self)
            except SessionInUse as error:
                if attempt < IN_USE_TRIES:
                    raise
                answer = TaskAnswer(429, {"error": str(error)}, ran=False, retry_after_s=IN_USE_S)
            except RaError as error:
                if not job.begun:
                    self._hold_up(task, str(error))
                    raise
                answer = TaskAnswer(500, {"content": "", "error": str(error)})
            except Exception as bug:
                if not job.begun:
                    raise
                self.log.bug(f"A bug in task {task.name}", bug)
                answer = TaskAnswer(500, {"error": "The task failed: a bug in the server. See its log."})
            if answer is None:
                await self.answer(run)  # the chat's lock stays taken until the worker that runs it is done
                return
            self._held_up = ""
            await self._end(job, answer, buffer)
            self._usual_s += 0.2 * (loop.time() - began - self._usual_s)
        finally:
            buffer.close()
            del self._jobs[run]

    def _hold_up(self, task: Task, reason: str) -> None:
        """Reports a task that cannot begin. It is retried every second, but logged once."""
        if reason != self._held_up:
            self._held_up = reason
            self._executor.tell(task, f"task {task.name} waits: {reason}", level="warning")

    async def begin(self, job: Job) -> bool:
        return await self.table.begin(job.id, self.presence.id)

    async def _end(self, job: Job, answer: TaskAnswer, buffer: EventBuffer) -> None:
        """Records the answer. While the database is unreachable, it waits: no answer is lost."""
        worker = self.presence.id if answer.ran or job.begun else ""
        state = end_state(answer, cancelled=job.cancelled)
        frames = await buffer.finish()
        while not self._stopped.is_set():
            try:
                if not await self.table.end(job.id, worker, state, answer, frames, buffer.count):
                    text = f"run {job.id} was ended by another worker meanwhile"
                    self._executor.tell(job.task, text, level="warning")
                return
            except StoreError:
                await asyncio.sleep(AWAY_S)
        self.log.say("lost", f"the end of task {job.task.name} could not be recorded", level="error")

    # --- the end ---

    def hurry(self) -> None:
        self._hurried.set()

    async def stop(self, grace_s: float) -> None:
        """Leaves waiting tasks in the database, for other workers."""
        self.stopping = True
        if self._worker is not None:
            self._worker.shutdown_graceful_timeout = grace_s + 2 * LAST_WORDS_S
            self._worker.stop()  # type: ignore[no-untyped-call]  # the same
        hurried = asyncio.create_task(self._hurried.wait())
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                # Clients of this worker may wait for runs of other workers: they get their answers, too.
                while (self._working or self._news) and not hurried.done():
                    await asyncio.wait({*self._working, hurried}, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        for job in self._jobs.values():
            job.interrupt()
        if self._working:
            await asyncio.wait(self._working, timeout=LAST_WORDS_S)
        self._stopped.set()
        self._wake_all()
        await self._executor.chats.close()
        await self._pool.close()


def _same(stored: StoredRun, task: Task) -> Accepted:
    if stored.fingerprint != fingerprint(task):
        raise Refusal(422, "This Idempotency-Key was used for another task.")
    return Accepted(stored.id, stored.answer)


async def _configure(connection: psycopg.AsyncConnection) -> None:
    await connection.set_autocommit(True)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A job that the library could not give back, because the database was unreachable, is given back later."""
    if not isinstance(context.get("exception"), procrastinate.exceptions.ConnectorException):
        loop.default_exception_handler(context)
