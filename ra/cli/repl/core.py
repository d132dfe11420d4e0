"""How does a conversation go on? One thing typed after the other: a prompt, a /command or a !command."""

import argparse
import asyncio
import contextlib
import re
import signal
import time
from collections.abc import Awaitable
from pathlib import Path

import msgspec

from ra.agent.run import Run
from ra.agent.session import Session
from ra.app import App
from ra.cli.output import Streams
from ra.cli.paper import Paper
from ra.cli.repl import asking, recap, shell
from ra.cli.repl.status import Status
from ra.cli.repl.telling import Telling
from ra.cli.repl.terminal import Fragments, Terminal
from ra.cli.safe import one_line, visible
from ra.core.asking import Answer, Question
from ra.core.errors import RaError
from ra.core.events import TurnEnded
from ra.core.messages import Message, Text
from ra.core.model import Usage
from ra.costs.promptcache import rules_for

FRAME_S = 0.03  # between two drawings of what streams
SLICE_S = 0.003  # that anything may take before the keyboard is looked at
TWICE_S = 2.0  # a second Ctrl-C within this time leaves
LAST_WORDS_S = 1.0  # for a run to record what it had, when its user leaves

_COMMAND = re.compile(r"/[a-z]*(\s|$)")


class Repl:
    """The state of a conversation, and what may happen to it. Commands are in `commands`."""

    def __init__(self, app: App, args: argparse.Namespace, streams: Streams, terminal: Terminal) -> None:
        self.app = app
        self.args = args
        self.streams = streams
        self.terminal = terminal
        self.paper = Paper(colour=streams.colour, plain=terminal.plain, width=terminal.width)
        self.telling = Telling(self.paper)
        self.status = Status(clock=app.clock)
        self.attachments: list[str] = []  # files for the next prompt
        self.outputs: list[shell.Output] = []  # of !commands, for the next prompt
        self.session: Session
        self.unfinished = False  # the last prompt has no answer, because the process ended
        self._run: Run | None = None
        self._doing: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()  # commands that run beside a run
        self._stopped_at = -TWICE_S
        self._dirty = asyncio.Event()
        self._asking = asyncio.Lock()
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def main(self) -> int:
        args = self.args
        self.use(self.app.open(resume=args.resume, latest=args.go_on, fork=args.fork, ephemeral=args.no_session))
        self.attachments = list(args.file)
        self.app.warn = lambda text: self.say(text, "yellow")
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            with contextlib.suppress(AttributeError, NotImplementedError):  # Windows has neither
                number = getattr(signal, name)
                loop.add_signal_handler(number, self.leave, 128 + number)
        await self.terminal.open(self, stop=self.stop, leave=lambda: self.leave(0), at_once=self.at_once)
        self.greet()
        warming = asyncio.create_task(asyncio.to_thread(self._warm_up))
        worker = asyncio.create_task(self._work())
        try:
            await asyncio.wait((worker, self._code), return_when=asyncio.FIRST_COMPLETED)
            if self._run is not None:
                self._run.interrupt()
                await asyncio.wait({worker}, timeout=LAST_WORDS_S)
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            await self.terminal.close()
            await warming
            await self.session.close()
        if not worker.cancelled():
            worker.result()  # a bug crashes
        return self._code.result() if self._code.done() else 0

    def _warm_up(self) -> None:
        """Load what the first prompt will need, while it is being typed."""
        from ra.cli.repl import commands  # noqa: F401 - loading it is the point

        self.app.price(self.app.model, Usage(input=1))

    # --- what moves ---

    def above(self, width: int, rows: int) -> Fragments:
        queued = [("class:queued", one_line(f"queued: {text}", width) + "\n") for text in self.terminal.waiting]
        return [*self.telling.moving(width, rows), *queued[:rows]]

    def below(self, width: int) -> Fragments:
        return self.status.line(width)

    # --- what is said ---

    def say(self, text: str, style: str = "") -> None:
        """A line of ours, above the input."""
        self.terminal.show(self.paper.line(visible(text), style))

    def show(self, text: str) -> None:
        self.terminal.show(text)

    def greet(self) -> None:
        from ra import __version__

        self.paper.resize(self.terminal.width)
        self.say(f"ra {__version__} · {self.app.model} · {self.app.resolved.cwd} · /help", "dim")
        told = recap.recap(self.session.journal.timeline.events())
        self.unfinished = told.unfinished
        self.show(recap.shown(told, self.paper, self.session.id))

    # --- the session ---

    def use(self, session: Session) -> None:
        """Go on with this session."""
        self.session = session
        status, engine = self.status, session.engine
        status.model = self.app.model
        status.strategy = self.app.strategy
        status.window = engine.window.limit
        status.rules = rules_for(self.app.model, self.app.provider_name)
        status.follow(session.journal.timeline.events())

    async def switch(self, session: Session) -> None:
        """Go on with another session; this one is closed, and stays where it is stored."""
        old = self.session
        self.use(session)
        await old.close()

    # --- coming in ---

    def at_once(self, text: str) -> bool:
        """Commands that only look need not wait for a run to end."""
        from ra.cli.repl import commands

        command = commands.find(text)
        if self._doing is None or command is None or not command.at_once:
            return False
        self._echo(text)
        task = asyncio.create_task(self._safely(commands.run(self, text)))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return True

    def stop(self) -> None:
        """Ctrl-C: stop what goes on; twice: leave."""
        now = time.monotonic()
        twice, self._stopped_at = now - self._stopped_at < TWICE_S, now
        if twice:
            self.leave(130)
        elif self._run is not None:
            self._run.interrupt()
        elif self._doing is not None:
            self._doing.cancel()
        else:
            self.say("Ctrl-C again leaves; so does Ctrl-D.", "dim")

    def leave(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    async def _work(self) -> None:
        while (typed := await self.terminal.read()) is not None:
            self._stopped_at = -TWICE_S
            self._doing = asyncio.create_task(self._safely(self._handle(typed)))
            await asyncio.wait({self._doing})
            done, self._doing = self._doing, None
            if not done.cancelled():
                done.result()
            if self._code.done():
                return
        self.leave(0)

    async def _safely(self, work: Awaitable[None]) -> None:
        """What the user did wrong is told in a line; a bug crashes."""
        try:
            await work
        except RaError as error:
            self.say(str(error), "red")

    async def _handle(self, typed: str) -> None:
        text = typed.strip()
        self.paper.resize(self.terminal.width)
        if _COMMAND.match(text):
            from ra.cli.repl import commands

            self._echo(text)
            await commands.run(self, text)
        elif text.startswith("!"):
            self._echo(text)
            await shell.run(self, text[1:].strip())
        elif text:
            self._echo(typed.strip("\n"))
            await self._prompt(typed)
        elif self.unfinished:
            self._echo(recap.GO_ON)
            await self._prompt(recap.GO_ON)

    def _echo(self, text: str) -> None:
        if not self.terminal.plain:
            self.show("\n" + self.paper.line("› " + visible(text).replace("\n", "\n  "), "bold cyan"))

    # --- a prompt ---

    async def _prompt(self, typed: str) -> None:
        prepared = await self.app.prepare(typed, files=tuple(map(Path, self.attachments)), ask_outside=self._outside)
        for warning in prepared.warnings:
            self.say(warning, "yellow")
        self.unfinished, self.attachments = False, []
        blocks = tuple(
            msgspec.structs.replace(block, text=self.terminal.unfold(block.text)) if isinstance(block, Text) else block
            for block in prepared.message.blocks
        )
        attached, self.outputs = tuple(output.block for output in self.outputs), []
        await self._follow(Message("user", (*blocks, *attached)))

    async def _follow(self, message: Message) -> None:
        self.status.begin_turn()
        self.telling.begin()
        self._run = run = self.session.start(message, ask=self.ask)
        painter = asyncio.create_task(self._paint())
        yielded = time.monotonic()
        try:
            async for event in run:
                self.telling.hear(event)
                if isinstance(event, TurnEnded):
                    self.status.pay(event.usage, event.dollars)
                    self.status.window = self.session.engine.window.limit
                self._dirty.set()
                if time.monotonic() - yielded > SLICE_S:  # keys must not wait for a full queue of events
                    await asyncio.sleep(0)
                    yielded = time.monotonic()
        finally:
            self._run = None
            self.telling.busy = ""
            painter.cancel()
            await self.flush()

    async def _paint(self) -> None:
        """Show what is new at once, and after that no more often than an eye can follow."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            await self.flush()
            await asyncio.sleep(FRAME_S)

    async def flush(self) -> None:
        self.paper.resize(self.terminal.width)
        while text := self._slice():
            self.terminal.show(text)
            await asyncio.sleep(0)  # between two slices, keys are read
        self.terminal.draw()

    def _slice(self) -> str:
        """As much of what is finished as can be rendered without keeping the keyboard waiting."""
        until, text = time.monotonic() + SLICE_S, ""
        while self.telling.more and (not text or time.monotonic() < until):
            text += self.telling.take()
        return text

    # --- asking ---

    async def ask(self, question: Question) -> Answer:
        async with self._asking:
            await self.flush()
            answer = await asking.ask(question, self.terminal, self.paper)
        if answer.edited is not None:
            self.telling.edited[question.call.id] = answer.edited
        return answer

    async def _outside(self, path: Path) -> bool:
        async with self._asking:
            self.say(f"{path} lies outside the project.", "yellow")
            return await self.terminal.choose("Attach it?", {"y": "yes", "n": "no"}) == "y"
