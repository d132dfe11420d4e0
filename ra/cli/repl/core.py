"""Runs a conversation: one prompt, /command or !command after the other."""

import argparse
import asyncio
import contextlib
import gc
import re
import signal
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from ra.app import App
from ra.cli.output import Streams
from ra.cli.render import Paper, light_background
from ra.cli.repl import permission_prompt, resume_banner, shell
from ra.cli.repl.follow import Telling
from ra.cli.repl.status import Status
from ra.cli.repl.terminal import Fragments, Terminal
from ra.core.asking import Answer, Question
from ra.core.errors import RaError
from ra.core.events import RunEnded, ToolEnded, TurnEnded
from ra.core.messages import Message, Text
from ra.core.model import Usage
from ra.core.text import visible, visible_line
from ra.costs.promptcache import CacheRules, rules_for
from ra.session.run import Run
from ra.session.session import Session

FRAME_S = 0.03  # between two repaints of streamed text
SLICE_S = 0.003  # the longest that anything may take before the keyboard is read
TWICE_S = 2.0  # a second Ctrl-C within this time leaves
LAST_WORDS_S = 1.0  # for a run to record its partial answer when the user leaves

SPOKEN = {"?": "/help", "/?": "/help"} | dict.fromkeys(
    ("exit", "quit", "/exit", "exit()", "quit()", ":q", ":wq"), "/quit"
)
"""Other programs' words, and the command here."""

QUIET = "/edits next"  # Shift-Tab: the status line is the answer

T = TypeVar("T")

_COMMAND = re.compile(r"/[A-Za-z_-]*(\s|$)")


class SlashCommands(Protocol):
    """The slash commands. They depend on the conversation, so this module cannot import them."""

    def load(self) -> None:
        """Prepares them, before the first is typed."""
        ...

    def knows(self, text: str) -> bool:
        """Whether a built-in command has this name: it wins over a command file of the user or the project."""
        ...

    def only_looks(self, text: str) -> bool:
        """Whether this command may run beside a prompt."""
        ...

    def meant(self, text: str) -> str:
        """What to type instead of a line that was meant as a command; "" for a prompt."""
        ...

    async def run(self, repl: "Repl", text: str) -> None:
        """Runs the line. Raises UsageError with a one-line message."""
        ...


