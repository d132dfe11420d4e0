"""How is one session recorded and read, on the disk?"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ra.core.errors import UsageError
from ra.core.facts import Fact, TimelineEvent
from ra.core.ports import Hit
from ra.timeline import index, rows
from ra.timeline.database import Database
from ra.timeline.lock import WriterLock
from ra.timeline.rows import SessionRow

_PAGE = 200


class SqliteTimeline:
    """A session in the store, made by `Store.create` and `Store.open`; with a lock it may be written.

    When `append` raises StoreError nothing of that call was recorded, and the timeline can still be used.
    """

    def __init__(
        self,
        database: Database,
        row: SessionRow,
        *,
        key: int | None,
        lock: WriterLock | None,
        clock: Callable[[], float],
    ) -> None:
        self.session = row.id
        self._database = database
        self._row = row
        self._key = key  # None until something is recorded
        self._lock = lock
        self._clock = clock

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        if not facts:
            return []
        now = self._clock()
        with self._writing() as (connection, key):
            after = rows.last_at(connection, key)
            events = [TimelineEvent(at, now, fact) for at, fact in enumerate(facts, after + 1)]
            rows.add(connection, key, events)
        return events

    def events(self, since: int = 0) -> Iterator[TimelineEvent]:
        """Read in pieces: what is appended meanwhile is seen too, and nobody is held up by a slow reader."""
        while True:
            with self._database.reading() as connection:
                if connection is None or self._key is None:
                    return
                page = rows.read(connection, self._key, since, _PAGE)
            if not page:
                return
            yield from page
            since = page[-1].at

    def search(self, query: str, limit: int = 20) -> list[Hit]:
        with self._database.reading() as connection:
            if connection is None or self._key is None:
                return []
            return index.find(connection, query, limit, session=self._key)

    def keep(self, text: str) -> str:
        with self._writing() as (connection, key):
            return rows.keep(connection, key, text)

    def kept(self, ref: str) -> str | None:
        with self._database.reading() as connection:
            return None if connection is None else rows.kept(connection, ref)

    def texts(self) -> list[str]:
        """All that this session keeps outside its log."""
        with self._database.reading() as connection:
            return [] if connection is None or self._key is None else rows.texts(connection, self._key)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        if self._lock is None:
            raise UsageError(f"Session {self.session} was opened for reading, or is closed.")
        with self._database.writing() as connection:
            key = rows.add_session(connection, self._row) if self._key is None else self._key
            yield connection, key
        self._key = key
