"""Finds transcripts: files by name; in a folder, the recent ones."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ra.core.errors import RaError, UserError
from ra.timeline.importers import Transcript, read
from ra.timeline.store import Store

SUFFIXES = (".jsonl", ".json", ".traj")
MONTH = 30  # days
LARGEST_BYTES = 100 * 1024 * 1024  # replaying a larger session would take more than half a gigabyte


class TraceFiles(NamedTuple):
    """The files to read, and a line for each file that is left out."""

    files: list[Path]
    skipped: list[str]


def find(paths: Iterable[Path], *, days: float = MONTH) -> TraceFiles:
    """Named files are always included; of folders, the transcripts of the last `days`."""
    since, span = time.time() - days * 86_400, "1 day" if days == 1 else f"{days:g} days"
    files: dict[Path, None] = {}
    skipped: list[str] = []
    for path in paths:
        path = path.expanduser()
        if not path.exists():
            raise UserError(f"{path}: no such file or folder.")
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
            recent = [file for file in inside if file.stat().st_mtime >= since]
            if len(recent) < len(inside):
                skipped.append(f"{path}: {len(inside) - len(recent)} files older than {span}")
            if not recent:
                skipped.append(f"{path}: no transcript of the last {span}")
            files.update(dict.fromkeys(recent))
        elif not path.is_file():
            skipped.append(f"{path}: not a file")
        else:
            files[path] = None
    small = [file for file in files if file.stat().st_size <= LARGEST_BYTES]
    skipped += [
        f"{file}: {file.stat().st_size / 1e6:.0f} MB; files above {LARGEST_BYTES / 1e6:.0f} MB are not replayed"
        for file in files
        if file not in small
    ]
    return TraceFiles(small, skipped)


def stored(store: Store, session: str) -> Transcript:
    """A session of ra, by its id or the beginning of it. Raises UserError."""
    info = store.info(session)
    timeline = store.open(info.id, write=False)
    return Transcript(info.id, list(timeline.events()), [], "ra", info.model, info.project)


def transcripts(file: Path, skipped: list[str]) -> Iterator[Transcript]:
    """The conversations in a file. Unreadable ones become a line in `skipped`."""
    try:
        conversations = read(file)
    except (RaError, OSError) as error:
        skipped.append(f"{file}: {error}")
        return
    if not conversations:
        skipped.append(f"{file}: no conversation found")
    yield from conversations
