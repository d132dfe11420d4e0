"""Stores runs as rows in PostgreSQL: the accepted task, the worker that began it, its events, and its outcome."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, LiteralString, TypeAlias

import msgspec
import procrastinate
import psycopg
from msgspec import UNSET
from procrastinate.jobs import Status
from procrastinate.schema import SchemaManager
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from ra.core.errors import StoreError
from ra.core.model import TokenCounts
from ra.core.value import JsonObject, encode
from ra.server.bodies import RunBody, RunState
from ra.server.idempotency import DAY_S, INTERRUPTED
from ra.server.queue import TaskAnswer
from ra.server.task import Task
from ra.server.tasks import RunFilter
from ra.timeline.postgres_database import lock_key, sentence

VERSION = 1
CHANNEL = "ra_runs"  # notifications: "events RUN", "ended RUN", "cancel RUN"
EVENTS_S = 900.0  # how long a run's events can be followed again
ANSWER_S = 15.0  # the longest time for the database to answer a request of a worker
LATE_S = 1.0  # for a worker that was blocked itself to read an answer that came meanwhile
RESTARTED_S = 5.0  # after a restart of the database, workers need a moment to take their locks again
STALLED_S = 10.0  # after so long without a heartbeat, a worker's fetched jobs that did not begin go back

SCHEMA: LiteralString = """
CREATE TABLE ra_runs (
    id text PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY,
    queue text NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    task bytea NOT NULL,
    agent text NOT NULL,
    channel text NOT NULL,
    chat_id text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    job bigint,
    worker text NOT NULL DEFAULT '',
    cancelling boolean NOT NULL DEFAULT false,
    events integer NOT NULL DEFAULT 0,
    created double precision NOT NULL,
    ended double precision,
    status integer NOT NULL DEFAULT 0,
    retry_after_s integer,
    answer bytea
);
CREATE UNIQUE INDEX ra_runs_by_key ON ra_runs (queue, key) WHERE key <> '';
CREATE INDEX ra_runs_live ON ra_runs (queue, state) WHERE state IN ('waiting', 'running');
CREATE INDEX ra_runs_newest ON ra_runs (queue, number);
CREATE INDEX ra_runs_by_job ON ra_runs (job);
CREATE INDEX ra_runs_ended ON ra_runs (ended) WHERE ended IS NOT NULL;
CREATE UNLOGGED TABLE ra_run_events (
    run text NOT NULL,
    number integer NOT NULL,
    time double precision NOT NULL,
    frame bytea NOT NULL,
    PRIMARY KEY (run, number)
);
CREATE INDEX ra_run_events_by_time ON ra_run_events (time);
CREATE TABLE ra_serve_version (version integer NOT NULL);
INSERT INTO ra_serve_version VALUES (1);
"""

# The library wakes workers for new jobs only. But the end of a job may let the next one of its chat begin, and a job
# that a worker gave back is due again: without these, they would wait for the next poll of the queue, up to five
# seconds.
WAKING: LiteralString = """
CREATE INDEX ra_jobs_by_lock ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing');
CREATE FUNCTION ra_wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo') THEN
        PERFORM pg_notify('procrastinate_queue_v1#' || OLD.queue_name, '{"type": "job_inserted", "job_id": 0}');
    END IF;
    RETURN OLD;
END;
$$;
CREATE TRIGGER ra_wake_after_end AFTER DELETE ON procrastinate_jobs
    FOR EACH ROW EXECUTE FUNCTION ra_wake_workers();
CREATE TRIGGER ra_wake_after_return AFTER UPDATE OF status ON procrastinate_jobs
    FOR EACH ROW WHEN (OLD.status = 'doing' AND NEW.status = 'todo') EXECUTE FUNCTION ra_wake_workers();
