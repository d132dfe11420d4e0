"""How do transcripts of other programs become timelines?"""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from ra.core.errors import UserError
from ra.timeline.readers import claude, codex, messages, native, pi
from ra.timeline.readers.lines import Skips, objects
from ra.timeline.readers.transcript import Transcript

__all__ = ["Reader", "Transcript", "detect", "discover", "read"]

Reader = Callable[[Path], list[Transcript]]

_RECOGNISED: tuple[tuple[Callable[[dict[str, Any]], bool], Reader], ...] = (
    (native.recognises, native.read),
    (codex.recognises, codex.read),
    (pi.recognises, pi.read),
    (claude.recognises, claude.read),
    (messages.recognises, messages.read_lines),
)
_LOOKED_AT = 50  # lines: enough to get past a damaged beginning
_KNOWN = "ra, Claude Code, Codex and pi sessions and lists of OpenAI messages can be read"


def detect(path: Path) -> Reader | None:
    """The reader for a file, by what is in it; None when no reader knows it. Raises UserError."""
    try:
        with path.open("rb") as file:
            head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head.startswith(b"SQLite format 3\0"):
            return native.read_store
        if head.startswith(b"["):
            return messages.read
        entries = [entry for _, entry in islice(objects(path, Skips()), _LOOKED_AT)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    for entry in entries:
        for recognises, reader in _RECOGNISED:
            if recognises(entry):
                return reader
    # An object that is spread over many lines has no line that can be read.
    return messages.read if head.startswith(b"{") and not entries else None


def read(path: Path) -> list[Transcript]:
    """All conversations of a file. What cannot be used is told in `skipped`; the rest is used. Raises UserError."""
    reader = detect(path)
    if reader is None:
        problem = "empty" if not path.stat().st_size else f"not a transcript: {_KNOWN}"
        return [Transcript(path.stem, [], [problem], "unknown")]
    return reader(path)


def discover(path: Path) -> list[Path]:
    """The transcripts below a directory, such as `~/.claude`, or the file itself. Raises UserError."""
    if not path.is_dir():
        return [path]
    found = (file for kind in ("*.jsonl", "*.json") for file in path.rglob(kind) if file.is_file())
    return sorted(file for file in found if detect(file) is not None)
