"""Keeps typed prompts in a file that only its owner can read."""

from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from ra.cli.repl.pastes import LABEL
from ra.system.files import append_private, make_private

LONGEST = 10_000  # characters; longer prompts are not kept
KEPT = 2_000_000  # bytes of the file; beyond that, its older half is deleted


class PrivateHistory(FileHistory):
    """prompt_toolkit's own format, mode 0600. An unwritable disk costs the history, not the session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return ()

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST or LABEL.search(string):  # a later process does not know the pasted text
            return
        try:
            make_private(self._path.parent)
            append_private(self._path, b"")  # made private before prompt_toolkit writes to it
            self._shorten()
            super().store_string(string.encode("utf-8", "replace").decode())
        except OSError:
            return

    def _shorten(self) -> None:
        if self._path.stat().st_size > KEPT:
            content = self._path.read_bytes()
            self._path.write_bytes(content[content.find(b"\n# ", len(content) // 2) :])
