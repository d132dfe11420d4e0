"""Searches earlier prompts: Ctrl-R lists those that contain every typed word, and Enter puts one into the line.

prompt_toolkit's own incremental search shows one match at a time and none until something is typed.
"""

from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from ra.core.text import visible_line

MOST = 50  # number of matches that are offered
SHOWN = 70  # characters of a match in the menu


class HistorySearch(Completer):
    """Offers earlier prompts during a search, and the completions of `usual` otherwise."""

    label = "search › "

    def __init__(self, history: History, usual: Completer) -> None:
        self.active = False
        self._history = history
        self._usual = usual
        self._before = Document()  # the input line before the search

    def begin(self, buffer: Buffer) -> None:
        self._before, self.active = buffer.document, True
        buffer.start_completion()

    def accept(self, buffer: Buffer) -> None:
        """Puts the chosen match, or the newest one, into the input line without sending it."""
        state = buffer.complete_state
        if state is not None and state.completions:
            buffer.apply_completion(state.current_completion or state.completions[0])
        self.active = False
        buffer.cancel_completion()

    def cancel(self, buffer: Buffer) -> None:
        self.active = False
        buffer.cancel_completion()
        buffer.document = self._before

    def matches(self, query: str) -> list[str]:
        """Earlier prompts that contain every word of the query, newest first, without duplicates."""
        words = query.lower().split()
        newest_first = dict.fromkeys(reversed(self._history.get_strings()))
        return [prompt for prompt in newest_first if all(word in prompt.lower() for word in words)][:MOST]

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        if not self.active:
            yield from self._usual.get_completions(document, complete_event)
            return
        typed = document.text_before_cursor
        for prompt in self.matches(typed):
            yield Completion(prompt, start_position=-len(typed), display=visible_line(prompt, SHOWN))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        asked = super().get_completions_async if self.active else self._usual.get_completions_async
        async for completion in asked(document, complete_event):
            yield completion
