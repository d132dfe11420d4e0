"""Lets typing and streaming share one terminal: finished text scrolls up, input and status stay below it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import merge_key_bindings
from prompt_toolkit.key_binding.bindings.auto_suggest import load_auto_suggest_bindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion, BeforeInput
from prompt_toolkit.styles import Style

from ra.cli.repl.history import PrivateHistory
from ra.cli.repl.history_search import HistorySearch
from ra.cli.repl.keys import Clock, bindings
from ra.cli.repl.offers import reference_in
from ra.cli.repl.pastes import Pastes, clean
from ra.cli.repl.picker import Picker
from ra.cli.repl.question import QuestionPanel
from ra.cli.repl.screen import at_once as in_one_write
from ra.cli.repl.screen import keyboard, screen
from ra.cli.repl.terminal import Act, Choice, Fragments, Moving, Picked
from ra.cli.repl.wrap import question_rows

MENU = 8  # rows of a menu of completions
PROMPT = "› "

STYLE = Style.from_dict(
    {
        "dim": "ansibrightblack",
        "prompt": "bold ansicyan",
        "question": "bold ansiyellow",
        "queued": "italic ansibrightblack",
        "cached": "ansigreen",
        "new": "ansiyellow",
        "cold": "ansiblue",
        "auto-suggestion": "ansibrightblack",
        "completion-menu": "noinherit",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "ansibrightblack",
    }
)


class Live:
    """A terminal with a movable cursor. One prompt_toolkit application runs from `open` to `close`."""

    plain = False

    def __init__(self, *, term: str, colour: bool, history: Path, completer: Completer) -> None:
        self.pastes = Pastes()
        self.clock = Clock()
        self.question: QuestionPanel | None = None
        self.picker: Picker | None = None
        self._label = PROMPT
        self._reply: asyncio.Future[str | None] | None = None  # to a line that is not a prompt
        self._put_aside = Document()
        self._typed: deque[str] = deque()
        self._news = asyncio.Event()
        self._closed = False
        self._lent = False  # the terminal is lent to something else
        self._moving: Moving | None = None
        self._at_once: Callable[[str], bool] = lambda _: False
        self._stop: Act = lambda: None
        self._leave: Act = lambda: None
        self._task: asyncio.Task[None] | None = None
        earlier = PrivateHistory(history)
        self.search = HistorySearch(earlier, completer)
        self.buffer = Buffer(
            completer=self.search,
            complete_while_typing=Condition(self._completes_by_itself),
            history=earlier,
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=False,
            multiline=True,
            accept_handler=self._accept,
        )
        self.app = self._application(term, colour=colour)

    # --- the protocol ---

    @property
    def width(self) -> int:
        return self.app.output.get_size().columns

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(self._typed)

    async def open(self, moving: Moving, *, stop: Act, leave: Act, at_once: Callable[[str], bool]) -> None:
        self._moving, self._stop, self._leave, self._at_once = moving, stop, leave, at_once
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._run(ready))
        await ready.wait()

    async def close(self) -> None:
        self._closed = True
        if self._task is not None and not self._task.done():
            if self.app.is_running:
                self.app.exit()
            await self._task

    async def read(self) -> str | None:
        while not self._typed:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        return self._typed.popleft()

    def unfold(self, text: str) -> str:
        return self.pastes.unfold(text)

    def show(self, text: str) -> None:
        if not text:
            return
        output, app = self.app.output, self.app
        if not app.is_running or app.renderer.last_rendered_screen is None:
            output.write_raw(text)
            output.flush()
            return
        with in_one_write(output), set_app(app):
            app.renderer.erase()
            output.write_raw(text)
            app.renderer.render(app, app.layout)

    def draw(self) -> None:
        self.app.invalidate()

    async def choose(self, question: str, keys: Mapping[str, str]) -> str:
        self.question = QuestionPanel(question, keys)
        self.draw()
        try:
            return await self.question.answer
        finally:
            self.question = None
            self.draw()

    async def line(self, label: str, default: str = "") -> str | None:
        self._put_aside = self.buffer.document
        self._label, self._reply = label, asyncio.get_running_loop().create_future()
        self.buffer.document = Document(default)
        self.draw()
        try:
            return await self._reply
        finally:
            self._label, self._reply = PROMPT, None
            self.buffer.document = self._put_aside
            self.draw()

    async def pick(
        self, title: str, choices: Sequence[Choice], keys: Mapping[str, str], *, search: bool = True, marked: int = 0
    ) -> Picked | None:
        self._put_aside = self.buffer.document
        self.picker = Picker(title, choices, keys, search=search, marked=marked)
        self._label = "search › " if search else PROMPT
        self.buffer.document = Document()
        self.draw()
        try:
            return await self.picker.result
        finally:
            self._label, self.picker = PROMPT, None
            self.buffer.document = self._put_aside
            self.draw()

    def offer(self, text: str) -> None:
        if not self.buffer.text:
            self.buffer.document = Document(self.pastes.fold(text))
            self.draw()

    async def lend(self, work: Callable[[], int]) -> int:
        if not self.app.is_running:
            return work()

        def alone() -> int:
            self._lent = True
            return work()

        try:
            return await run_in_terminal(alone, in_executor=True)
        finally:
            self._lent = False

    # --- actions of the keys ---

    def take_in(self, text: str) -> None:
        text = clean(text)
        if not self._closed and not self._at_once(text):
            self._typed.append(text)
            self._news.set()

    @property
    def asks_line(self) -> bool:
        return self._reply is not None

    def turn_away(self) -> None:
        """The user dismisses the question."""
        if self.question is not None:
            self.question.turn_away()
        elif self._reply is not None and not self._reply.done():
            self._reply.set_result(None)

    def interrupt(self) -> None:
        """Ctrl-C. Queued prompts return to the input line: they may no longer apply.

        Discards the line that is being typed, unless there is something to stop.
        """
        if self.search.active:
            self.search.cancel(self.buffer)
            return
        if self._lent:
            return  # it was meant for the program that has the terminal, and reached it
        if self.question is not None or self._reply is not None:
            self.turn_away()
        elif self._typed:
            self.buffer.document = Document("\n".join([*self._typed, self.buffer.text]).rstrip("\n"))
            self._typed.clear()
        elif self.buffer.text and not (self._moving and self._moving.busy):
            self.buffer.reset()
            return  # it discarded a line, and must not count as the first of two for leaving
        self._stop()

    def leave(self) -> None:
        """Ctrl-D: no further prompts; whatever is typed from here on is ignored."""
        self._closed = True
        self._typed.clear()
        self._news.set()
        self._leave()

    def _accept(self, buffer: Buffer) -> bool:
        text = buffer.text
        if self._reply is not None:
            if not self._reply.done():
                self._reply.set_result(text)
            return True
        self.take_in(text)
        return False  # the line is empty again

    def _completes_by_itself(self) -> bool:
        """An unrequested menu is welcome only if it saves typing: for commands and paths."""
        if self.search.active or self.picker is not None:
            return self.search.active
        text = self.buffer.document.text_before_cursor
        begun = text.startswith("/") or reference_in(text) is not None
        return begun and self._reply is None and self.question is None

    # --- the application ---

    async def _run(self, ready: asyncio.Event) -> None:
        try:
            await self.app.run_async(pre_run=ready.set)
        except EOFError:
            self.leave()  # the terminal is gone
        finally:
            ready.set()
            self.leave()

    def _application(self, term: str, *, colour: bool) -> Application[None]:
        control = BufferControl(
            self.buffer,
            input_processors=[AppendAutoSuggestion(), BeforeInput(self._before_input, style="class:prompt")],
        )
        field = Window(
            control,
            wrap_lines=True,
            height=self._field_height,
            dont_extend_height=True,
            get_line_prefix=lambda number, wrapped: "  " if number or wrapped else "",
        )
        above = Window(FormattedTextControl(self._above), dont_extend_height=True)
        below = Window(FormattedTextControl(self._below), height=1, dont_extend_height=True)
        menu = Float(xcursor=True, ycursor=True, content=CompletionsMenu(max_height=MENU, scroll_offset=1))
        anything_above = Condition(lambda: bool(self._above()))
        rows = HSplit([ConditionalContainer(above, anything_above), Window(height=1), field, below])
        application: Application[None] = Application(
            layout=Layout(FloatContainer(rows, [menu]), field),
            style=STYLE,
            key_bindings=merge_key_bindings([load_auto_suggest_bindings(), bindings(self)]),
            input=keyboard(),
            output=screen(term, colour=colour),
            erase_when_done=True,
            refresh_interval=0.5,  # the countdown of the cache, and the seconds of a run
        )
        application.key_processor.before_key_press += self.clock.tick
        # Whatever immediately follows an escape belongs to the same key; a person is slower.
        application.ttimeoutlen = application.timeoutlen = 0.05
        return application

    def _before_input(self) -> str:
        return self.search.label if self.search.active else self._label

    def _field_height(self) -> Dimension:
        most = max(1, self.app.output.get_size().rows - 4)
        menu = min(MENU, len(self.buffer.complete_state.completions) + 1, most) if self.buffer.complete_state else 1
        return Dimension(min=menu, max=most)

    def _above(self) -> FormattedText:
        size = self.app.output.get_size()
        fragments: Fragments = []
        if self.picker is not None:
            self.picker.narrow(self.buffer.text if self.picker.search else "")
            fragments = self.picker.fragments(size.columns, max(8, size.rows - 5))
        elif self.question is not None:  # timers stand still while a question is open
            rows = question_rows(self.question.text, self.question.keys, max(10, size.columns - 1))
            rows += ["Press one of these keys."] if self.question.hinted else []
            fragments = [("class:question", row + "\n") for row in rows]
        elif self._moving is not None and not self._closed and self._reply is None:
            fragments = self._moving.above(size.columns, max(1, size.rows // 2 - 2))
        return FormattedText([*fragments[:-1], *((style, text.removesuffix("\n")) for style, text in fragments[-1:])])

    def _below(self) -> FormattedText:
        return FormattedText(self._moving.below(self.width) if self._moving is not None and not self._closed else [])
