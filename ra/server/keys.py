"""Was this task already sent? An Idempotency-Key is remembered for a day, with what became of its task."""

import fcntl
import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ra.core.errors import StoreError
from ra.core.value import JsonObject, encode
from ra.server.desk import Answer, Job
from ra.server.task import Refusal, Task

DAY_S = 86_400.0
HOUR_S = 3_600.0
_FORM = re.compile(r"[\x21-\x7e]{1,255}")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,      -- of the task: the same key with another task is a mistake
    time REAL NOT NULL,
    begun INTEGER NOT NULL,         -- the model was asked, or may have been
    status INTEGER NOT NULL,        -- of the answer, 0 while there is none
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID
"""

INTERRUPTED = (
    "Interrupted: the server ended while this task was running; parts of it may have been done. "
    "Send it with another Idempotency-Key to run it again."
)


class Keys:
    """Keys in a file, so that they hold over a restart; what is running now is in memory."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = folder / "serve.db"
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._lock = os.open(folder / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self._path.touch(mode=0o600, exist_ok=True)
        self._database = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _SCHEMA):
            self._do(statement, ())
        self._forget()

    def known(self, key: str, task: Task) -> Job | Answer | None:
        """The job or the answer that this key already has. Raises Refusal: 400, 409, 422."""
        if not _FORM.fullmatch(key):
            raise Refusal(400, "Idempotency-Key must be 1 to 255 printable ASCII characters.")
        found = self._do(
            "SELECT fingerprint, begun, status, body FROM keys WHERE key = ? AND time >= ?",
            (key, self._clock() - DAY_S),
        ).fetchone()
        if found is None:
            return None
        fingerprint, begun, status, body = found
        if fingerprint != _fingerprint(task):
            raise Refusal(422, "This Idempotency-Key was used for another task.")
        if status:
            return Answer(status, msgspec.json.decode(body, type=JsonObject))
        if job := self._jobs.get(key):
            return job
        if not self._alone():
            raise Refusal(409, "A task with this Idempotency-Key is in work at another server.", retry_after_s=5)
        if begun:
            return Answer(503, {"content": "", "error": INTERRUPTED})
        return None  # it was in line when the server ended: nothing has been done

    def accept(self, key: str, task: Task) -> None:
        """Recorded before the task may begin. Raises StoreError."""
        if self._clock() > self._forgot + HOUR_S:
            self._forget()
        self._do("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, 0, 0, x'')", (key, _fingerprint(task), self._clock()))

    def accepted(self, job: Job) -> None:
        self._jobs[job.key] = job

    def begun(self, job: Job) -> None:
        if job.key:
            self._do("UPDATE keys SET begun = 1 WHERE key = ?", (job.key,))

    def ended(self, job: Job, answer: Answer) -> None:
        """What ran is not run again under its key; what did not run may be."""
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
        os.close(self._lock)

    def _alone(self) -> bool:
        """Whether no other server uses this file: each holds a shared lock for as long as it lives."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        return True

    def _forget(self) -> None:
        self._forgot = self._clock()
        self._do("DELETE FROM keys WHERE time < ?", (self._forgot - DAY_S,))


def _fingerprint(task: Task) -> str:
    """Of what the client asked for; how the answer is sent, and an id that was made up, do not matter."""
    context = msgspec.structs.replace(task.context, chat_id="") if task.context.alone else task.context
    parts = [task.agent, task.message, task.strategy, msgspec.to_builtins(context), task.tools]
    return hashlib.sha256(encode(parts)).hexdigest()
