"""What the REPL needs of a terminal: lines in, finished text out, and a place for what still moves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ra.core.value import Value

Act = Callable[[], None]

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles, as prompt_toolkit has them; a newline begins a new row."""


class Choice(Value, frozen=True):
    """A row of a list: what it shows, what a search looks at, and what is told of it when it is marked."""

    text: str
    search: str = ""
    preview: str = ""

    @property
    def searched(self) -> str:
        return f"{self.text} {self.search}".lower()


class Picked(Value, frozen=True):
    """Which row, and by which key; "" is Enter."""

    row: int
    key: str = ""


class Moving(Protocol):
    """What stands below the finished text and changes: above the input line, and under it."""

    @property
    def busy(self) -> bool:
        """Whether something goes on that Ctrl-C stops."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether no line will be read any more."""
        ...

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

    async def pick(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool = True, marked: int = 0
    ) -> Picked | None:
        """One of many, searched by typing unless letters are `keys`; None when the user turned away."""
        ...

    def offer(self, text: str) -> None:
        """Put a text where the user types, to be changed and sent."""
        ...

    async def lend(self, work: Callable[[], int]) -> int:
        """Let `work` have the terminal for itself."""
        ...
