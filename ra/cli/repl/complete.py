"""Completes commands, their arguments, and files of the project after an @."""

import asyncio
from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ra.app import App
from ra.cli.project_files import ProjectFiles, insertable
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer, reference_in, references
from ra.core.text import visible_line


class Completions(Completer):
    """Asks the commands for their arguments. `repl` is set once there is one."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.repl: Repl | None = None
        self._files = ProjectFiles(root=app.resolved.root, cwd=app.resolved.cwd)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        start, offers = self._offers(document.text_before_cursor)
        return _completions(start, offers)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """In the background: searching a large project must not block the keyboard."""
        text = document.text_before_cursor
        aside = reference_in(text) is not None
        start, offers = await asyncio.to_thread(self._offers, text) if aside else self._offers(text)
        for completion in _completions(start, offers):
            yield completion

    def words(self, text: str) -> list[str]:
        """For a line editor that completes the last word."""
        begun, offers = self._offers(text)
        return insertable(begun, [word for word, _ in offers])

    def _offers(self, text: str) -> tuple[str, list[Offer]]:
        """The word that is being typed, and its completions."""
        from ra.cli.repl import commands

        if text.startswith("/") and " " not in text:
            names = {f"/{name}": what for name, what in self.app.files.offers}
            names |= {f"/{command.name}": command.help for command in commands.TABLE}
            return text, [(name, what) for name, what in names.items() if name.startswith(text)]
        if text.startswith("/") and (command := commands.find(text)) is not None:
            begun = text.partition(" ")[2].lstrip()
            offers = command.completions(self.repl, begun) if self.repl is not None else []
            return begun, [offer for offer in offers if offer[0].startswith(begun)]
        begun_reference = reference_in(text)
        if begun_reference is None:
            return "", []
        paths = references(begun_reference, self.app.resolved.cwd, self._files)
        return f"@{begun_reference}", [(f"@{path}", what) for path, what in paths]


def _completions(begun: str, offers: Iterable[Offer]) -> Iterable[Completion]:
    for word, what in offers:
        yield Completion(word, start_position=-len(begun), display_meta=visible_line(what, 60))
