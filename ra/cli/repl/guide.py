"""Guides the user through a conversation: announces each step, and puts the next prompt into the input line."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence

from ra.cli.repl.plain import Plain
from ra.cli.repl.terminal import Act, Choice, Moving, Picked, Terminal
from ra.cli.repl.tour_script import TourStep

LETTER_S = 0.012  # between two letters of simulated typing
PAUSE_S = 0.7  # before a simulated key press


class Guided:
    """A terminal with a guide. The recorded model answers only its recorded prompts; commands are always free."""

    def __init__(self, inner: Terminal, steps: Sequence[TourStep]) -> None:
        self.plain = inner.plain
        self._inner = inner
        self._steps = list(steps)
        self._said: TourStep | None = None

    @property
    def width(self) -> int:
        return self._inner.width

    @property
    def waiting(self) -> tuple[str, ...]:
        return self._inner.waiting

    async def open(self, moving: Moving, *, stop: Act, leave: Act, at_once: Callable[[str], bool]) -> None:
        await self._inner.open(moving, stop=stop, leave=leave, at_once=at_once)

    async def close(self) -> None:
        await self._inner.close()

    async def read(self) -> str | None:
        while self._steps:
            step = self._steps[0]
            if step is not self._said:
                lines = textwrap.wrap(step.caption, self.width - 2)
                self._inner.show(
                    "\n" + "".join(f"{line}\n" if self.plain else f"\x1b[7m {line} \x1b[0m\n" for line in lines)
                )
                self._said = step
            self._inner.offer(step.typed)
            typed = await self._inner.read()
            typed = step.typed if typed is not None and not typed.strip() else typed  # Enter alone is enough
            if typed is None or (typed.startswith(("/", "!")) and typed.strip() != step.typed):
                return typed
            if typed.strip() == step.typed:
                self._steps.pop(0)
                if step.killed_after_s:
                    asyncio.get_running_loop().call_later(step.killed_after_s, os.kill, os.getpid(), signal.SIGKILL)
                return typed
            self._inner.show("The scripted model answers only the prompt that is already typed. Commands work.\n")
        return None

    def unfold(self, text: str) -> str:
        return self._inner.unfold(text)

    def show(self, text: str) -> None:
        self._inner.show(text)

    def draw(self) -> None:
        self._inner.draw()

    def offer(self, text: str) -> None:
        self._inner.offer(text)

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        return await self._inner.choose(question, keys)

    async def line(self, label: str, default: str = "") -> str | None:
        return await self._inner.line(label, default)

    async def pick(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool = True, marked: int = 0
    ) -> Picked | None:
        return await self._inner.pick(title, choices, keys, search=search, marked=marked)

    async def lend(self, work: Callable[[], int]) -> int:
        return await self._inner.lend(work)


class Played(Plain):
    """A terminal without a user: sends what is in the input line, and answers questions from the script."""

    def __init__(self, steps: Sequence[TourStep], *, plain: bool) -> None:
        super().__init__(complete=lambda _: [])
        self.plain = plain
        self._line = ""
        self._keys = [key for step in steps for key in step.keys]

    def offer(self, text: str) -> None:
        self._line = text

    async def read(self) -> str | None:
        await asyncio.sleep(PAUSE_S if sys.stdout.isatty() else 0)
        if self.plain:
            await self._type(f"> {self._line}\n")
        return self._line

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        key = self._keys.pop(0) if self._keys else "n"
        self.show(f"{question}  " + " · ".join(f"{key} {word}" for key, word in keys.items()) + "  ")
        await asyncio.sleep(PAUSE_S if sys.stdout.isatty() else 0)
        self.show(f"{key}\n")
        return key

    async def line(self, label: str, default: str = "") -> str | None:
        return default

    async def _type(self, text: str) -> None:
        for letter in text:
            self.show(letter)
            await asyncio.sleep(LETTER_S if sys.stdout.isatty() else 0)