"""

_SELECT: LiteralString = (
    "SELECT id, fingerprint, state, agent, channel, chat_id, created, ended, events, status, retry_after_s, answer "
    "FROM ra_runs"
)

_WAITING: LiteralString = "SELECT count(*) FROM ra_runs WHERE queue = %s AND state = 'waiting'"

_ACCEPT: LiteralString = (
    "INSERT INTO ra_runs (id, queue, key, fingerprint, task, agent, channel, chat_id, created, job) VALUES (%(id)s, "
    "%(queue)s, %(key)s, %(fingerprint)s, %(task)s, %(agent)s, %(channel)s, %(chat_id)s, %(created)s, %(job)s) "
    "ON CONFLICT DO NOTHING "
    "RETURNING (SELECT count(*) FROM ra_runs WHERE queue = %(queue)s AND state = 'waiting')"
)
# One statement, hence one round trip: the answer, the last events, and the notification of whoever waits.
_END: LiteralString = (
    "WITH ended AS (UPDATE ra_runs SET state = %(state)s, ended = %(now)s, status = %(status)s, "
    "retry_after_s = %(retry_after_s)s, answer = %(answer)s, events = %(events)s, "
    "key = CASE WHEN %(ran)s THEN key ELSE '' END "
    "WHERE id = %(run)s AND worker = %(worker)s AND state = %(before)s RETURNING id), "
    "added AS (INSERT INTO ra_run_events SELECT ended.id, number, %(now)s, frame FROM ended, "
    "unnest(%(numbers)s::integer[], %(frames)s::bytea[]) AS new (number, frame) ON CONFLICT DO NOTHING) "
    "SELECT pg_notify(%(channel)s, 'ended ' || id) FROM ended"
)

AsyncConnection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]
Pool: TypeAlias = AsyncConnectionPool[AsyncConnection]


class QueueFull(Exception):
    """The queue is full."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"Busy: {waiting} tasks are waiting.")
        self.waiting = waiting


class _KeyTaken(Exception):
    """Rolls back the transaction of a task whose Idempotency-Key belongs to another one."""


class StoredRun(msgspec.Struct, frozen=True):
    """A row of the table."""

    id: str
    fingerprint: str
    state: RunState
    agent: str
    channel: str
    chat_id: str
    created: float
    ended: float | None
    events: int
    status: int
    retry_after_s: int | None
    body: JsonObject | None

    @property
    def answer(self) -> TaskAnswer | None:
        """The answer of the run; None before its end."""
        return None if self.body is None else TaskAnswer(self.status, self.body, retry_after_s=self.retry_after_s)

    def shown(self) -> RunBody:
        answer = self.body or {}
        return RunBody(
            id=self.id,
            state=self.state,
            agent=self.agent,
            channel=self.channel,
            chat_id=self.chat_id,
            created=self.created,
            ended=UNSET if self.ended is None else self.ended,
            session_id=answer.get("sessionId", UNSET),
            usage=msgspec.convert(answer["usage"], TokenCounts) if "usage" in answer else UNSET,
            cost=answer.get("cost"),
            error=answer.get("error", UNSET),
        )


class Abandoned(msgspec.Struct, frozen=True):
    """A run whose worker died after the model may have been called."""

    run: str
    task: Task


