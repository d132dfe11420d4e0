"""The runs of this server: the state of each task, and its events for clients that connect late or again."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import UNSET

from ra.core.events import Event
from ra.core.model import TokenCounts
from ra.server import responses
from ra.server.bodies import RunBody, RunState
from ra.server.queue import Job, TaskAnswer
from ra.server.tasks import RunFilter

KEEP_S = 900.0  # how long an ended run stays available
MAX_ENDED = 500
MAX_ENDED_BYTES = 64 * 1024 * 1024  # events and answers of all ended runs; the oldest are dropped first
MAX_EVENT_BYTES = 512 * 1024  # for one run; older events are dropped first, the answer never
PING_S = 15.0


class RunRecord:
    """A job with its events, numbered from 1. Dropped events keep their numbers."""

    def __init__(self, job: Job, created: float) -> None:
        self.job = job
        self.created = created
        self.ended: float | None = None
        self._frames: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._count = 0
        self._news = asyncio.Event()
        job.listen(self._hear)
        job.done.add_done_callback(self._end)

    @property
    def state(self) -> RunState:
        if not self.job.done.done():
            return "running" if self.job.begun else "waiting"
        return end_state(self.job.done.result(), cancelled=self.job.cancelled)

    @property
    def size(self) -> int:
        """The approximate number of bytes that the ended run keeps in memory."""
        return self._size + len(self.job.done.result().body.get("content", ""))

    def body(self) -> RunBody:
        task = self.job.task
        body = RunBody(
            id=self.job.id,
            state=self.state,
            agent=task.agent,
            channel=task.context.channel,
            chat_id=task.context.chat_id,
            created=self.created,
        )
        if self.job.done.done():
            answer = self.job.done.result().body
            body.ended = self.ended if self.ended is not None else UNSET
            body.error = answer.get("error", UNSET)
            body.session_id = answer.get("sessionId", UNSET)
            body.cost = answer.get("cost")
            if "usage" in answer:
                body.usage = msgspec.convert(answer["usage"], TokenCounts)
        return body

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """Server-sent events from number `after` + 1 until the run ends, with a keep-alive comment in quiet periods."""
        missed = self._frames[0][0] > after + 1 if self._frames else self._count > after
        while True:
            self._news = self._news if not self._news.is_set() else asyncio.Event()
            news = self._news
            for number, frame in list(self._frames):
                if number > after:
                    after = number
                    yield b"id: %d\n%b" % (number, frame)
            if self.job.done.done() and after >= self._count:
                # With the number of the last event: a client that loses the connection here comes back for this one.
                yield responses.last_frames(self.job.done.result(), heard=not missed)
                return
            try:
                await asyncio.wait_for(news.wait(), PING_S)
            except TimeoutError:
                yield b": working\n\n"

    def _hear(self, event: Event) -> None:
        frame = responses.frames(event)
        if not frame:
            return
        self._count += 1
        self._frames.append((self._count, frame))
        self._size += len(frame)
        while self._size > MAX_EVENT_BYTES and len(self._frames) > 1:
            self._size -= len(self._frames.popleft()[1])
        self._news.set()

    def _end(self, _: "asyncio.Future[TaskAnswer]") -> None:
        self.ended = time.time()
        self.job.let_go()
        self._news.set()


class Runs:
    """All waiting and running runs, and those that ended recently."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._records: dict[str, RunRecord] = {}

    def add(self, job: Job) -> None:
        self._forget()
        self._records[job.id] = RunRecord(job, self._clock())

    def get(self, run: str) -> RunRecord | None:
        return self._records.get(run)

    def list(self, wanted: RunFilter) -> list[RunRecord]:
        """The runs, newest first."""
        matches = [
            record
            for record in reversed(self._records.values())
            if (wanted.state is None or record.state == wanted.state)
            and (wanted.agent is None or record.job.task.agent == wanted.agent)
            and (wanted.chat_id is None or record.job.task.context.chat_id == wanted.chat_id)
        ]
        return matches[: wanted.limit]

    def _forget(self) -> None:
        ended = [record for record in self._records.values() if record.job.done.done()]
        oldest_kept = self._clock() - KEEP_S
        size = 0
        for number, record in enumerate(reversed(ended), 1):
            size += record.size
            if number > MAX_ENDED or size > MAX_ENDED_BYTES or (record.ended or 0) < oldest_kept:
                del self._records[record.job.id]


def end_state(answer: TaskAnswer, *, cancelled: bool) -> RunState:
    """Only a run that began can be interrupted; one that could not begin has failed, and its error says why."""
    if cancelled:
        return "cancelled"
    if answer.status == 503 and answer.ran:
        return "interrupted"
    return "failed" if answer.body.get("error") else "succeeded"
