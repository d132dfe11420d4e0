"""What is a live session? A journal, an engine, a loop, and the parts that must be closed when it ends."""

from collections.abc import Awaitable, Callable

from ra.agent.journal import Journal
from ra.agent.loop import Loop
from ra.agent.observe import Observer
from ra.agent.run import Run
from ra.context.engine import Engine
from ra.context.strategies.channels import Task
from ra.core.asking import Asker
from ra.core.functions import Emit
from ra.core.messages import Message
from ra.core.ports import Provider
from ra.tools.toolbox import Toolbox


class Session:
    """One conversation. `start` runs a prompt; only one run goes on at a time."""

    def __init__(
        self,
        *,
        journal: Journal,
        engine: Engine,
        loop: Loop,
        toolbox: Toolbox,
        provider: Provider,
        observer: Observer,
        work: Callable[[Message, Emit], Awaitable[None]] | None = None,
        finish: Callable[[], None] = lambda: None,
        release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.journal = journal
        self.engine = engine
        self.loop = loop
        self.toolbox = toolbox
        self.provider = provider
        self.observer = observer
        self._work = work or loop.run
        self._finish = finish
        self._release = release

    @property
    def id(self) -> str:
        return self.journal.session

    def start(self, message: Message, *, ask: Asker | None = None, task: Task | None = None) -> Run:
        """Run a prompt. `task` says who asked and from where, when that is not the command line."""
        self.loop.calls.ask = ask
        self.toolbox.undo.begin_turn()
        self.observer.task = task or self.observer.task
        return Run(lambda emit: self._work(message, emit))

    async def release(self) -> None:
        """Let go of everything but the timeline, which may be wired anew."""
        self._finish()
        await self.toolbox.close()
        await self.provider.close()
        if self._release is not None:
            await self._release()

    async def close(self) -> None:
        await self.release()
        self.journal.timeline.close()
