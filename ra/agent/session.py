"""What is a live session? A journal, an engine, a loop, and the parts that must be closed when it ends."""

from collections.abc import Callable

from ra.agent.journal import Journal
from ra.agent.loop import Loop
from ra.agent.run import Run
from ra.context.engine import Engine
from ra.core.messages import Message
from ra.core.ports import Asker, Provider
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
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self.journal = journal
        self.engine = engine
        self.loop = loop
        self.toolbox = toolbox
        self.provider = provider
        self._finish = finish

    @property
    def id(self) -> str:
        return self.journal.session

    def start(self, message: Message, *, ask: Asker | None = None) -> Run:
        self.loop.ask = ask
        return Run(lambda emit: self.loop.run(message, emit))

    async def close(self) -> None:
        self._finish()
        await self.toolbox.close()
        await self.provider.close()
        self.journal.timeline.close()
