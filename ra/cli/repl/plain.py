"""Runs the interactive prompt line by line, for terminals that cannot move their cursor and for screen readers."""

import asyncio
import contextlib
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from ra.cli.permission_prompt import forget_typed_ahead
from ra.cli.repl.pastes import clean
from ra.cli.repl.terminal import Act, Choice, Moving, Picked

PROMPT = "> "
STOPPING_S = 0.05  # after Ctrl-C, for the current work to stop before the next line is read


class Plain:
    """Reads with the system's line editor and writes finished lines only: nothing moves, nothing is redrawn."""

    plain = True
    waiting: tuple[str, ...] = ()

    def __init__(self, *, complete: Callable[[str], list[str]]) -> None:
        self._complete = complete
        self._stop: Act = lambda: None
        self._moving: Moving | None = None
        self._ended_lines = 0  # interrupts that ended a line and have not reached the event loop yet

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    async def open(self, moving: Moving, *, stop: Act, leave: Act, at_once: Callable[[str], bool]) -> None:
        self._moving, self._stop = moving, stop
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        with contextlib.suppress(ImportError, OSError):
            _edit_with_readline(self._complete)

    async def close(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    async def read(self) -> str | None:
        lines: list[str] = []
        while self._moving is None or not self._moving.leaving:
            try:
                line = self._input(PROMPT if not lines else "  ")
            except KeyboardInterrupt:
                lines = []
                await asyncio.sleep(STOPPING_S)
                continue
            if line is None:
                return None
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)
            await asyncio.sleep(0)
        return None

    def unfold(self, text: str) -> str:
        return text

    def show(self, text: str) -> None:
        sys.stdout.write(text.encode("utf-8", "replace").decode())
        sys.stdout.flush()

    def draw(self) -> None:
        """Nothing moves."""

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        forget_typed_ahead()
        choices = ", ".join(f"{key} {word}" for key, word in keys.items())
        while True:
            line = await self._answer(f"{question} ({choices}): ")
            if line is None or line.strip().lower() in keys:
                return (line or "").strip().lower()
            self.show(f"Please answer {', '.join(keys)}.\n")

    async def line(self, label: str, default: str = "") -> str | None:
        typed = await self._answer(f"{label}[{default}] " if default else label)
        return default if typed == "" else typed

    async def pick(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool = True, marked: int = 0
    ) -> Picked | None:
        """A numbered list; a number chooses, a letter before it (`o 3`) selects the action of that letter."""
        self.show(f"{title}\n" + "".join(f"{n}. {choice.text}\n" for n, choice in enumerate(choices, 1)))
        named = {key.removeprefix("c-"): key for key in keys if key}
        ways = "".join(f", {letter} NUMBER: {keys[key]}" for letter, key in named.items())
        while True:
            line = await self._answer(f"number (Enter leaves{ways}): ")
            words = (line or "").split()
            if not words:
                return None
            number, key = words[-1], named.get(words[0].lower(), "") if len(words) > 1 else ""
            if number.isdecimal() and 1 <= int(number) <= len(choices) and (len(words) == 1 or key):
                return Picked(int(number) - 1, key)
            self.show(f"Please answer with a number from 1 to {len(choices)}.\n")

    def offer(self, text: str) -> None:
        """Only a running line editor could be filled, so the text is shown, to be copied."""
        self.show(f"The prompt was: {text}\n")

    async def lend(self, work: Callable[[], int]) -> int:
        with _on_interrupt(lambda number, frame: None):  # it reaches the program that has the terminal
            return await asyncio.to_thread(work)

    async def _answer(self, label: str) -> str | None:
        """A line; None if the user dismisses the question."""
        try:
            return self._input(label)
        except KeyboardInterrupt:
            await asyncio.sleep(STOPPING_S)
            return None

    def _input(self, label: str) -> str | None:
        """A line; None at the end of input. Nothing else happens meanwhile, so waiting here blocks nothing."""
        with _on_interrupt(signal.default_int_handler):  # the event loop is blocked and would react too late
            try:
                return clean(input(label))
            except EOFError:
                self.show("\n")
                return None
            except KeyboardInterrupt:
                self.show("\n")
                self._ended_lines += 1
                self._stop()
                raise

    def _interrupt(self) -> None:
        if self._ended_lines:
            self._ended_lines -= 1
        else:
            self._stop()


@contextlib.contextmanager
def _on_interrupt(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _edit_with_readline(complete: Callable[[str], list[str]]) -> None:
    """The history of this process, and completion by Tab, if the platform has readline."""
    import readline

    def choice(_: str, number: int) -> str | None:
        words = complete(readline.get_line_buffer()[: readline.get_endidx()])
        return words[number] if number < len(words) else None

    readline.set_completer(choice)
    readline.set_completer_delims(" \n")
    readline.parse_and_bind("tab: complete")
    readline.parse_and_bind("set enable-bracketed-paste off")
