"""How do transcripts of other programs become timelines?"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ra.core.errors import UserError
from ra.timeline.readers import messages, native
from ra.timeline.readers.lines import Skips, Unreadable, objects, parse
from ra.timeline.readers.transcript import Transcript

__all__ = ["Reader", "Transcript", "detect", "discover", "read"]

Reader = Callable[[Path], list[Transcript]]

READERS = {
    "native": "ra",
    "codex": "Codex",
    "pi": "pi",
    "claude": "Claude Code",
    "messages": "lists of OpenAI messages",
}
"""Modules in the order in which they are asked, and whose transcripts each reads: `recognises(entry)`, `read(path)`."""

_LOOKED_AT = 100  # lines: enough to get past a damaged beginning


def detect(path: Path) -> Reader | None:
    """The reader for a file, by what is in it; None when no reader knows it. Raises UserError."""
    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for, and could not be read twice
            raise UserError(f"{path} cannot be read: it is {'a folder' if path.is_dir() else 'no file'}.")
        with path.open("rb") as file:
            head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head.startswith(b"SQLite format 3\0"):
            return native.read_store
        # A list or an object over many lines: what its lines look like by themselves means nothing.
        spread = head[:1] in (b"[", b"{") and not _is_json(head.splitlines()[0])
        if head.startswith(b"[") and spread:
            return messages.read_document
        entries = [entry for _, entry in objects(path, Skips(), lines=_LOOKED_AT)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    readers = [import_module(f"{__name__}.{name}") for name in READERS]
    reader: Reader | None = next((one.read for entry in entries for one in readers if one.recognises(entry)), None)
    if reader in (None, messages.read) and (spread or head.startswith(b"[")):
        return messages.read_document
    return reader


def _is_json(line: bytes) -> bool:
    try:
        parse(line)
    except Unreadable:
        return False
    return True


def read(path: Path) -> list[Transcript]:
    """All conversations of a file. What cannot be used is told in `skipped`; the rest is used. Raises UserError."""
    reader = detect(path)
    if reader is None:
        known = ", ".join(READERS.values())
        problem = f"not a transcript of what can be read: {known}" if path.stat().st_size else "empty"
        return [Transcript(path.stem, [], [problem], "unknown")]
    return reader(path)


def discover(path: Path) -> list[Path]:
    """The transcripts below a directory, such as `~/.claude`, or the file itself. Raises UserError."""
    if not path.is_dir():
        return [path]
    found = (file for kind in ("*.jsonl", "*.json") for file in path.rglob(kind) if file.is_file())
    return sorted(file for file in found if detect(file) is not None)
