"""Order, capacity and fairness of the task queue, over generated arrivals."""

import asyncio
import gc
import time
import weakref
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.messages import say
from ra.server.queue import Job, TaskAnswer, TaskQueue
from ra.server.runs import KEEP_S, MAX_ENDED, MAX_ENDED_BYTES, Runs
from ra.server.task import Refusal, Task, TaskContext
from ra.server.tasks import RunFilter
from ra.testing import LoopbackServer, Step, session


def _task(chat: int, number: int) -> Task:
    return Task("", str(number), TaskContext("test", str(chat)))


def _never(job: Job, bug: BaseException) -> None:
    raise AssertionError(bug)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40), st.integers(1, 4), st.integers(0, 10))
@settings(max_examples=60, deadline=None)
def test_chats_keep_their_order_and_nothing_is_above_its_limit(
    arrivals: list[tuple[int, int]], workers: int, room: int
) -> None:
    began: dict[str, list[int]] = defaultdict(list)
    active: set[str] = set()

    async def work(job: Job) -> TaskAnswer:
        chat = job.task.context.chat_id
        assert chat not in active
        active.add(chat)
        assert len(active) <= workers
        began[chat].append(int(job.task.message))
        for _ in range(int(job.task.message) % 3):
            await asyncio.sleep(0)
        active.discard(chat)
        return TaskAnswer(200, {})

    async def main() -> None:
        queue = TaskQueue(work, crashed=_never, workers=workers, room=room)
        taken: dict[str, list[int]] = defaultdict(list)
        refused: list[tuple[int, int, bool]] = []
        jobs = []
        for number, (chat, pause) in enumerate(arrivals):
            try:
                jobs.append(queue.submit(_task(chat, number)))
                taken[str(chat)].append(number)
            except Refusal as refusal:
                refused.append((refusal.status, queue.waiting, bool(refusal.retry_after_s)))
            assert queue.waiting <= room
            for _ in range(pause):
                await asyncio.sleep(0)
        await asyncio.gather(*(job.done for job in jobs))
        assert began == taken
        assert set(refused) <= {(429, room, True)}
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(main())


def test_a_bug_in_one_task_is_told_and_the_others_go_on() -> None:
    bugs: list[str] = []

    async def work(job: Job) -> TaskAnswer:
        if job.task.message == "1":
            raise ZeroDivisionError("oh")
        return TaskAnswer(200, {})

    async def main() -> list[int]:
        queue = TaskQueue(work, crashed=lambda job, bug: bugs.append(f"{job.task.message}: {bug}"))
        jobs = [queue.submit(_task(0, number)) for number in range(3)]
        return [(await job.done).status for job in jobs]

    assert asyncio.run(main()) == [200, 500, 200]
    assert bugs == ["1: oh"]


def test_a_run_that_is_remembered_holds_neither_its_session_nor_its_message(tmp_path: Path) -> None:
    async def main(server: LoopbackServer) -> None:
        runs = Runs()
        job = Job(_task(1, 7), "", asyncio.get_running_loop().create_future())
        runs.add(job)
        live = session(tmp_path, server)
        async for _ in job.follow(live.prompt(say("user", "hi"))):
            pass
        await live.close()
        job.done.set_result(TaskAnswer(200, {"content": "hello"}))
        await asyncio.sleep(0)
        alive = weakref.ref(live)
        del live
        gc.collect()
        assert (alive(), job.task.message, job.begun) == (None, "", True)
        (record,) = runs.list(RunFilter(state="succeeded", chat_id="1"))
        assert (record.body().id, record.ended is not None) == (job.id, True)

    with LoopbackServer("anthropic", [Step(text="Hello.")]) as server:
        asyncio.run(main(server))


def test_runs_that_ended_are_remembered_up_to_a_number_a_size_and_an_age() -> None:
    async def kept(number: int, content: str, later_s: float) -> list[str]:
        now = time.time()
        runs = Runs(clock=lambda: now + later_s)
        for at in range(number):
            job = Job(_task(at, at), "", asyncio.get_running_loop().create_future())
            runs.add(job)
            job.done.set_result(TaskAnswer(200, {"content": content}))
            await asyncio.sleep(0)
        runs.add(Job(_task(-1, 0), "", asyncio.get_running_loop().create_future()))
        return [record.job.task.context.chat_id for record in runs.list(RunFilter(limit=number + 1))]

    newest = [str(at) for at in reversed(range(MAX_ENDED + 5))]
    assert asyncio.run(kept(MAX_ENDED + 5, "", 0)) == ["-1", *newest[:MAX_ENDED]]
    assert asyncio.run(kept(5, "x" * (MAX_ENDED_BYTES // 2), 0)) == ["-1", "4", "3"]
    assert asyncio.run(kept(5, "", KEEP_S + 60)) == ["-1"]
