"""How do transcripts of other programs become timelines?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ra.core.errors import UserError
from ra.timeline.readers import claude, codex, messages, native, pi
from ra.timeline.readers.lines import Skips, Unreadable, objects, parse
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
_LOOKED_AT = 100  # lines: enough to get past a damaged beginning
_KNOWN = "ra, Claude Code, Codex and pi sessions and lists of OpenAI messages can be read"


def detect(path: Path) -> Reader | None:
    """The reader for a file, by what is in it; None when no reader knows it. Raises UserError."""
    try:
        with path.open("rb") as file:
            head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head.startswith(b"SQLite format 3\0"):
            return native.read_store
        # A list or an object over many lines: what its lines look like by themselves means nothing.
        spread = head[:1] in (b"[", b"{") and not _is_json(head.splitlines()[0])
        if head.startswith(b"[") and spread:
            return messages.read
        entries = [entry for _, entry in objects(path, Skips(), lines=_LOOKED_AT)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    found = (reader for entry in entries for recognises, reader in _RECOGNISED if recognises(entry))
    reader = next(found, None)
    if reader in (None, messages.read_lines) and (spread or head.startswith(b"[")):
        return messages.read
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
        problem = "empty" if not path.stat().st_size else f"not a transcript: {_KNOWN}"
        return [Transcript(path.stem, [], [problem], "unknown")]
    return reader(path)


def discover(path: Path) -> list[Path]:
    """The transcripts below a directory, such as `~/.claude`, or the file itself. Raises UserError."""
    if not path.is_dir():
        return [path]
    found = (file for kind in ("*.jsonl", "*.json") for file in path.rglob(kind) if file.is_file())
    return sorted(file for file in found if detect(file) is not None)
