"""Is a task with the same Idempotency-Key run once, over restarts, servers and a day?"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ra.server.desk import Answer, Job
from ra.server.keys import DAY_S, HOUR_S, INTERRUPTED, Keys
from ra.server.task import Context, Refusal, Task

TASK = Task("", "hi", Context("test", "c1"))


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(tmp_path: Path, clock: Clock) -> Iterator[Keys]:
    made = Keys(tmp_path, clock=clock)
    yield made
    made.close()


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
    keys.ended(running, Answer(200, {"content": "Hello."}))
    assert keys.known("k", TASK) == Answer(200, {"content": "Hello."})
    with pytest.raises(Refusal, match="another task"):
        keys.known("k", Task("", "something else", TASK.context))


def test_what_did_not_run_may_be_sent_again(keys: Keys) -> None:
    keys.accept("k", TASK)
    keys.ended(job(), Answer(429, {}, ran=False))
    assert keys.known("k", TASK) is None


def test_what_was_begun_when_the_server_ended_is_not_run_again_but_what_stood_in_line_is(tmp_path: Path) -> None:
    first = Keys(tmp_path)
    for key in ("begun", "waiting"):
        first.accept(key, TASK)
    first.begun(job("begun"))
    first.close()
    second = Keys(tmp_path)
    assert second.known("begun", TASK) == Answer(503, {"content": "", "error": INTERRUPTED})
    assert second.known("waiting", TASK) is None
    second.close()


def test_what_another_server_works_on_is_not_begun_here(tmp_path: Path, keys: Keys) -> None:
    other = Keys(tmp_path)
    other.accept("k", TASK)
    with pytest.raises(Refusal, match="at another server"):
        keys.known("k", TASK)
    other.close()
    assert keys.known("k", TASK) is None


def test_keys_are_forgotten_after_a_day(keys: Keys, clock: Clock) -> None:
    keys.accept("k", TASK)
    keys.ended(job(), Answer(200, {}))
    clock.now += DAY_S
    assert keys.known("k", TASK) == Answer(200, {})
    clock.now += HOUR_S
    assert keys.known("k", TASK) is None
    keys.accept("other", TASK)
    clock.now -= HOUR_S
    assert keys.known("k", TASK) is None  # removed, not only passed over


def test_tasks_without_a_key_leave_no_trace(keys: Keys) -> None:
    nameless = job("")
    keys.begun(nameless)
    keys.ended(nameless, Answer(200, {}))
    with pytest.raises(Refusal, match="printable ASCII"):
        keys.known("", TASK)