class Repl:
    """The state of a conversation, and the actions on it. Commands are in `commands`."""

    def __init__(
        self, app: App, args: argparse.Namespace, streams: Streams, terminal: Terminal, commands: SlashCommands
    ) -> None:
        self._commands = commands
        self.app = app
        self.args = args
        self.streams = streams
        self.terminal = terminal
        light = light_background(app.env)
        self.paper = Paper(colour=streams.colour, plain=terminal.plain, width=terminal.width, light=light)
        self.telling = Telling(self.paper)
        self.status = Status(clock=app.clock)
        self.attachments: list[str] = []  # files for the next prompt
        self.outputs: list[shell.ShellOutput] = []  # of !commands, for the next prompt
        self.session: Session
        self.unfinished = False  # the last prompt has no answer, because the process ended
        self._failed: Message | None = None  # the last prompt, if the provider failed to answer it
        self._run: Run | None = None
        self._doing: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()  # commands that run beside a run
        self._stopped_at = -TWICE_S
        self._dirty = asyncio.Event()
        self._asking = asyncio.Lock()
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def main(self) -> int:
        args = self.args
        session = self.app.open(resume=args.resume, latest=args.go_on, fork=args.fork, ephemeral=args.no_session)
        session.ready()
        self.use(session)
        self.attachments = list(args.file)
        self.app.notices.listen(self.warn)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave, 128 + number)
        self.greet()
        await self.terminal.open(self, stop=self.stop, leave=lambda: self.leave(0), at_once=self.at_once)
        warming = asyncio.create_task(asyncio.to_thread(self._warm_up))
        worker = asyncio.create_task(self._work(warming))
        try:
            await asyncio.wait((worker, self._code), return_when=asyncio.FIRST_COMPLETED)
            if self._run is not None:
                self._run.interrupt()
                await asyncio.wait({worker}, timeout=LAST_WORDS_S)
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            await self.terminal.close()
            self._say_how_to_come_back()
            await warming
            await self.session.close()
        if not worker.cancelled():
            worker.result()  # a bug crashes
        return self._code.result() if self._code.done() else 0

    def _say_how_to_come_back(self) -> None:
        if self.session.configured is not None and not self.args.no_session:
            self.streams.err(f"ra -c goes on here; so does ra --resume {self.session.id}\n", dim=True)

    def _warm_up(self) -> None:
        """Loads what the first prompt will need, while it is being typed."""
        self._commands.load()
        recipe = self.session.recipe
        self.app.prices.price(recipe.model, Usage(input=1), recipe.provider)
        gc.freeze()  # loaded modules stay: collecting them again would delay a key by 50 ms

    # --- the changing part ---

    @property
    def busy(self) -> bool:
        return self._doing is not None

    @property
    def leaving(self) -> bool:
        return self._code.done()

    def above(self, width: int, rows: int) -> Fragments:
        queued = [("class:queued", visible_line(f"queued: {text}", width) + "\n") for text in self.terminal.waiting]
        return [*self.telling.moving(width, rows), *queued[:rows]]

    def below(self, width: int) -> Fragments:
        return self.status.line(width)

    # --- output ---

    def say(self, text: str, style: str = "") -> None:
        """Prints a line from ra, above the input."""
        self.terminal.show(self.paper.line(visible(text), style))

    def warn(self, text: str) -> None:
        self.say(text, "yellow")

    def show(self, text: str) -> None:
        self.terminal.show(text)

    def greet(self) -> None:
        from ra.core.version import __version__

        self.paper.resize(self.terminal.width)
        self.say(f"ra {__version__} · {self.session.recipe.model} · {self.app.resolved.cwd} · /help", "dim")
        recap = resume_banner.recap(self.session.events())
        self.unfinished = recap.unfinished
        self.show(resume_banner.shown(recap, self.paper, self.session.id))

    # --- the session ---

    def use(self, session: Session) -> None:
        """Makes this the current session."""
        self.session = session
        status, recipe = self.status, session.recipe
        status.model = recipe.model
        status.edits = session.edits if recipe.info.tools and self.app.options.tools else ""
        status.strategy = recipe.strategy.name
        status.window = session.window
        # The embedded model has no price, and its cache no lifetime that costs money.
        status.embedded = recipe.provider == "local"
        status.rules = CacheRules("none") if status.embedded else rules_for(recipe.model, recipe.provider)
        status.lifetime_s = session.cache_lifetime_s
        status.price = session.pricing
        status.follow(session.events())

    async def switch(self, session: Session) -> None:
        """Switches to another session; this one is closed, and remains in the store."""
        before = self.session
        self.use(session)
        await before.close()

    # --- input ---

    def at_once(self, text: str) -> bool:
        """Read-only commands need not wait for the end of a run."""
        if self._doing is None or not self._commands.only_looks(text):
            return False
        self._echo(text)
        task = asyncio.create_task(self._safely(self._commands.run(self, text)))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return True

    def stop(self) -> None:
        """Ctrl-C: stops the current work; twice, leaves."""
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

    async def _work(self, warming: asyncio.Task[None]) -> None:
        while (typed := await self._read(warming)) is not None:
            self._stopped_at = -TWICE_S
            self._doing = asyncio.create_task(self._safely(self._handle(typed)))
            await asyncio.wait({self._doing})
            task, self._doing = self._doing, None
            if not task.cancelled():
                task.result()
            elif not self._code.done():
                self.say(f"Stopped: {visible_line(typed, 40)} did not finish.", "yellow")
            if self._code.done():
                return
        self.leave(0)

    async def _read(self, warming: asyncio.Task[None]) -> str | None:
        """The next input; until then, keeps the provider's cache warm if the user allows it."""
        tending = asyncio.create_task(self._tend_cache(warming))
        try:
            return await self.terminal.read()
        finally:
            tending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await tending

    async def _tend_cache(self, warming: asyncio.Task[None]) -> None:
        await asyncio.wait({warming})  # loads prices, for which the keyboard need not wait
        while (due_s := self.session.cache_due_s) is not None:
            await asyncio.sleep(due_s)
            decision = await self.session.settle_cache()
            self.status.follow(self.session.events())
            if decision.action != "bridge":
                self.say(f"Cache: {decision.action} (${decision.dollars}): {decision.reason}.", "dim")
            self.terminal.draw()

    async def _safely(self, work: Awaitable[None]) -> None:
        """Reports a mistake of the user in one line; a bug crashes."""
        try:
            await work
        except RaError as error:
            self.say(str(error), "red")

    async def _handle(self, typed: str) -> None:
        text = SPOKEN.get(typed.strip().lower(), typed.strip())
        self.paper.resize(self.terminal.width)
        if text.startswith("/") and not self._commands.knows(text) and self.app.files.has_command(text):
            self._echo(text)
            await self._prompt(text)
        elif _COMMAND.match(text):
            self._echo(text)
            await self._commands.run(self, text)
        elif text.startswith("!"):
            self._echo(text)
            await self._shell(text[1:].strip())
        elif text and not typed.startswith(" ") and "\n" not in text and (hint := self._commands.meant(text)):
            self._echo(text)
            self.say(f"{hint} Nothing was sent; to send it as it is, type a space in front.", "yellow")
        elif text:
            self._echo(typed.strip("\n"))
            await self._prompt(typed)
        elif self._failed is not None:
            await self._try_again(self._failed)
        elif self.unfinished:
            self._echo(resume_banner.GO_ON)
            await self._prompt(resume_banner.GO_ON)

    async def working(self, what: str, work: Awaitable[T]) -> T:
        """Runs a part of a command that may take a while: after a second the screen says what it is."""
        self.telling.work(what)
        try:
            return await work
        finally:
            self.telling.work("")

    async def _shell(self, command: str) -> None:
        output = await shell.run(command, self.terminal, self.app.env.get("SHELL", ""))
        self.outputs.append(output)
        ended = f"exit {output.code}; " if output.code else ""
        lines = output.text.count("\n")
        count = f"{lines} line{'s' * (lines != 1)}"
        self.say(f"{ended}{count} will be sent with your next prompt; /drop removes them", "dim")

    def _echo(self, text: str) -> None:
        if not self.terminal.plain and text != QUIET:
            self.show("\n" + self.paper.line("› " + visible(text).replace("\n", "\n  "), "bold cyan"))

    # --- a prompt ---

    async def _prompt(self, typed: str) -> None:
        prepared = await self.session.prepare(
            typed, files=tuple(map(Path, self.attachments)), ask_outside=self._outside
        )
        for warning in prepared.warnings:
            self.say(warning, "yellow")
        if prepared.failed:
            async with self._asking:
                if await self.terminal.choose("Send the prompt without it?", {"n": "no", "y": "yes"}) != "y":
                    self.say("Nothing was sent.", "dim")
                    self.terminal.offer(typed)
                    return
        self.unfinished, self.attachments = False, []
        blocks = tuple(
            msgspec.structs.replace(block, text=self.terminal.unfold(block.text)) if isinstance(block, Text) else block
            for block in prepared.message.blocks
        )
        attached, self.outputs = tuple(output.block for output in self.outputs), []
        await self._follow(Message("user", (*blocks, *attached)))

    async def _try_again(self, message: Message) -> None:
        """Sends the same prompt again. Without any answer yet, the first attempt is taken back."""
        said = self.session.messages()
        if said and said[-1].is_prompt:
            self.session.rewind(said[-1])
            await self._follow(message)
        else:
            self._echo(resume_banner.GO_ON)
            await self._prompt(resume_banner.GO_ON)

    async def _follow(self, message: Message) -> None:
        self._failed = None
        self.status.begin_turn()
        self.telling.begin()
        self._run = run = self.session.prompt(message, ask=self.ask)
        painter = asyncio.create_task(self._paint())
        yielded = time.monotonic()
        try:
            async for event in run:
                self.telling.hear(event)
                if isinstance(event, ToolEnded) and self.status.edits:
                    self.status.edits = self.session.edits  # an answer to a prompt may have changed it
                if isinstance(event, TurnEnded):
                    self.status.pay(event.usage, event.dollars)
                    self.status.window = self.session.window
                    self.status.lifetime_s = self.session.cache_lifetime_s
                if isinstance(event, RunEnded) and event.outcome == "failed" and not self.terminal.plain:
                    self._failed = message
                    self.telling.note("Enter tries again", "dim")
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
        """Shows new text at once, and after that no more often than the eye can follow."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            await self.flush()
            await asyncio.sleep(FRAME_S)

    async def flush(self) -> None:
        self.paper.resize(self.terminal.width)
        while text := self._slice():
            self.terminal.show(text)
            await asyncio.sleep(0)  # keys are read between two slices
        self.terminal.draw()

    def _slice(self) -> str:
        """As much of the finished text as can be rendered without delaying the keyboard."""
        until, text = time.monotonic() + SLICE_S, ""
        while self.telling.more and (not text or time.monotonic() < until):
            text += self.telling.take()
        return text

    # --- questions ---

    async def ask(self, question: Question) -> Answer:
        async with self._asking:
            await asyncio.sleep(0)  # earlier events are handled before the question
            await self.flush()
            self.telling.ask(question.call.id)
            answer = await permission_prompt.ask(question, self.terminal, self.paper)
            self.telling.answered()
        if answer.edited is not None:
            self.telling.edited[question.call.id] = answer.edited
        elif question.change is not None:
            self.telling.previewed.add(question.call.id)
        return answer

    async def _outside(self, path: Path) -> bool:
        async with self._asking:
            self.say(f"{path} lies outside the project.", "yellow")
            return await self.terminal.choose("Attach it?", {"n": "no", "y": "yes"}) == "y"