class RunTable:
    """The runs of one queue. Every method raises StoreError if the database cannot be used."""

    def __init__(self, pool: Pool, jobs: procrastinate.App, queue: str, place: str) -> None:
        self._pool = pool
        self._jobs = jobs
        self.queue = queue
        self._place = place
        self._mislaid: set[str] = set()

    async def prepare(self) -> None:
        """Creates the tables, once, however many workers start together."""
        async with self._connected() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("serve migration"),))
            if await self._is_there(connection, "ra_serve_version"):
                row = await (await connection.execute("SELECT version FROM ra_serve_version")).fetchone()
                if row is not None and int(row[0]) > VERSION:
                    raise StoreError(f"{self._place} was written by a newer version of ra serve; update ra.")
                return
            if not await self._is_there(connection, "procrastinate_jobs"):
                await connection.execute(SchemaManager.get_schema())
            await connection.execute(SCHEMA)
            await connection.execute(WAKING)

    async def accept(
        self, run: str, task: Task, key: str, fingerprint: str, task_name: str, *, room: int
    ) -> StoredRun | None:
        """Adds a run and its job in one transaction; returns the run that already has the key, if any.

        Raises QueueFull if `room` tasks wait.
        """
        values: dict[str, object] = {
            "id": run,
            "queue": self.queue,
            "key": key,
            "fingerprint": fingerprint,
            "task": encode(task),
            "agent": task.agent,
            "channel": task.context.channel,
            "chat_id": task.context.chat_id,
            "created": time.time(),
        }
        try:
            async with self._connected() as connection, connection.transaction():
                # The lock keeps the tasks of a chat in order, one at a time, whichever worker runs them.
                deferrer = self._jobs.configure_task(
                    task_name, queue=self.queue, lock="\x1f".join((self.queue, *task.chat)), connection=connection
                )
                values["job"] = await deferrer.defer_async(run=run)
                row = await (await connection.execute(_ACCEPT, values)).fetchone()
                if row is None:
                    raise _KeyTaken
                # Counted last: only tasks on the pool's other connections can be added in between.
                if row[0] >= room:
                    raise QueueFull(row[0])
        except _KeyTaken:
            return await self.by_key(key)
        return None

    async def by_key(self, key: str) -> StoredRun | None:
        rows = await self._stored(" WHERE queue = %s AND key = %s", (self.queue, key))
        return rows[0] if rows else None

    async def get(self, run: str) -> StoredRun | None:
        rows = await self._stored(" WHERE id = %s AND queue = %s", (run, self.queue))
        return rows[0] if rows else None

    async def newest(self, wanted: RunFilter) -> list[StoredRun]:
        return await self._stored(
            " WHERE queue = %s AND (%s::text IS NULL OR state = %s) AND (%s::text IS NULL OR agent = %s) "
            "AND (%s::text IS NULL OR chat_id = %s) ORDER BY number DESC LIMIT %s",
            (
                self.queue,
                wanted.state,
                wanted.state,
                wanted.agent,
                wanted.agent,
                wanted.chat_id,
                wanted.chat_id,
                wanted.limit,
            ),
        )

    async def task(self, run: str) -> tuple[Task, float] | None:
        """The task of a run, and the time of its acceptance."""
        rows = await self._rows("SELECT task, created FROM ra_runs WHERE id = %s", (run,))
        return (msgspec.json.decode(bytes(rows[0][0]), type=Task), float(rows[0][1])) if rows else None

    async def waiting(self) -> int:
        rows = await self._rows(_WAITING, (self.queue,))
        return int(rows[0][0])

    async def workers(self) -> int:
        """The number of workers, including this one."""
        rows = await self._rows(
            "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %s)",
            (STALLED_S,),
        )
        return int(rows[0][0])

    async def begin(self, run: str, worker: str) -> bool:
        """From now on the model may have been called. False if the run is no longer waiting."""
        rows = await self._rows(
            "UPDATE ra_runs SET state = 'running', worker = %s WHERE id = %s AND state = 'waiting' RETURNING id",
            (worker, run),
        )
        return bool(rows)

    async def end(
        self,
        run: str,
        worker: str,
        state: RunState,
        answer: TaskAnswer,
        frames: Sequence[tuple[int, bytes]],
        events: int,
    ) -> bool:
        """Records the end of a run, once; False if another worker has recorded one. "" ends a run that never began."""
        rows = await self._rows(
            _END,
            {
                "state": state,
                "now": time.time(),
                "status": answer.status,
                "retry_after_s": answer.retry_after_s,
                "answer": encode(answer.body),
                "events": events,
                "ran": answer.ran,
                "run": run,
                "worker": worker,
                "before": "running" if worker else "waiting",
                "numbers": [number for number, _ in frames],
                "frames": [frame for _, frame in frames],
                "channel": CHANNEL,
            },
        )
        return bool(rows)

    async def add_events(self, run: str, frames: Sequence[tuple[int, bytes]], drop_below: int) -> None:
        """Need not be durable: everything that must not be lost is in the session and in the run's answer."""
        async with self._connected() as connection, connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            await _add_events(connection, run, frames)
            if drop_below:
                await connection.execute("DELETE FROM ra_run_events WHERE run = %s AND number < %s", (run, drop_below))
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"events {run}"))

    async def events(self, run: str, after: int) -> list[tuple[int, bytes]]:
        rows = await self._rows(
            "SELECT number, frame FROM ra_run_events WHERE run = %s AND number > %s ORDER BY number LIMIT 500",
            (run, after),
        )
        return [(int(number), bytes(frame)) for number, frame in rows]

    async def ask_to_cancel(self, run: str) -> None:
        """Notifies the worker that runs it."""
        async with self._connected() as connection, connection.transaction():
            await connection.execute("UPDATE ra_runs SET cancelling = true WHERE id = %s", (run,))
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"cancel {run}"))

    async def drop_job(self, run: str) -> None:
        """Deletes the job of a run that ended without having begun."""
        rows = await self._rows("SELECT job FROM ra_runs WHERE id = %s", (run,))
        for (job,) in rows:
            await self._jobs.job_manager.cancel_job_by_id_async(job, delete_job=True)

    async def reap(self) -> list[Abandoned]:
        """Ends the runs of dead workers. Their locks are free: no other worker can reap the same ones meanwhile."""
        abandoned: list[Abandoned] = []
        async with self._connected() as connection, connection.transaction():
            running = await connection.execute(
                "SELECT DISTINCT worker FROM ra_runs WHERE queue = %s AND state = 'running' "
                "AND now() > pg_postmaster_start_time() + make_interval(secs => %s)",
                (self.queue, RESTARTED_S),
            )
            for (worker,) in await running.fetchall():
                lock = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (worker_key(worker),))
                if await lock.fetchone() != (True,):
                    continue
                ended = await connection.execute(
                    "UPDATE ra_runs SET state = 'interrupted', ended = %s, status = 503, answer = %s "
                    "WHERE queue = %s AND worker = %s AND state = 'running' RETURNING id, task",
                    (time.time(), encode({"content": "", "error": INTERRUPTED}), self.queue, worker),
                )
                for run, task in await ended.fetchall():
                    abandoned.append(Abandoned(run, msgspec.json.decode(bytes(task), type=Task)))
                    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"ended {run}"))
        return abandoned

    async def give_back(self, worker: int | None, at_work: Collection[str]) -> None:
        """Settles a dead worker's fetched jobs: those that did not begin go back, those that ended are finished.

        `worker`, the calling one, may itself have lost a job, if the connection broke while it was fetched or given
        back. Such a job goes back after two checks in a row have not seen it among the runs `at_work`.
        """
        manager = self._jobs.job_manager
        async with self._translated():
            await manager.prune_stalled_workers(STALLED_S)
        fetched = await self._rows(
            "SELECT j.id, r.id, r.state, w.id FROM procrastinate_jobs j JOIN ra_runs r ON r.job = j.id LEFT JOIN "
            "procrastinate_workers w ON w.id = j.worker_id WHERE j.queue_name = %s AND j.status = 'doing' "
            "AND (r.ended IS NOT NULL OR r.state = 'waiting' AND (w.id IS NULL OR w.id = %s))",
            (self.queue, worker),
        )
        missing = {run for _, run, state, owner in fetched if state == "waiting" and owner and run not in at_work}
        rows = [
            (job, state)
            for job, run, state, owner in fetched
            if state != "waiting" or owner is None or run in missing & self._mislaid
        ]
        self._mislaid = missing
        async with self._translated():
            for job, state in rows:
                try:
                    if state == "waiting":
                        await manager.retry_job_by_id_async(job, retry_at=datetime.now(UTC))
                    else:
                        await manager.finish_job_by_id_async(job, Status.ABORTED, delete_job=True)
                except procrastinate.exceptions.ConnectorException as error:
                    if not isinstance(error.__cause__, psycopg.errors.RaiseException):
                        raise
                    # Its own worker, or another one that looks for dead workers, was first.

    async def forget(self) -> None:
        """Deletes answers after a day, events after a quarter of an hour."""
        now = time.time()
        async with self._connected() as connection:
            await connection.execute("DELETE FROM ra_run_events WHERE time < %s", (now - EVENTS_S,))
            await connection.execute("DELETE FROM ra_runs WHERE ended < %s", (now - DAY_S,))

    async def _stored(self, where: LiteralString, values: Sequence[object]) -> list[StoredRun]:
        if any(isinstance(value, str) and "\0" in value for value in values):
            return []  # PostgreSQL cannot store such text, so nothing matches
        return [_stored_run(row) for row in await self._rows(_SELECT + where, values)]

    async def _rows(
        self, statement: LiteralString, values: Sequence[object] | Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        async with self._connected() as connection:
            return await (await connection.execute(statement, values)).fetchall()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        async with self._translated(), self._pool.connection() as connection:
            silence = asyncio.create_task(_hang_up_late(connection))
            try:
                yield connection
            finally:
                silence.cancel()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except (psycopg.Error, PoolTimeout, procrastinate.exceptions.ConnectorException) as error:
            cause = error.__cause__ if isinstance(error.__cause__, psycopg.Error) else error
            if not isinstance(cause, psycopg.Error):
                raise StoreError(f"The database {self._place} cannot be used: {cause}.") from error
            raise StoreError(sentence(cause, self._place)) from error

    @staticmethod
    async def _is_there(connection: AsyncConnection, table: str) -> bool:
        row = await (await connection.execute("SELECT to_regclass(%s)", (table,))).fetchone()
        return row is not None and row[0] is not None


async def _hang_up_late(connection: AsyncConnection) -> None:
    """Breaks the connection to a frozen server, which does not do so itself; the pending statement then fails."""
    await asyncio.sleep(ANSWER_S)
    await asyncio.sleep(LATE_S)
    # Not closed: the file descriptor is still being waited on, and its number must not be used again.
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def worker_key(worker: str) -> int:
    """The advisory lock that a worker holds for as long as it lives."""
    return lock_key(f"worker {worker}")


async def _add_events(connection: AsyncConnection, run: str, frames: Sequence[tuple[int, bytes]]) -> None:
    if frames:
        numbers = [number for number, _ in frames]
        await connection.execute(
            "INSERT INTO ra_run_events SELECT %s, number, %s, frame FROM unnest(%s::integer[], %s::bytea[]) "
            "AS new (number, frame) ON CONFLICT DO NOTHING",
            (run, time.time(), numbers, [frame for _, frame in frames]),
        )


def _stored_run(row: tuple[Any, ...]) -> StoredRun:
    answer = row[-1]
    columns: tuple[Any, ...] = (*row[:-1], None if answer is None else msgspec.json.decode(bytes(answer)))
    return StoredRun(*columns)
