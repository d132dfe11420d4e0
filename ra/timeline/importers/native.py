"""Read what ra itself exported or stored."""

from pathlib import Path
from typing import Any

import msgspec

from ra.core.facts import TimelineEvent
from ra.timeline import folds
from ra.timeline.export import FORMAT, VERSION
from ra.timeline.importers.lines import Skips, objects
from ra.timeline.importers.transcript import Transcript, count, text
from ra.timeline.sqlite import SqliteStore


def recognises(entry: dict[str, Any]) -> bool:
    return entry.get("format") == FORMAT


def read(path: Path) -> list[Transcript]:
    skips = Skips()
    name, project, texts = path.stem, "", []
    events: list[TimelineEvent] = []
    for number, entry in objects(path, skips):
        if "at" in entry:
            try:
                event = msgspec.convert(entry, TimelineEvent)
            except msgspec.ValidationError as error:
                skips.add(number, f"not an event: {error}")
                continue
            # Positions count without gaps, also when a line between was lost.
            events.append(TimelineEvent(len(events) + 1, event.time, event.fact))
        elif "kept" in entry:
            texts.append(text(entry["kept"]))
        elif recognises(entry):
            name, project = text(entry.get("session")) or name, text(entry.get("project"))
            if count(entry.get("version")) > VERSION:
                skips.add(number, "written by a newer version of ra; unknown parts are left out")
        else:
            skips.add(number, "neither an event nor a kept text")
    return [Transcript(name, events, skips.notes, FORMAT, folds.model(events), project, texts)]


def read_store(path: Path) -> list[Transcript]:
    """Every session of a store."""
    store = SqliteStore(path)
    transcripts = []
    for info in store.sessions():
        timeline = store.open(info.id, write=False)
        events = list(timeline.events())
        transcripts.append(Transcript(info.id, events, [], FORMAT, info.model, info.project, timeline.texts()))
    store.close()
    return transcripts
