"""The interface of a terminal: lines in, finished text out, and an area for what still changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ra.core.value import Value

Act = Callable[[], None]

Fragments = list[tuple[str, str]]
"""Pieces of text with their styles, as in prompt_toolkit; a newline begins a new row."""


class Choice(Value, frozen=True):
    """A row of a list: its text, the text for searching, and its preview."""

    text: str
    search: str = ""
    preview: str = ""

    @property
    def searched(self) -> str:
        return f"{self.text} {self.search}".lower()


class Picked(Value, frozen=True):
    """The chosen row, and the key; "" is Enter."""

    row: int
    key: str = ""


class Moving(Protocol):
    """The changing part below the finished text: above the input line, and under it."""

    @property
    def busy(self) -> bool:
        """Whether there is something for Ctrl-C to stop."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether no further line will be read."""
        ...

    def above(self, width: int, rows: int) -> Fragments: ...

    def below(self, width: int) -> Fragments: ...


class Terminal(Protocol):
    """There are two: one on prompt_toolkit, and a plain one for dumb terminals and screen readers."""

    plain: bool

    @property
    def width(self) -> int: ...

    @property
    def waiting(self) -> tuple[str, ...]:
        """Lines that were typed during other work and have not been read yet."""
        ...

    async def open(self, moving: Moving, *, stop: Act, leave: Act, at_once: Callable[[str], bool]) -> None:
        """Starts reading. `stop` handles Ctrl-C, `leave` Ctrl-D; `at_once` may take a line before it is queued."""
        ...

    async def close(self) -> None: ...

    async def read(self) -> str | None:
        """The user's next line, with folded pastes; None at the end."""
        ...

    def unfold(self, text: str) -> str:
        """The text with its pastes expanded."""
        ...

    def show(self, text: str) -> None:
        """Prints finished text, which never moves again."""
        ...

    def draw(self) -> None:
        """Redraws the changing part."""
        ...

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        """One of the keys, pressed after the question appeared; "" if the user dismisses it."""
        ...

    async def line(self, label: str, default: str = "") -> str | None:
        """A line that is not a prompt; None if the user dismisses it."""
        ...

    async def pick(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool = True, marked: int = 0
    ) -> Picked | None:
        """A choice from the list, searched by typing unless letters are `keys`; None if the user dismisses it."""
        ...

    def offer(self, text: str) -> None:
        """Puts a text into the input line, to be edited and sent."""
        ...

    async def lend(self, work: Callable[[], int]) -> int:
        """Lends the terminal to `work`."""
        ...
