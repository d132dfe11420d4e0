"""What do earlier sessions of a project know? Finds of the full-text index, and what other conversations are about."""

import time
from collections.abc import Callable, Sequence

from ra.core.facts import EntrySet
from ra.core.ports import Hit
from ra.timeline import folds
from ra.timeline.store import Store

_TOLD = ("said", "entry-set")  # what was said and noted; not what was configured, compacted or failed
_SPARE = 2  # finds that are asked for in place of one: some are of no use


class ProjectMemory:
    """The sessions of one project, seen from one of them. `current` is what the user just asked."""

    def __init__(self, store: Store, project: str, session: str, *, current: Callable[[], str]) -> None:
        self._store = store
        self._project = project
        self._session = session
        self._current = current

    def search(self, query: str, limit: int) -> Sequence[str]:
        asked = " ".join(self._current().split())
        found: dict[str, str] = {}
        for hit in self._store.search(query, project=self._project, limit=_SPARE * limit):
            repeats = hit.session == self._session and hit.snippet.strip("…") in asked
            if hit.kind in _TOLD and not repeats and hit.snippet not in found and self._holds(hit):
                where = "this session" if hit.session == self._session else f"session {hit.session}"
                found[hit.snippet] = f"{_day(hit.time)}, {where} #{hit.at}: {hit.snippet}"
            if len(found) == limit:
                break
        return list(found.values())

    def elsewhere(self, limit: int) -> Sequence[str]:
        others = self._store.sessions(self._project, limit + 1)
        return [
            f"{_day(info.updated)}, session {info.id}: {info.title}"
            for info in others
            if info.id != self._session and info.title
        ][:limit]

    def _holds(self, hit: Hit) -> bool:
        """Is it still so? An entry that was replaced or removed is no longer known."""
        if hit.kind != "entry-set":
            return True
        events = list(self._store.open(hit.session, write=False).events())
        fact = next((event.fact for event in events if event.at == hit.at), None)
        live = folds.entries(events)
        return isinstance(fact, EntrySet) and fact.id in live and live[fact.id].inserted_at == hit.at


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
