"""The store in one SQLite file: its sessions, and the timeline of one of them."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ra.core.errors import SessionInUse, StoreError, UsageError, UserError
from ra.core.facts import Configured, Fact, TimelineEvent
from ra.core.ports import Hit
from ra.timeline import sqlite_rows as rows
from ra.timeline import store
from ra.timeline.sqlite_file import ENDPOINTS, Database, WriterLock, at_of, check
from ra.timeline.sqlite_rows import LAST, LAST_EVENT
from ra.timeline.store import Endpoint, Learned, SessionInfo, SessionRow, event_of

_PAGE = 200

_UPDATED = (
    f"max(s.created, coalesce((SELECT time {LAST_EVENT}), 0))"  # a fork counts as new although its last event is old
)
# What a wrong clock dated into the future says nothing: such a session was made after the one before it.
_MADE_AFTER = (
    "SELECT coalesce(max(earlier.created), 0) FROM sessions earlier "
    "WHERE earlier.key < s.key AND earlier.created <= :now"
)
_RECENCY = (
    f"max(CASE WHEN s.created <= :now THEN s.created ELSE ({_MADE_AFTER}) END, "
    f"coalesce((SELECT CASE WHEN time <= :now THEN time ELSE 0 END {LAST_EVENT}), 0))"
)
_LEARNED = "window, factor, guessed, text, window_at, factor_at"
_SESSION = "s.key, s.id, s.project, s.agent, s.channel, s.chat_id, s.parent, s.forked_at, s.created"


class SqliteStore:
    """The Store port on a file of the user's own. `busy_s`: how long a write waits for another program's write."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time, busy_s: float = 10.0) -> None:
        self.path = path
        self._clock = clock
        self._busy_s = busy_s
        self._newest = Database(path, busy_s=busy_s)
        self._locks = path.parent / "locks"

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def _database(self) -> Database:
        """The file at the path now. Sessions that are open keep the one they were opened in: their keys are of that."""
        if self._newest.gone:
            self._newest = Database(self.path, busy_s=self._busy_s)
        return self._newest

    def close(self) -> None:
        self._newest.close()

    def check(self, *, limit_s: float) -> None:
        """Looks for damage in the whole file. Raises StoreError."""
        with self._database.reading() as connection:
            if connection is not None:
                check(connection, self.path, limit_s=limit_s)

    def create(self, project: str, *, agent: str = "", channel: str = "", chat_id: str = "") -> "SqliteTimeline":
        row = store.new_row(project, self._clock(), agent=agent, channel=channel, chat_id=chat_id)
        return self._timeline(None, row, write=True)

    def open(self, session: str, *, write: bool) -> "SqliteTimeline":
        key, row = self._find(session)
        return self._timeline(key, row, write=write)

    def open_chat(self, project: str, agent: str, channel: str, chat_id: str) -> "SqliteTimeline":
        session = self.find(agent, channel, chat_id)
        if session is None:
            with self._database.writing() as connection:
                # Asked again under the write lock: another process may have been first.
                session = _chat_session(connection, agent, channel, chat_id)
                if session is None:
                    row = store.new_row(project, self._clock(), agent=agent, channel=channel, chat_id=chat_id)
                    rows.add_session(connection, row)
                    session = row.id
        return self.open(session, write=True)

    def latest(self, project: str) -> str | None:
        query = f"SELECT id FROM sessions s WHERE project = :project ORDER BY {_RECENCY} DESC, key DESC LIMIT 1"
        matches = self._select(query, project=project, now=self._horizon())
        return matches[0][0] if matches else None

    def find(self, agent: str, channel: str, chat_id: str) -> str | None:
        with self._database.reading() as connection:
            return None if connection is None else _chat_session(connection, agent, channel, chat_id)

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        query = (
            f"SELECT {_SESSION} FROM sessions s WHERE :project IS NULL OR project = :project "
            f"ORDER BY {_RECENCY} DESC, key DESC LIMIT :limit"
        )
        matches = self._select(query, project=project, limit=-1 if limit is None else limit, now=self._horizon())
        return [self._info(key, SessionRow(*row)) for key, *row in matches]

    def info(self, session: str) -> SessionInfo:
        return self._info(*self._find(session))

    def fork(self, session: str, at: int | None = None) -> str:
        source, row = self._find(session)
        with self._database.writing() as connection:
            fork = store.fork_row(row, at, rows.last_at(connection, source), self._clock())
            rows.copy(connection, source, rows.add_session(connection, fork), fork.forked_at)
        return fork.id

    def adopt(
        self,
        project: str,
        events: Sequence[TimelineEvent],
        *,
        texts: Iterable[str] = (),
        like: SessionInfo | None = None,
    ) -> str:
        row = store.adopted_row(project, events, like, self._clock())
        with self._database.writing() as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (row.id,)).fetchone():
                raise UserError(f"There is a session {row.id} in {self.place} already.")
            key = rows.add_session(connection, row)
            rows.add(connection, key, events)
            for text in texts:
                rows.keep(connection, key, text)
        return row.id

    def delete(self, session: str) -> None:
        self._delete(*self._find(session))
        self._database.shrink()

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, project: str | None = None
    ) -> list[str]:
        store.need_something_to_prune(older_than_s, keep)
        query = (
            f"SELECT {_UPDATED}, {_SESSION} FROM sessions s WHERE :project IS NULL OR project = :project "
            f"ORDER BY {_RECENCY} DESC, key DESC"
        )
        oldest = self._clock() - (older_than_s or 0)
        pruned = []
        for updated, key, *columns in self._select(query, project=project, now=self._horizon())[keep or 0 :]:
            row = SessionRow(*columns)
            if updated <= oldest and self._delete_unless_in_use(key, row):
                pruned.append(row.id)
        if pruned:
            self._database.shrink()
        return pruned

    def search(
        self, query: str, *, project: str | None = None, exclude: str | None = None, limit: int = 20
    ) -> list[Hit]:
        from ra.timeline.sqlite_search import find  # only who searches pays for it

        with self._database.reading() as connection:
            if connection is None:
                return []
            return find(connection, query, limit, project=project, exclude=exclude)

    def spent(self, *, since: float = 0.0, project: str | None = None) -> Iterator[tuple[str, TimelineEvent]]:
        query = (
            "SELECT s.id, e.key, e.time, e.fact FROM events e JOIN sessions s ON s.key = e.key >> 32 "
            "WHERE e.kind = 'spent' AND e.time >= :since AND (:project IS NULL OR s.project = :project) "
            "AND (e.key & 4294967295) > s.forked_at ORDER BY e.time, e.key"
        )
        for session, key, when, fact in self._select(query, since=since, project=project):
            yield session, event_of(at_of(key), when, fact)

    def learned(self, endpoint: Endpoint) -> Learned:
        return dict(self._endpoints("WHERE model = :model", model=endpoint.model)).get(endpoint, Learned())

    def all_learned(self) -> list[tuple[Endpoint, Learned]]:
        return self._endpoints("ORDER BY model, provider, base_url")

    def learn_window(self, endpoint: Endpoint, window: int, *, text: str, guessed: bool = False) -> None:
        self._learn(endpoint, window=window, guessed=guessed, text=text, window_at=self._clock())

    def learn_factor(self, endpoint: Endpoint, factor: float) -> None:
        self._learn(endpoint, factor=factor, factor_at=self._clock())

    def forget(self, model: str | None = None) -> list[Endpoint]:
        forgotten = [endpoint for endpoint, _ in self.all_learned() if model in (None, endpoint.model)]
        if forgotten:
            with self._database.writing() as connection:
                connection.execute("DELETE FROM endpoints WHERE ?1 IS NULL OR model = ?1", (model,))
        return forgotten

    def _timeline(self, key: int | None, row: SessionRow, *, write: bool) -> "SqliteTimeline":
        lock = WriterLock(self._locks, row.id) if write else None
        return SqliteTimeline(self._database, row, key=key, lock=lock, clock=self._clock)

    def _endpoints(self, which: str, **values: object) -> list[tuple[Endpoint, Learned]]:
        if not self._select("SELECT 1 FROM sqlite_schema WHERE name = 'endpoints'"):
            return []
        query = f"SELECT provider, base_url, model, {_LEARNED} FROM endpoints {which}"
        return [
            (Endpoint(provider, base_url, model), Learned(window, factor, bool(guessed), *rest))
            for provider, base_url, model, window, factor, guessed, *rest in self._select(query, **values)
        ]

    def _learn(self, endpoint: Endpoint, **values: object) -> None:
        names, places = ", ".join(values), ", ".join("?" * len(values))
        changes = ", ".join(f"{name} = excluded.{name}" for name in values)
        with self._database.writing() as connection:
            connection.execute(ENDPOINTS)
            connection.execute(
                f"INSERT INTO endpoints (provider, base_url, model, {names}) VALUES (?, ?, ?, {places}) "
                f"ON CONFLICT (provider, base_url, model) DO UPDATE SET {changes}",
                (endpoint.provider, endpoint.base_url, endpoint.model, *values.values()),
            )

    def _select(self, query: str, **values: object) -> list[Any]:
        with self._database.reading() as connection:
            return [] if connection is None else connection.execute(query, values).fetchall()

    def _horizon(self) -> float:
        return self._clock() + store.CLOCK_SLACK_S

    def _find(self, session: str) -> tuple[int, SessionRow]:
        if not session:
            return store.pick(session, [], self._ids)
        # A whole id is found by its index; only the beginning of one needs a look at all of them.
        query = f"SELECT {_SESSION} FROM sessions s WHERE"
        matches = self._select(f"{query} id = :session", session=session) or self._select(
            f"{query} substr(id, 1, length(:session)) = :session ORDER BY {_UPDATED} DESC", session=session
        )
        return store.pick(session, [(key, SessionRow(*row)) for key, *row in matches], self._ids)

    def _ids(self) -> list[str]:
        return [row[0] for row in self._select(f"SELECT id FROM sessions s ORDER BY {_UPDATED} DESC")]

    def _info(self, key: int, row: SessionRow) -> SessionInfo:
        bounds = {"first": key << 32, "end": (key + 1) << 32}
        events = "SELECT key, time, fact FROM events WHERE key > :first AND key < :end"
        said_rows = self._select(f"{events} AND kind = 'said' ORDER BY key LIMIT 8", **bounds)
        said_rows += self._select(f"{events} AND kind = 'titled' ORDER BY key DESC LIMIT 1", **bounds)
        bills = self._select(f"{events} AND kind = 'spent' ORDER BY key", **bounds)
        ((last_key, updated),) = self._select(f"SELECT {LAST}, {_UPDATED} FROM sessions s WHERE key = :key", key=key)
        return store.describe(
            row,
            said=[event_of(at_of(place), when, fact) for place, when, fact in said_rows],
            bills=[event_of(at_of(place), when, fact) for place, when, fact in bills],
            events=at_of(last_key or 0),
            updated=updated,
        )

    def _delete(self, key: int, row: SessionRow) -> None:
        lock = WriterLock(self._locks, row.id)
        try:
            with self._database.writing() as connection:
                rows.remove(connection, key)
        finally:
            lock.release()

    def _delete_unless_in_use(self, key: int, row: SessionRow) -> bool:
        try:
            self._delete(key, row)
        except SessionInUse:
            return False
        return True


