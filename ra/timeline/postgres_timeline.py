"""The timeline of a session in a PostgreSQL database, which holds back what it cannot write while that is away."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ra.core.errors import RaError, SessionInUse, StoreAway, StoreError, UsageError
from ra.core.facts import Configured, Fact, TimelineEvent
from ra.core.ports import Hit
from ra.core.text import reference
from ra.timeline.postgres_database import Connection, PostgresDatabase
from ra.timeline.postgres_search import find, vector
from ra.timeline.search import searchable
from ra.timeline.store import SessionRow, encoded, event_of, newest_configured, tag

PAGE = 2000
MISSED_S = 1.0  # for the server to notice that the old connection is gone, and to free its lock


class PostgresTimeline:
    """A session in the database, made by the methods of `PostgresStore`; with a set of writers it may be written.

    What is recorded while the database is away waits in memory, with its positions, and is written by the next `append`
    or `flush` that reaches the database.
    """

    durable = True

    def __init__(
        self,
        database: PostgresDatabase,
        row: SessionRow,
        *,
        key: int | None,
        writers: set[str] | None,
        clock: Callable[[], float],
    ) -> None:
        self.session = row.id
        self._database = database
        self._row = row
        self._key = key  # None until something is recorded
        self._writers = writers
        self._clock = clock
        self._generation = database.generation
        self._last: int | None = 0 if key is None else None  # position of the last event, asked for once
        self._unsaved: list[TimelineEvent] = []
        self._unsaved_texts: list[str] = []

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        if not facts:
            return []
        self._need_to_be_open()
        if not self._unsaved:
            with suppress(StoreAway):
                self._reclaim()  # another process may have written since the lock was lost
        now, after = self._clock(), self._position()
        events = [TimelineEvent(at, now, fact) for at, fact in enumerate(facts, after + 1)]
        self._unsaved += events
        try:
            self._flush_if_reachable()
        except RaError:
            del self._unsaved[-len(events) :]
            raise
        self._last = after + len(facts)
        return events

    def keep(self, text: str) -> str:
        self._need_to_be_open()
        self._unsaved_texts.append(text)
        try:
            self._flush_if_reachable()
        except RaError:
            self._unsaved_texts.pop()
            raise
        return reference(text)

    def _flush_if_reachable(self) -> None:
        with suppress(StoreAway):  # whoever lets something out asks `flush` first
            self.flush()

    def flush(self) -> None:
        """Raises StoreAway; SessionInUse when another process has taken the session meanwhile; StoreError."""
        if not self._unsaved and not self._unsaved_texts:
            return
        try:
            self._write()
        except StoreAway:  # the connection broke, before the commit or after it: with a new one that can be seen
            self._write()

    def _write(self) -> None:
        self._reclaim()
        try:
            if self._key is not None and not self._unsaved_texts:
                self._database.execute(ADD_EVENTS, event_columns(self._key, self._unsaved))
            elif self._unsaved or self._unsaved_texts:
                with self._database.writing() as connection:
                    key = add_session(connection, self._row) if self._key is None else self._key
                    for text in self._unsaved_texts:
                        keep(connection, key, text)
                    if self._unsaved:
                        connection.execute(ADD_EVENTS.encode(), event_columns(key, self._unsaved))
                self._key = key
        except StoreError as error:
            if self._key is not None or isinstance(error, StoreAway):
                raise
            raise StoreError(f"{error} Nothing of this session was stored.") from error
        self._unsaved, self._unsaved_texts = [], []

    def _reclaim(self) -> None:
        """Take the lock again when it went with its connection, and see what had been written before it went.

        Raises StoreAway; SessionInUse when another process has the lock now; StoreError when one had it and wrote.
        """
        if self._generation == self._database.generation and not self._database.lost:
            return
        give_up = time.monotonic() + MISSED_S
        while not self._database.lock(self.session):
            if time.monotonic() > give_up:
                raise in_use(self.session)
            time.sleep(0.1)
        rows = self._database.rows("SELECT key FROM ra_sessions WHERE id = %(id)s", {"id": self.session})
        self._key = rows[0][0] if rows else None
        if not self._unsaved:
            self._last = None
        else:
            stored = list(self._stored(self._unsaved[0].at - 1))
            if stored != self._unsaved[: len(stored)]:
                raise StoreError(f"Session {self.session} was written by another process meanwhile.")
            del self._unsaved[: len(stored)]
        self._generation = self._database.generation

    def _position(self) -> int:
        if self._last is None:
            query = "SELECT coalesce(max(at), 0) FROM ra_events WHERE session = %(key)s"
            self._last = int(self._database.rows(query, {"key": self._key})[0][0])
        return self._last

    def _need_to_be_open(self) -> None:
        if self._writers is None:
            raise UsageError(f"Session {self.session} was opened for reading, or is closed.")

    def events(self, since: int = 0) -> Iterator[TimelineEvent]:
        """Read in pieces: what is appended meanwhile is seen too, and nobody is held up by a slow reader."""
        for event in self._stored(since):
            since = event.at
            yield event
        yield from [event for event in self._unsaved if event.at > since]

    def _stored(self, since: int) -> Iterator[TimelineEvent]:
        query = (
            "SELECT at, time, fact FROM ra_events WHERE session = %(key)s AND at > %(since)s ORDER BY at LIMIT %(most)s"
        )
        while self._key is not None:
            page = self._database.rows(query, {"key": self._key, "since": max(since, 0), "most": PAGE})
            if not page:
                return
            for at, when, fact in page:
                yield event_of(at, when, bytes(fact))
            since = page[-1][0]

    def search(self, query: str, limit: int = 20) -> list[Hit]:
        return [] if self._key is None else find(self._database, query, limit, session=self._key)

    def kept(self, ref: str) -> str | None:
        waiting = {reference(text): text for text in self._unsaved_texts}
        if ref in waiting:
            return waiting[ref]
        rows = self._database.rows("SELECT body FROM ra_texts WHERE ref = %(ref)s", {"ref": ref})
        return bytes(rows[0][0]).decode() if rows else None

    def texts(self) -> list[str]:
        query = "SELECT body FROM ra_texts JOIN ra_keepers USING (ref) WHERE session = %(key)s ORDER BY ref"
        return [bytes(body).decode() for (body,) in self._database.rows(query, {"key": self._key})]

    def configured(self) -> Configured | None:
        for event in reversed(self._unsaved):
            if isinstance(event.fact, Configured):
                return event.fact
        query = (
            "SELECT at, time, fact FROM ra_events WHERE session = %(key)s AND kind = 'configured' "
            "ORDER BY at DESC LIMIT 1"
        )
        rows = self._database.rows(query, {"key": self._key}) if self._key is not None else []
        return newest_configured([(at, time, bytes(fact)) for at, time, fact in rows])

    def close(self) -> None:
        """Raises StoreError when something that was recorded cannot be stored any more."""
        if self._writers is None:
            return
        try:
            self.flush()
        except StoreError as error:
            raise StoreError(f"{error} The last {len(self._unsaved)} events of {self.session} are lost.") from error
        finally:
            if self._generation == self._database.generation:
                self._database.unlock(self.session)
            self._writers.discard(self.session)
            self._writers = None


ADD_EVENTS = (
    "INSERT INTO ra_events SELECT %(session)s, at, time, kind, fact, words::tsvector FROM unnest(%(ats)s::integer[], "
    "%(times)s::double precision[], %(kinds)s::text[], %(facts)s::bytea[], %(words)s::text[]) "
    "AS new (at, time, kind, fact, words)"
)


def event_columns(session: int, events: Sequence[TimelineEvent]) -> dict[str, object]:
    return {
        "session": session,
        "ats": [event.at for event in events],
        "times": [event.time for event in events],
        "kinds": [tag(event.fact) for event in events],
        "facts": [encoded(event.fact) for event in events],
        "words": [vector(searchable(event.fact)) for event in events],
    }


def add_session(connection: Connection, row: SessionRow) -> int:
    added = connection.execute(
        "INSERT INTO ra_sessions (id, project, agent, channel, chat_id, parent, forked_at, created) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING key",
        (row.id, row.project, row.agent, row.channel, row.chat_id, row.parent, row.forked_at, row.created),
    ).fetchone()
    assert added is not None
    return int(added[0])


def keep(connection: Connection, session: int, text: str) -> str:
    ref = reference(text)
    connection.execute("INSERT INTO ra_texts VALUES (%s, %s) ON CONFLICT DO NOTHING", (ref, text.encode()))
    connection.execute("INSERT INTO ra_keepers VALUES (%s, %s) ON CONFLICT DO NOTHING", (session, ref))
    return ref


def in_use(session: str) -> SessionInUse:
    return SessionInUse(
        f"Session {session} is in use by another process. "
        f"Wait until it is done, or continue in a copy: --resume {session} --fork."
    )
