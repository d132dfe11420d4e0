"""What earlier sessions of a project know: hits of the full-text index, and what other conversations are about."""

import time
from collections.abc import Iterable, Sequence

from ra.core.facts import EntrySet
from ra.core.ports import Hit
from ra.timeline import folds
from ra.timeline.store import Store

_KINDS = ("said", "entry-set")  # what was said and noted; not what was configured, compacted or failed
_SPARE = 2  # finds that are asked for in place of one: some are of no use


class ProjectMemory:
    """The memory of one project: its entries and sessions."""

    def __init__(self, store: Store, project: str) -> None:
        self._store = store
        self._project = project

    def search(self, query: str, limit: int, *, session: str, shown: Iterable[str]) -> Sequence[str]:
        """Lines that match the query, best first, without those of `session` that are `shown` anyway."""
        visible = [" ".join(text.split()) for text in shown]
        lines: dict[str, str] = {}
        for hit in self._store.search(query, project=self._project, limit=_SPARE * limit):
            snippet = hit.snippet.strip("…")
            repeats = hit.session == session and any(snippet in text for text in visible)
            if hit.kind in _KINDS and not repeats and hit.snippet not in lines and self._holds(hit):
                where = "this session" if hit.session == session else f"session {hit.session}"
                lines[hit.snippet] = f"{_day(hit.time)}, {where} #{hit.at}: {hit.snippet}"
            if len(lines) == limit:
                break
        return list(lines.values())

    def elsewhere(self, limit: int, *, session: str) -> Sequence[str]:
        """One line about each of the latest other conversations."""
        sessions = self._store.sessions(self._project, limit + 1)
        return [
            f"{_day(info.updated)}, session {info.id}: {info.title}"
            for info in sessions
            if info.id != session and info.title
        ][:limit]

    def _holds(self, hit: Hit) -> bool:
        """Whether the hit still holds: a replaced or removed entry does not."""
        if hit.kind != "entry-set":
            return True
        events = list(self._store.open(hit.session, write=False).events())
        fact = next((event.fact for event in events if event.at == hit.at), None)
        live = folds.entries(events)
        return isinstance(fact, EntrySet) and fact.id in live and live[fact.id].inserted_at == hit.at


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
