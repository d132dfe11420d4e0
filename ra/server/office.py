"""What becomes of a task? It is checked, stands in line, runs in its chat's session, and its end is told and kept."""

from collections.abc import Callable

from ra.agent.observe import Level
from ra.core.errors import RaError, SessionInUse, StoreError
from ra.server import told
from ra.server.agents import Agents
from ra.server.chats import Chats, message_of, origin_of
from ra.server.desk import Answer, Desk, Job
from ra.server.keys import Keys
from ra.server.log import Log
from ra.server.task import Refusal, Task

IN_USE_S = 5  # when to ask again for a session that another process writes


class Office:
    """Everything behind the routes."""

    def __init__(self, agents: Agents, keys: Keys, log: Log, *, desk: Callable[..., Desk] = Desk) -> None:
        self.agents = agents
        self.keys = keys
        self.log = log
        self.chats = Chats(agents)
        self.desk = desk(self._work, crashed=lambda job, bug: log.bug(f"A bug in task {job.task.name}", bug))

    def take(self, task: Task, key: str | None) -> Job | Answer:
        """A job to wait for, or the answer that its key already has. Raises Refusal."""
        self.agents.check(task)
        if key is not None and (known := self.keys.known(key, task)) is not None:
            return known
        if key is None:
            return self.desk.submit(task)
        self.desk.need_room(task)
        self.keys.accept(key, task)
        job = self.desk.submit(task, key)
        self.keys.accepted(job)
        return job

    async def stop(self, grace_s: float) -> None:
        """Let tasks end, or record that they did not."""
        never = await self.desk.stop(grace_s)
        await self.chats.close()
        for job in never:
            refused = Refusal(503, "The server stopped before the task was begun.", retry_after_s=5)
            answer = Answer(503, refused.body, ran=False, retry_after_s=5)
            self.keys.ended(job, answer)
            if not job.clients:
                self._record(job)
            job.done.set_result(answer)
        self.keys.close()

    def _record(self, job: Job) -> None:
        """Nobody is there who could send it again."""
        try:
            self.chats.record_unanswered(job.task)
        except RaError as error:
            self.log.say("lost", f"task {job.task.name} could not be recorded: {error}", level="error")

    async def _work(self, job: Job) -> Answer:
        answer = await self._answer(job)
        try:
            self.keys.ended(job, answer)
        except StoreError as error:  # the answer is there all the same
            self._tell(job.task, f"the Idempotency-Key of task {job.task.name} is lost: {error}", level="error")
        return answer

    async def _answer(self, job: Job) -> Answer:
        task = job.task
        try:
            live = await self.chats.enter(task)
        except SessionInUse as error:
            return Answer(429, {"error": str(error)}, ran=False, retry_after_s=IN_USE_S)
        except RaError as error:
            self._tell(task, f"task {task.name} cannot run: {error}", level="error")
            return Answer(500, {"error": str(error)}, ran=False)
        whole = False
        try:
            self.keys.begun(job)
            run = job.follow(live.session.start(message_of(task), task=origin_of(task)))
            async for event in run:
                job.tell(event)
            assert run.ended is not None, "a run ends with RunEnded"
            configured = live.session.engine.configured
            strategy = configured.strategy if configured else task.strategy or ""
            whole = True
        finally:
            self.chats.leave(task, keep=whole)
        end = run.ended
        cost = f", ${float(end.dollars):.4f}" if end.dollars else ""
        self._tell(
            task,
            f"task {task.name} {end.outcome} in {end.seconds:.1f} s ({strategy}, "
            f"{end.usage.total_input} in, {end.usage.output} out{cost}){': ' if end.error else ''}{end.error}",
            level="warning" if end.error else "info",
            session=end.session,
            seconds=round(end.seconds, 3),
        )
        return told.answer(end, strategy=strategy)

    def _tell(self, task: Task, text: str, *, level: Level, **more: object) -> None:
        self.log.say("task", text, level=level, agent=task.agent or "ra", place=task.name, **more)
