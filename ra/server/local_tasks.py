"""The queue of one process: tasks wait in memory, and their Idempotency-Keys are in a file of the data folder."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ra.core.errors import RaError, SessionInUse, StoreError
from ra.server.agents import Agents
from ra.server.bodies import RunBody
from ra.server.executor import IN_USE_S, Executor
from ra.server.idempotency import Keys
from ra.server.log import Log
from ra.server.metrics import Load
from ra.server.presence import Presence
from ra.server.queue import Job, TaskAnswer, TaskQueue
from ra.server.runs import Runs
from ra.server.task import Refusal, Task
from ra.server.tasks import Accepted, RunFilter
from ra.timeline.store import Store


class LocalTasks:
    """Implements `Tasks` with a `TaskQueue` for the order and `Runs` for the recent runs."""

    def __init__(
        self,
        agents: Agents,
        keys: Keys,
        presence: Presence,
        log: Log,
        store: Store,
        *,
        queue: Callable[..., TaskQueue] = TaskQueue,
    ) -> None:
        self.agents = agents
        self._store = store
        self.keys = keys
        self.log = log
        self._runs = Runs()
        self._executor = Executor(agents, presence, log)
        self.metrics = self._executor.metrics
        self._chats = self._executor.chats
        self._presence = presence
        self.queue = queue(self._work, crashed=lambda job, bug: log.bug(f"A bug in task {job.task.name}", bug))

    @property
    def stopping(self) -> bool:
        return self.queue.stopping

    async def trouble(self) -> str:
        try:
            # In a thread: another program may have locked the file.
            await asyncio.to_thread(self._store.find, "", "", "")
        except StoreError as error:
            return str(error)
        return self._executor.store_trouble

    async def ready(self) -> None:
        """Always ready."""

    async def load(self) -> Load:
        return Load(self.queue.running, self.queue.waiting)

    def current(self) -> tuple[int, int]:
        return self.queue.running, self.queue.waiting

    async def take(self, task: Task, key: str | None) -> Accepted:
        self.agents.check(task)
        accepted = self._take(task, key)
        return Accepted(accepted.id) if isinstance(accepted, Job) else Accepted("", accepted)

    def _take(self, task: Task, key: str | None) -> Job | TaskAnswer:
        if key is not None and (known := self.keys.known(key, task)) is not None:
            return known
        if key is None:
            return self._submit(task, "")
        self.queue.need_room(task)
        if (earlier := self.keys.accept(key, task)) is not None:
            return earlier
        job = self._submit(task, key)
        self.keys.accepted(job)
        return job

    def _submit(self, task: Task, key: str) -> Job:
        job = self.queue.submit(task, key)
        self._runs.add(job)
        return job

    async def answer(self, run: str) -> TaskAnswer:
        record = self._runs.get(run)
        assert record is not None, "a run that was taken is remembered while somebody waits for it"
        with record.job.waited_for():
            return await asyncio.shield(record.job.done)

    async def run(self, run: str) -> RunBody | None:
        record = self._runs.get(run)
        return record.body() if record else None

    async def runs(self, wanted: RunFilter) -> list[RunBody]:
        return [record.body() for record in self._runs.list(wanted)]

    async def cancel(self, run: str) -> RunBody | None:
        record = self._runs.get(run)
        if record is None:
            return None
        job = record.job
        if not job.done.done():
            job.cancel()
            if self.queue.withdraw(job):
                answer = TaskAnswer(503, {"content": "", "error": "Cancelled before it was begun."}, ran=False)
                self.keys.ended(job, answer)
                job.done.set_result(answer)
        return record.body()

    async def follow(self, run: str, after: int) -> AsyncIterator[bytes]:
        record = self._runs.get(run)
        if record is not None:
            with record.job.waited_for():
                async for frames in record.follow(after):
                    yield frames

    def hurry(self) -> None:
        self.queue.hurry()

    async def serve(self) -> None:
        await self._chats.sweep()

    async def stop(self, grace_s: float) -> None:
        never = await self.queue.stop(grace_s)
        await self._chats.close()
        for job in never:
            refused = Refusal(503, "The server stopped before the task was begun.", retry_after_s=5)
            answer = TaskAnswer(503, refused.body, ran=False, retry_after_s=5)
            self.keys.ended(job, answer)
            if not job.clients:
                self._record(job)
            job.done.set_result(answer)
        self.keys.close()
        self._presence.close()

    def _record(self, job: Job) -> None:
        """Records an unanswered message if no client is left to send it again."""
        try:
            self._chats.record_unanswered(job.task)
        except RaError as error:
            self.log.say("lost", f"task {job.task.name} could not be recorded: {error}", level="error")

    async def begin(self, job: Job) -> bool:
        self.keys.begun(job)
        return True

    async def _work(self, job: Job) -> TaskAnswer:
        try:
            answer = await self._executor.answer(job, self)
        except SessionInUse as error:
            answer = TaskAnswer(429, {"error": str(error)}, ran=False, retry_after_s=IN_USE_S)
        assert answer is not None, "nobody else begins a task of this process"
        try:
            self.keys.ended(job, answer)
        except StoreError as error:  # the answer exists all the same
            text = f"the Idempotency-Key of task {job.task.name} is lost: {error}"
            self._executor.tell(job.task, text, level="error")
        return answer
