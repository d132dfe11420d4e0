"""What does the REPL need of a terminal? Lines in, finished text out, and a place for what is still moving."""

from collections.abc import Callable, Mapping
from typing import Protocol

Act = Callable[[], None]

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles, as prompt_toolkit has them; a newline begins a new row."""


class Moving(Protocol):
    """What stands below the finished text and changes: above the input line, and under it."""

    def above(self, width: int, rows: int) -> Fragments: ...

    def below(self, width: int) -> Fragments: ...


class Terminal(Protocol):
    """Two are shipped: one on prompt_toolkit, and a plain one for dumb terminals and screen readers."""

    plain: bool

    @property
    def width(self) -> int: ...

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was typed while something else was going on, and is not read yet."""
        ...

    async def open(self, moving: Moving, *, stop: Act, leave: Act, at_once: Callable[[str], bool]) -> None:
        """Begin. `stop` is for Ctrl-C, `leave` for Ctrl-D; `at_once` may take what is typed before it is queued."""
        ...

    async def close(self) -> None: ...

    async def read(self) -> str | None:
        """What the user typed, pastes folded; None when there will be no more."""
        ...

    def unfold(self, text: str) -> str:
        """The text with its pastes whole."""
        ...

    def show(self, text: str) -> None:
        """Print what is finished: it stays where it is."""
        ...

    def draw(self) -> None:
        """What moves has changed."""
        ...

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        """One of the keys, pressed after the question was there; "" when the user turned away."""
        ...

    async def line(self, label: str, default: str = "") -> str | None:
        """A line that is no prompt; None when the user turned away."""
        ...

    async def lend(self, work: Callable[[], int]) -> int:
        """Let `work` have the terminal for itself."""
        ...
