"""Is a task with the same Idempotency-Key run once, over restarts, servers and a day?"""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ra.server.idempotency import DAY_S, HOUR_S, INTERRUPTED, Keys
from ra.server.presence import Presence
from ra.server.queue import Job, TaskAnswer
from ra.server.task import Refusal, Task, TaskContext

TASK = Task("", "hi", TaskContext("test", "c1"))


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Server:
    """The keys of a server that lives until `stop`."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.presence = Presence(folder)
        self.keys = Keys(folder, self.presence, clock=clock or time.time)

    def stop(self) -> None:
        self.keys.close()
        self.presence.close()


@pytest.fixture
def keys(tmp_path: Path, clock: Clock) -> Iterator[Keys]:
    server = Server(tmp_path, clock)
    yield server.keys
    server.stop()


LOOP = asyncio.new_event_loop()  # only named, never run


def job(key: str = "k") -> Job:
    return Job(TASK, key, asyncio.Future(loop=LOOP))


def test_a_key_gives_the_job_while_it_runs_and_then_its_answer(keys: Keys) -> None:
    running = job()
    assert keys.known("k", TASK) is None
    keys.accept("k", TASK)
    keys.accepted(running)
    assert keys.known("k", TASK) is running
    keys.begun(running)
    keys.ended(running, TaskAnswer(200, {"content": "Hello."}))
    assert keys.known("k", TASK) == TaskAnswer(200, {"content": "Hello."})
    with pytest.raises(Refusal, match="another task"):
        keys.known("k", Task("", "something else", TASK.context))


def test_what_did_not_run_may_be_sent_again(keys: Keys) -> None:
    keys.accept("k", TASK)
    keys.ended(job(), TaskAnswer(429, {}, ran=False))
    assert keys.known("k", TASK) is None


def test_what_was_begun_when_the_server_ended_is_not_run_again_but_what_stood_in_line_is(tmp_path: Path) -> None:
    first = Server(tmp_path)
    bystander = Server(tmp_path)  # a living server beside it changes nothing
    for key in ("begun", "waiting"):
        first.keys.accept(key, TASK)
    first.keys.begun(job("begun"))
    first.stop()
    second = Server(tmp_path)
    assert second.keys.known("begun", TASK) == TaskAnswer(503, {"content": "", "error": INTERRUPTED})
    assert second.keys.known("waiting", TASK) is None
    second.stop()
    bystander.stop()


def test_what_another_server_works_on_is_not_begun_here(tmp_path: Path, keys: Keys) -> None:
    other = Server(tmp_path)
    assert keys.known("k", TASK) is None
    assert other.keys.accept("k", TASK) is None
    with pytest.raises(Refusal, match="at another server"):
        keys.accept("k", TASK)  # although it was not known a moment ago
    other.stop()
    assert keys.accept("k", TASK) is None


def test_keys_of_version_0_1_are_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "serve.db")) as database:
        database.execute(
            "CREATE TABLE keys (key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, time REAL NOT NULL, "
            "begun INTEGER NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID"
        )
    server = Server(tmp_path)
    assert server.keys.accept("k", TASK) is None
    server.stop()


def test_keys_are_forgotten_after_a_day(keys: Keys, clock: Clock) -> None:
    keys.accept("k", TASK)
    keys.ended(job(), TaskAnswer(200, {}))
    clock.now += DAY_S
    assert keys.known("k", TASK) == TaskAnswer(200, {})
    clock.now += HOUR_S
    assert keys.known("k", TASK) is None
    keys.accept("other", TASK)
    clock.now -= HOUR_S
    assert keys.known("k", TASK) is None  # removed, not only passed over


def test_tasks_without_a_key_leave_no_trace(keys: Keys) -> None:
    nameless = job("")
    keys.begun(nameless)
    keys.ended(nameless, TaskAnswer(200, {}))
    with pytest.raises(Refusal, match="printable ASCII"):
        keys.known("", TASK)
