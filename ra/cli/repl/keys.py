"""Binds the keys that a line editor lacks: send, break the line, stop, leave, fold a paste, answer."""

import time
from typing import Protocol

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completion, get_common_complete_suffix
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ra.cli.repl import picker
from ra.cli.repl.history_search import HistorySearch
from ra.cli.repl.offers import reference_in
from ra.cli.repl.pastes import Pastes, clean
from ra.cli.repl.picker import Picker
from ra.cli.repl.question import QuestionPanel

NEXT_EDITS = "/edits next"  # what Shift-Tab types


class Clock:
    """The times of the last two key presses."""

    def __init__(self) -> None:
        self.before = self.last = 0.0

    def tick(self, _: object) -> None:
        self.before, self.last = self.last, time.monotonic()


class InputLine(Protocol):
    """What the keys act on. Declared here, because the terminal imports this module."""

    buffer: Buffer
    clock: Clock
    pastes: Pastes
    question: QuestionPanel | None
    picker: Picker | None
    search: HistorySearch

    @property
    def asks_line(self) -> bool: ...

    def interrupt(self) -> None: ...

    def leave(self) -> None: ...

    def take_in(self, text: str) -> None: ...

    def turn_away(self) -> None: ...


def bindings(live: InputLine) -> KeyBindings:
    keys = KeyBindings()
    asking = Condition(lambda: live.question is not None)
    picking = Condition(lambda: live.picker is not None)
    _editing(keys, live, ~asking & ~picking)
    _answering(keys, live, asking & ~picking)
    _searching(keys, live, ~asking & ~picking)

    @keys.add("c-c", eager=True)
    @keys.add("<sigint>", eager=True)
    def _stop(event: KeyPressEvent) -> None:
        live.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not live.buffer.text), eager=True)
    def _leave(event: KeyPressEvent) -> None:
        if live.question is not None or live.asks_line:
            live.turn_away()
        else:
            live.leave()

    @keys.add("c-z", eager=True)
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    picker.bind(keys, live, picking)  # last: the last of two matching bindings wins
    return keys


def _editing(keys: KeyBindings, live: InputLine, editing: Filter) -> None:
    @keys.add("enter", filter=editing)
    def _send(event: KeyPressEvent) -> None:
        buffer = live.buffer
        if buffer.document.text_before_cursor.endswith("\\") and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        if not live.asks_line:
            if take_reference(buffer):
                return
            buffer.append_to_history()
        buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=editing)
    @keys.add("c-j", filter=editing)
    def _break(event: KeyPressEvent) -> None:
        live.buffer.insert_text("\n")

    @keys.add("escape", filter=editing & Condition(lambda: live.asks_line))
    def _turn_away(event: KeyPressEvent) -> None:
        live.turn_away()

    @keys.add(Keys.BracketedPaste, filter=editing)
    def _paste(event: KeyPressEvent) -> None:
        live.buffer.insert_text(clean(event.data) if live.asks_line else live.pastes.fold(event.data))

    @keys.add("backspace", filter=editing & Condition(lambda: live.pastes.label_before(_before(live)) > 0))
    def _unpaste(event: KeyPressEvent) -> None:
        live.buffer.delete_before_cursor(live.pastes.label_before(_before(live)))

    @keys.add("tab", filter=editing)
    def _complete(event: KeyPressEvent) -> None:
        complete(live.buffer)

    @keys.add("s-tab", filter=editing & Condition(lambda: live.buffer.complete_state is None))
    def _edits(event: KeyPressEvent) -> None:
        live.take_in(NEXT_EDITS)

    @keys.add("s-tab", filter=editing & Condition(lambda: live.buffer.complete_state is not None))
    def _previous(event: KeyPressEvent) -> None:
        live.buffer.complete_previous()

    @keys.add("c-o", filter=editing)
    def _unfold(event: KeyPressEvent) -> None:
        live.take_in("/tools")


def _searching(keys: KeyBindings, live: InputLine, editing: Filter) -> None:
    """Ctrl-R lists earlier prompts that contain the typed words; Enter puts one into the input line."""
    active = Condition(lambda: live.search.active)

    @keys.add("c-r", filter=editing & ~active & Condition(lambda: not live.asks_line), eager=True)
    def _begin(event: KeyPressEvent) -> None:
        live.search.begin(live.buffer)

    @keys.add("c-r", filter=active, eager=True)
    def _older(event: KeyPressEvent) -> None:
        live.buffer.complete_next()

    @keys.add("c-s", filter=active, eager=True)
    def _newer(event: KeyPressEvent) -> None:
        live.buffer.complete_previous()

    @keys.add("enter", filter=active, eager=True)
    @keys.add("tab", filter=active, eager=True)
    def _take(event: KeyPressEvent) -> None:
        live.search.accept(live.buffer)

    @keys.add("c-g", filter=active, eager=True)
    @keys.add("escape", filter=active, eager=True)
    def _cancel(event: KeyPressEvent) -> None:
        live.search.cancel(live.buffer)


def complete(buffer: Buffer) -> None:
    """Inserts the only choice at once; otherwise the common beginning, and then one choice after the other."""
    menu = buffer.complete_state
    if menu is not None and menu.complete_index is not None:
        buffer.complete_next()
        return
    completions = _completions(buffer)
    if len(completions) == 1:
        buffer.cancel_completion()
        buffer.apply_completion(completions[0])
    elif completions and (common := get_common_complete_suffix(buffer.document, completions)):
        buffer.cancel_completion()
        buffer.insert_text(common)
        _open_menu(buffer)
    elif completions:
        if menu is None or not menu.completions:
            _open_menu(buffer)
        if menu is not None:  # on the screen, or about to be
            buffer.complete_next()


def _completions(buffer: Buffer) -> list[Completion]:
    return list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))


def _open_menu(buffer: Buffer) -> None:
    """At once: were it filled in the background, what the next Tab does would depend on how fast that is."""
    completions = _completions(buffer)
    buffer.complete_state = CompletionState(buffer.document, completions) if completions else None


def take_reference(buffer: Buffer) -> bool:
    """Enter in the menu of files inserts the marked one, or the first if the text names no file; sends nothing.

    A space follows a file; after a folder, its contents are offered.
    """
    begun, menu = reference_in(buffer.document.text_before_cursor), buffer.complete_state
    if begun is None or menu is None or not menu.completions:
        return False
    if menu.current_completion is None:
        if begun.endswith("/") or any(completion.text == f"@{begun}" for completion in menu.completions):
            return False
        buffer.apply_completion(menu.completions[0])
    else:
        buffer.complete_state = None
    if buffer.document.text_before_cursor.endswith("/"):
        _open_menu(buffer)
    elif not buffer.document.text_after_cursor:
        buffer.insert_text(" ")
    return True


def _answering(keys: KeyBindings, live: InputLine, asking: Filter) -> None:
    @keys.add(Keys.Any, filter=asking, eager=True)
    @keys.add("enter", filter=asking, eager=True)
    def _key(event: KeyPressEvent) -> None:
        assert live.question is not None
        typed = live.question.press(event.data, before=live.clock.before, writing=bool(live.buffer.text))
        if typed.isprintable():
            live.buffer.insert_text(typed)  # continues the unfinished text

    @keys.add(Keys.BracketedPaste, filter=asking, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        live.buffer.insert_text(live.pastes.fold(event.data))  # it answers nothing, but must not get lost

    @keys.add("escape", filter=asking, eager=True)
    def _turn_away(event: KeyPressEvent) -> None:
        live.turn_away()


def _before(live: InputLine) -> str:
    return live.buffer.document.text_before_cursor
