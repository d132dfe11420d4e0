"""What may come next? Commands, what they take, and paths after an @."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ra.app import App
from ra.cli.safe import one_line

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl

MOST = 200  # entries of a folder that are offered

Offer = tuple[str, str]
"""A word, and what it is."""


class Completions(Completer):
    """Asks the commands what they take. `repl` is set when there is one."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.repl: Repl | None = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        start, offers = self._offers(text)
        for word, what in offers:
            yield Completion(word, start_position=-len(start), display_meta=one_line(what, 60))

    def words(self, text: str) -> list[str]:
        """For a line editor that completes the last word."""
        return [word for word, _ in self._offers(text)[1]]

    def _offers(self, text: str) -> tuple[str, list[Offer]]:
        """The word that is being typed, and what it may become."""
        from ra.cli.repl import commands

        word = text.rpartition(" ")[2].rpartition("\n")[2]
        if text.startswith("/") and " " not in text:
            return text, [(f"/{c.name}", c.help) for c in commands.TABLE if f"/{c.name}".startswith(text)]
        if text.startswith("/"):
            command = commands.find(text)
            given = text.partition(" ")[2].lstrip()
            if command is not None and command.offers is not None and self.repl is not None:
                return given, [offer for offer in command.offers(self.repl, given) if offer[0].startswith(given)]
            return given, []
        if word.startswith("@") and not word.startswith("@@"):
            return word, [(f"@{path}", what) for path, what in paths(word[1:], self.app.resolved.cwd)]
        return word, []


def paths(begun: str, cwd: Path) -> Iterator[Offer]:
    """Files and folders that begin so; hidden ones when the dot was typed."""
    quote = begun[:1] if begun[:1] in "\"'" else ""
    folder, _, name = begun.removeprefix(quote).rpartition("/")
    base = cwd / Path(f"{folder}/" if begun.startswith("/") else folder or ".").expanduser()
    try:
        with os.scandir(base) as entries:
            found = sorted(
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
            )
    except OSError:
        return
    for entry, is_folder in found[:MOST]:
        path = f"{folder}/{entry}" if folder or begun.startswith("/") else entry
        path += "/" if is_folder else ""
        needs = quote or ('"' if " " in path else "")
        yield (f"{needs}{path}{needs}" if needs else path), "folder" if is_folder else ""


def fixed(*words: str) -> Callable[["Repl", str], list[Offer]]:
    return lambda repl, begun: [(word, "") for word in words]