def _chat_session(connection: sqlite3.Connection, agent: str, channel: str, chat_id: str) -> str | None:
    row = connection.execute(
        "SELECT id FROM sessions WHERE agent = ? AND channel = ? AND chat_id = ? "
        "ORDER BY parent = '' DESC, key DESC LIMIT 1",
        (agent, channel, chat_id),
    ).fetchone()
    return str(row[0]) if row else None


class SqliteTimeline:
    """A session in the file, made by the methods of `SqliteStore`; with a lock it may be written."""

    durable = True

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
        from ra.timeline.sqlite_search import find  # only who searches pays for it

        with self._database.reading() as connection:
            if connection is None or self._key is None:
                return []
            return find(connection, query, limit, session=self._key)

    def flush(self) -> None:
        """Nothing waits: a file is there, or `append` says why not."""

    def keep(self, text: str) -> str:
        with self._writing() as (connection, key):
            return rows.keep(connection, key, text)

    def kept(self, ref: str) -> str | None:
        with self._database.reading() as connection:
            return None if connection is None else rows.kept(connection, ref)

    def texts(self) -> list[str]:
        with self._database.reading() as connection:
            return [] if connection is None or self._key is None else rows.texts(connection, self._key)

    def configured(self) -> Configured | None:
        with self._database.reading() as connection:
            return None if connection is None or self._key is None else rows.configured(connection, self._key)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        if self._lock is None:
            raise UsageError(f"Session {self.session} was opened for reading, or is closed.")
        try:
            with self._database.writing() as connection:
                key = rows.add_session(connection, self._row) if self._key is None else self._key
                yield connection, key
        except StoreError as error:
            if self._key is None:
                raise StoreError(f"{error} Nothing of this session was stored.") from error
            raise
        self._key = key
