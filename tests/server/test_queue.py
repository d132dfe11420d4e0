"""Order, capacity and fairness of the task queue, over generated arrivals."""

import asyncio
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.server.queue import Job, TaskAnswer, TaskQueue
from ra.server.task import Refusal, Task, TaskContext


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
