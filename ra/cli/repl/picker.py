"""Chooses from a list in the terminal: typing searches it, and a preview shows the marked row.

prompt_toolkit's own list widgets take the whole screen; this one is above the input line, like everything here.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from rich.cells import cell_len, set_cell_size

from ra.cli.repl.terminal import Choice, Fragments, Picked
from ra.core.text import visible, visible_line

NARROW = 60  # columns; on narrower screens the way out comes first, where nothing cuts it off
PREVIEW = 6  # rows of the preview
NAMES = {"c-r": "Ctrl-R", "c-x": "Ctrl-X"}


class Picker:
    """The state of one choice. With `search`, letters narrow the list; otherwise they are keys."""

    def __init__(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool, marked: int = 0
    ) -> None:
        self.keys = keys
        self.search = search
        self.result: asyncio.Future[Picked | None] = asyncio.get_running_loop().create_future()
        self._title = title
        self._choices = choices
        self._mark = marked
        self._query = ""

    def narrow(self, query: str) -> None:
        if query != self._query:
            self._query, self._mark = query, 0

    @property
    def matches(self) -> list[int]:
        words = self._query.lower().split()
        return [n for n, choice in enumerate(self._choices) if all(word in choice.searched for word in words)]

    def move(self, rows: int) -> None:
        self._mark = max(0, min(len(self.matches) - 1, self._mark + rows))

    def press(self, key: str) -> None:
        matches = self.matches
        if matches and not self.result.done():
            self.result.set_result(Picked(matches[min(self._mark, len(matches) - 1)], key))

    def cancel(self) -> None:
        if not self.result.done():
            self.result.set_result(None)

    def fragments(self, width: int, rows: int) -> Fragments:
        matches = self.matches
        keys = [f"{NAMES.get(key, key)} {word}" for key, word in self.keys.items()]
        wide = width >= NARROW
        hints = " · ".join(["↑↓ move", *keys, "Esc leaves"] if wide else ["Esc leaves", *keys, "↑↓ move"])
        head = visible_line(f"{self._title}  {hints}" if wide else hints, width)
        visible_rows = max(3, rows - PREVIEW - 2)
        first = max(0, min(self._mark - visible_rows // 2, len(matches) - visible_rows))
        lines: Fragments = [("class:question", head + "\n")]
        for place, number in enumerate(matches[first : first + visible_rows], first):
            marked = place == self._mark
            row = _cut(f"{'›' if marked else ' '} {self._choices[number].text}", width)
            lines.append(("reverse" if marked else "", row + "\n"))
        if not matches:
            lines.append(("class:dim", "  nothing matches\n"))
        elif len(matches) > visible_rows:
            lines.append(("class:dim", f"  {self._mark + 1} of {len(matches)}\n"))
        preview = self._choices[matches[self._mark]].preview if matches else ""
        for text in visible(preview).splitlines()[:PREVIEW]:
            lines.append(("class:dim", _cut(f"  │ {text}", width) + "\n"))
        return lines


def _cut(text: str, width: int) -> str:
    """One row of the screen; columns keep their positions."""
    row = visible(text).replace("\n", " ").replace("\t", " ")
    return row if cell_len(row) <= width else set_cell_size(row, width - 1) + "…"


class PickingLine(Protocol):
    """What the keys of a list act on."""

    picker: Picker | None


def bind(keys: KeyBindings, live: PickingLine, active: Filter) -> None:
    """Binds the keys of a list, which take precedence over those of the input line."""
    moves = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -10, "pagedown": 10}
    for key, rows in moves.items():

        @keys.add(key, filter=active, eager=True)
        def _move(event: KeyPressEvent, rows: int = rows) -> None:
            assert live.picker is not None
            live.picker.move(rows)

    @keys.add("enter", filter=active, eager=True)
    def _choose(event: KeyPressEvent) -> None:
        assert live.picker is not None
        live.picker.press("")

    @keys.add("escape", filter=active, eager=True)
    @keys.add("c-c", filter=active, eager=True)
    @keys.add("c-d", filter=active, eager=True)
    def _cancel(event: KeyPressEvent) -> None:
        assert live.picker is not None
        live.picker.cancel()

    for key in NAMES:

        @keys.add(key, filter=active, eager=True)
        def _action(event: KeyPressEvent, key: str = key) -> None:
            assert live.picker is not None
            if key in live.picker.keys:
                live.picker.press(key)

    by_letter = Condition(lambda: live.picker is not None and not live.picker.search)

    @keys.add(Keys.Any, filter=active & by_letter, eager=True)
    def _letter(event: KeyPressEvent) -> None:
        assert live.picker is not None
        if event.data in live.picker.keys:
            live.picker.press(event.data)
