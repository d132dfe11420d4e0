"""Complete commands, their arguments, and paths after an @."""

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ra.app import App
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer, paths
from ra.core.text import visible_line


class Completions(Completer):
    """Asks the commands what they take. `repl` is set when there is one."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.repl: Repl | None = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        start, offers = self._offers(text)
        for word, what in offers:
            yield Completion(word, start_position=-len(start), display_meta=visible_line(what, 60))

    def words(self, text: str) -> list[str]:
        """For a line editor that completes the last word."""
        return [word for word, _ in self._offers(text)[1]]

    def _offers(self, text: str) -> tuple[str, list[Offer]]:
        """The word that is being typed, and what it may become."""
        from ra.cli.repl import commands

        word = text.rpartition(" ")[2].rpartition("\n")[2]
        if text.startswith("/") and " " not in text:
            names = {f"/{name}": what for name, what in self.app.files.offers}
            names |= {f"/{command.name}": command.help for command in commands.TABLE}
            return text, [(name, what) for name, what in names.items() if name.startswith(text)]
        if text.startswith("/"):
            command = commands.find(text)
            begun = text.partition(" ")[2].lstrip()
            if command is not None and self.repl is not None:
                return begun, [offer for offer in command.completions(self.repl, begun) if offer[0].startswith(begun)]
            return begun, []
        if word.startswith("@") and not word.startswith("@@"):
            return word, [(f"@{path}", what) for path, what in paths(word[1:], self.app.resolved.cwd)]
        return word, []
