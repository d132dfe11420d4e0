"""Remembers every Idempotency-Key for a day, with the outcome of its task."""

import hashlib
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ra.core.errors import StoreError
from ra.core.value import JsonObject, encode
from ra.server.presence import Presence
from ra.server.queue import Job, TaskAnswer
from ra.server.task import Refusal, Task

DAY_S = 86_400.0
HOUR_S = 3_600.0
_FORM = re.compile(r"[!-~]([ -~]{0,253}[!-~])?")  # as in the OpenAPI document; HTTP removes outer spaces

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,      -- of the task: the same key with another task is a mistake
    time REAL NOT NULL,
    begun INTEGER NOT NULL,         -- the model was asked, or may have been
    status INTEGER NOT NULL,        -- of the answer, 0 while there is none
    body BLOB NOT NULL,
    owner TEXT NOT NULL DEFAULT ''  -- the server that works on it
) STRICT, WITHOUT ROWID
"""

INTERRUPTED = (
    "Interrupted: the server ended while this task was running; parts of it may have been done. "
    "Send it with another Idempotency-Key to run it again."
)


class Keys:
    """Keys in a file, which survive a restart; the running jobs are in memory."""

    def __init__(self, folder: Path, presence: Presence, *, clock: Callable[[], float] = time.time) -> None:
        self._path = folder / "serve.db"
        self._presence = presence
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._path.touch(mode=0o600, exist_ok=True)
        self._database = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _SCHEMA):
            self._do(statement, ())
        self._add_owner()
        self._forget()

    def known(self, key: str, task: Task) -> Job | TaskAnswer | None:
        """The job or the answer that belongs to this key already. Raises Refusal: 400, 409, 422."""
        need_key(key)
        row = self._do(
            "SELECT fingerprint, begun, status, body, owner FROM keys WHERE key = ? AND time >= ?",
            (key, self._clock() - DAY_S),
        ).fetchone()
        if row is None:
            return None
        stored, begun, status, body, owner = row
        if stored != fingerprint(task):
            raise Refusal(422, "This Idempotency-Key was used for another task.")
        if status:
            return TaskAnswer(status, msgspec.json.decode(body, type=JsonObject))
        if job := self._jobs.get(key):
            return job
        if owner != self._presence.id and self._presence.alive(owner):
            raise Refusal(409, "A task with this Idempotency-Key is in work at another server.", retry_after_s=5)
        if begun:
            return TaskAnswer(503, {"content": "", "error": INTERRUPTED})
        return None  # it was in the queue when its server ended: nothing was done

    def accept(self, key: str, task: Task) -> Job | TaskAnswer | None:
        """Claims the key for this server, before the task may begin; None on success.

        If several servers receive the same key at once, one of them gets it. Raises Refusal, StoreError.
        """
        if self._clock() > self._forgot + HOUR_S:
            self._forget()
        self._do("BEGIN IMMEDIATE", ())
        try:
            earlier = self.known(key, task)
            if earlier is None:
                values = (key, fingerprint(task), self._clock(), self._presence.id)
                self._do("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, 0, 0, x'', ?)", values)
            self._do("COMMIT", ())
        finally:
            if self._database.in_transaction:
                self._do("ROLLBACK", ())
        return earlier

    def accepted(self, job: Job) -> None:
        self._jobs[job.key] = job

    def begun(self, job: Job) -> None:
        if job.key:
            self._do("UPDATE keys SET begun = 1 WHERE key = ?", (job.key,))

    def ended(self, job: Job, answer: TaskAnswer) -> None:
        """A task that ran never runs again under its key; one that did not may."""
        if not job.key:
            return
        self._jobs.pop(job.key, None)
        if answer.ran:
            values = (answer.status, encode(answer.body), job.key)
            self._do("UPDATE keys SET status = ?, body = ? WHERE key = ?", values)
        else:
            self._do("DELETE FROM keys WHERE key = ?", (job.key,))

    def _do(self, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used: {error}.") from error

    def close(self) -> None:
        self._database.close()

    def _add_owner(self) -> None:
        """Files of version 0.1 lack this column."""
        columns = self._do("PRAGMA table_info(keys)", ()).fetchall()
        if "owner" not in {column[1] for column in columns}:
            try:
                self._do("ALTER TABLE keys ADD COLUMN owner TEXT NOT NULL DEFAULT ''", ())
            except StoreError:  # another server that starts at this moment was first
                self._do("SELECT owner FROM keys LIMIT 1", ())

    def _forget(self) -> None:
        self._forgot = self._clock()
        self._do("DELETE FROM keys WHERE time < ?", (self._forgot - DAY_S,))


def need_key(key: str) -> None:
    """Raises Refusal with status 400."""
    if not _FORM.fullmatch(key):
        raise Refusal(400, "Idempotency-Key must be 1 to 255 printable ASCII characters.")


def fingerprint(task: Task) -> str:
    """A digest of what the client asked for, without the form of the answer and without a generated chat id."""
    context = msgspec.structs.replace(task.context, chat_id="") if task.context.alone else task.context
    parts = [task.agent, task.message, task.strategy, msgspec.to_builtins(context), task.tools]
    return hashlib.sha256(encode(parts)).hexdigest()
