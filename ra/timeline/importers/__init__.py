"""Import transcripts of other programs as timelines."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ra.core.errors import UserError
from ra.system.files import open_resolved
from ra.timeline.importers import messages, native
from ra.timeline.importers.lines import BadJson, Skips, elements, objects, parse
from ra.timeline.importers.transcript import Transcript

__all__ = ["Reader", "Transcript", "detect", "discover", "read"]

ReadTranscripts = Callable[[Path], list[Transcript]]

READERS = {
    "native": "ra",
    "codex": "Codex",
    "pi": "pi",
    "claude": "Claude Code",
    "gemini": "Gemini CLI",
    "openhands": "OpenHands",
    "messages": "SWE-agent, lists of OpenAI messages",
}
"""Modules in the order in which they are asked, and whose transcripts each reads: `recognises(entry)`, `read(path)`."""

_DOCUMENTS = ("gemini", "openhands")  # one JSON document each: known by what its first element holds
_LOOKED_AT = 100  # lines: enough to get past a damaged beginning


def detect(path: Path) -> ReadTranscripts | None:
    """The reader for a file, by what is in it; None when no reader knows it. Raises UserError."""
    try:
        with open_resolved(path) as file:  # no pipe: it would be waited for, and could not be read twice
            head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head.startswith(b"SQLite format 3\0"):
            return native.read_store
        # A list or an object over many lines: what its lines look like by themselves means nothing.
        spread = head[:1] in (b"[", b"{") and not _is_json(head.splitlines()[0])
        if spread and (document_reader := _document(path, head)):
            return document_reader
        if head.startswith(b"[") and spread:
            return messages.read_document
        entries = [entry for _, entry in objects(path, Skips(), lines=_LOOKED_AT)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    readers = [import_module(f"{__name__}.{name}") for name in READERS]
    reader: ReadTranscripts | None = next(
        (module.read for entry in entries for module in readers if module.recognises(entry)), None
    )
    if reader in (None, messages.read) and (spread or head.startswith(b"[")):
        return messages.read_document
    return reader


def _document(path: Path, head: bytes) -> ReadTranscripts | None:
    """The reader for a document over many lines that is no list of messages."""
    if b'"role"' in head and b'"observation"' not in head:
        return None
    first = next((element for _, element in elements(path, Skips())), None)
    modules = [import_module(f"{__name__}.{name}") for name in _DOCUMENTS]
    reader: ReadTranscripts | None = next(
        (one.read for one in modules if isinstance(first, dict) and one.recognises(first)), None
    )
    return reader


def _is_json(line: bytes) -> bool:
    try:
        parse(line)
    except BadJson:
        return False
    return True


def read(path: Path) -> list[Transcript]:
    """All conversations of a file. What cannot be used is told in `skipped`; the rest is used. Raises UserError."""
    reader = detect(path)
    if reader is None:
        formats = ", ".join(READERS.values())
        problem = f"not a transcript in a known format: {formats}" if path.stat().st_size else "empty"
        return [Transcript(path.stem, [], [problem], "unknown")]
    return reader(path)


def discover(path: Path) -> list[Path]:
    """The transcripts below a directory, such as `~/.claude`, or the file itself. Raises UserError."""
    if not path.is_dir():
        return [path]
    files = (file for kind in ("*.jsonl", "*.json", "*.traj") for file in path.rglob(kind) if file.is_file())
    return sorted(file for file in files if detect(file) is not None)
