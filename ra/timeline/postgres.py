"""The store in a PostgreSQL database that many processes and machines share."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ra.core.errors import SessionInUse, UserError
from ra.core.facts import TimelineEvent
from ra.core.ports import Hit
from ra.timeline import store
from ra.timeline.postgres_database import PATIENCE_S, Connection, PostgresDatabase, lock_key
from ra.timeline.postgres_search import find
from ra.timeline.postgres_timeline import (
    ADD_EVENTS,
    PAGE,
    PostgresTimeline,
    add_session,
    event_columns,
    in_use,
    keep,
)
from ra.timeline.store import Endpoint, Learned, SessionInfo, SessionRow, event_of

# The last event is looked up once for each session, whatever asks for it.
_SESSIONS = (
    "ra_sessions s LEFT JOIN LATERAL "
    "(SELECT e.at, e.time FROM ra_events e WHERE e.session = s.key ORDER BY e.at DESC LIMIT 1) last ON true"
)
_UPDATED = "greatest(s.created, last.time)"
_MADE_AFTER = (
    "SELECT coalesce(max(earlier.created), 0) FROM ra_sessions earlier "
    "WHERE earlier.key < s.key AND earlier.created <= %(now)s"
)
_RECENCY = (
    f"greatest(CASE WHEN s.created <= %(now)s THEN s.created ELSE ({_MADE_AFTER}) END, "
    "CASE WHEN last.time <= %(now)s THEN last.time END)"
)
_SESSION = "s.key, s.id, s.project, s.agent, s.channel, s.chat_id, s.parent, s.forked_at, s.created"
_IN_PROJECT = "(%(project)s::text IS NULL OR s.project = %(project)s)"
_CHAT = (
    "SELECT id FROM ra_sessions s WHERE agent = %(agent)s AND channel = %(channel)s AND chat_id = %(chat_id)s "
    "ORDER BY parent = '' DESC, key DESC LIMIT 1"
)


class PostgresStore:
    """The Store port on a database. Writers of a session hold an advisory lock, which ends with the connection."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time, patience_s: float = PATIENCE_S) -> None:
        self._database = PostgresDatabase(url, patience_s=patience_s)
        self._clock = clock
        self._writers: set[str] = set()  # an advisory lock does not keep out its own connection

    @property
    def place(self) -> str:
        return self._database.place

    def close(self) -> None:
        self._database.close()

    def create(self, project: str, *, agent: str = "", channel: str = "", chat_id: str = "") -> PostgresTimeline:
        row = store.new_row(project, self._clock(), agent=agent, channel=channel, chat_id=chat_id)
        return self._timeline(None, row, write=True)

    def open(self, session: str, *, write: bool) -> PostgresTimeline:
        key, row = self._find(session)
        return self._timeline(key, row, write=write)

    def open_chat(self, project: str, agent: str, channel: str, chat_id: str) -> PostgresTimeline:
        session = self.find(agent, channel, chat_id)
        if session is None:
            chat = {"agent": agent, "channel": channel, "chat_id": chat_id}
            with self._database.writing() as connection:
                name = f"chat {agent} {channel} {chat_id}"
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(name),))
                # Asked again under the lock: another process may have been first.
                match = connection.execute(_CHAT.encode(), chat).fetchone()
                if match is None:
                    row = store.new_row(project, self._clock(), **chat)
                    add_session(connection, row)
                    session = row.id
                else:
                    session = str(match[0])
        return self.open(session, write=True)

    def latest(self, project: str) -> str | None:
        query = f"SELECT id FROM {_SESSIONS} WHERE {_IN_PROJECT} ORDER BY {_RECENCY} DESC, key DESC LIMIT 1"
        matches = self._select(query, project=project, now=self._horizon())
        return matches[0][0] if matches else None

    def find(self, agent: str, channel: str, chat_id: str) -> str | None:
        matches = self._select(_CHAT, agent=agent, channel=channel, chat_id=chat_id)
        return str(matches[0][0]) if matches else None

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        ordered = f"ORDER BY {_RECENCY} DESC, key DESC LIMIT %(limit)s"
        query = f"SELECT {_SESSION} FROM {_SESSIONS} WHERE {_IN_PROJECT} {ordered}"
        matches = self._select(query, project=project, limit=limit, now=self._horizon())
        return [self._info(key, SessionRow(*row)) for key, *row in matches]

    def info(self, session: str) -> SessionInfo:
        return self._info(*self._find(session))

    def fork(self, session: str, at: int | None = None) -> str:
        source, row = self._find(session)
        with self._database.writing() as connection:
            fork = store.fork_row(row, at, _last_at(connection, source), self._clock())
            values = {"source": source, "target": add_session(connection, fork), "upto": fork.forked_at}
            connection.execute(
                "INSERT INTO ra_events SELECT %(target)s, at, time, kind, fact, words FROM ra_events "
                "WHERE session = %(source)s AND at <= %(upto)s",
                values,
            )
            connection.execute(
                "INSERT INTO ra_keepers SELECT %(target)s, ref FROM ra_keepers WHERE session = %(source)s", values
            )
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
            if connection.execute("SELECT 1 FROM ra_sessions WHERE id = %s", (row.id,)).fetchone():
                raise UserError(f"There is a session {row.id} in {self.place} already.")
            key = add_session(connection, row)
            for start in range(0, len(events), PAGE):
                connection.execute(ADD_EVENTS.encode(), event_columns(key, events[start : start + PAGE]))
            for text in texts:
                keep(connection, key, text)
        return row.id

    def delete(self, session: str) -> None:
        self._delete(*self._find(session))

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, project: str | None = None
    ) -> list[str]:
        store.need_something_to_prune(older_than_s, keep)
        query = f"SELECT {_UPDATED}, {_SESSION} FROM {_SESSIONS} WHERE {_IN_PROJECT} ORDER BY {_RECENCY} DESC, key DESC"
        oldest = self._clock() - (older_than_s or 0)
        pruned = []
        for updated, key, *columns in self._select(query, project=project, now=self._horizon())[keep or 0 :]:
            row = SessionRow(*columns)
            if updated <= oldest and self._delete_unless_in_use(key, row):
                pruned.append(row.id)
        return pruned

    def search(
        self, query: str, *, project: str | None = None, exclude: str | None = None, limit: int = 20
    ) -> list[Hit]:
        return find(self._database, query, limit, project=project, exclude=exclude)

    def spent(self, *, since: float = 0.0, project: str | None = None) -> Iterator[tuple[str, TimelineEvent]]:
        query = (
            "SELECT s.id, e.at, e.time, e.fact FROM ra_events e JOIN ra_sessions s ON s.key = e.session "
            f"WHERE e.kind = 'spent' AND e.time >= %(since)s AND {_IN_PROJECT} AND e.at > s.forked_at "
            "ORDER BY e.time, e.session, e.at"
        )
        for session, at, when, fact in self._select(query, since=since, project=project):
            yield session, event_of(at, when, bytes(fact))

    def learned(self, endpoint: Endpoint) -> Learned:
        return dict(self._endpoints("WHERE model = %(model)s", model=endpoint.model)).get(endpoint, Learned())

    def all_learned(self) -> list[tuple[Endpoint, Learned]]:
        return self._endpoints("ORDER BY model, provider, base_url")

    def learn_window(self, endpoint: Endpoint, window: int, *, text: str, guessed: bool = False) -> None:
        values = {"window": window, "guessed": guessed, "text": text, "window_at": self._clock()}
        self._learn(endpoint, values)

    def learn_factor(self, endpoint: Endpoint, factor: float) -> None:
        self._learn(endpoint, {"factor": factor, "factor_at": self._clock()})

    def forget(self, model: str | None = None) -> list[Endpoint]:
        forgotten = [endpoint for endpoint, _ in self.all_learned() if model in (None, endpoint.model)]
        if forgotten:
            self._database.execute(
                "DELETE FROM ra_endpoints WHERE %(model)s::text IS NULL OR model = %(model)s", {"model": model}
            )
        return forgotten

    def _endpoints(self, which: str, **values: object) -> list[tuple[Endpoint, Learned]]:
        # A database of an earlier version gets the table with the first write.
        if not self._select("SELECT 1 WHERE to_regclass('ra_endpoints') IS NOT NULL"):
            return []
        names = 'provider, base_url, model, "window", factor, guessed, text, window_at, factor_at'
        rows = self._select(f"SELECT {names} FROM ra_endpoints {which}", **values)
        return [(Endpoint(*row[:3]), Learned(*row[3:])) for row in rows]

    def _learn(self, endpoint: Endpoint, values: Mapping[str, object]) -> None:
        names = ", ".join(f'"{name}"' for name in values)
        placeholders = ", ".join(f"%({name})s" for name in values)
        changes = ", ".join(f'"{name}" = excluded."{name}"' for name in values)
        self._database.execute(
            f"INSERT INTO ra_endpoints (provider, base_url, model, {names}) "
            f"VALUES (%(provider)s, %(base_url)s, %(model)s, {placeholders}) "
            f"ON CONFLICT (provider, base_url, model) DO UPDATE SET {changes}",
            {"provider": endpoint.provider, "base_url": endpoint.base_url, "model": endpoint.model, **values},
        )

    def _timeline(self, key: int | None, row: SessionRow, *, write: bool) -> PostgresTimeline:
        if write:
            self._take(row.id)
        return PostgresTimeline(
            self._database, row, key=key, writers=self._writers if write else None, clock=self._clock
        )

    def _take(self, session: str) -> None:
        if session in self._writers or not self._database.lock(session):
            raise in_use(session)
        self._writers.add(session)

    def _select(self, query: str, **values: object) -> list[Any]:
        return self._database.rows(query, values)

    def _horizon(self) -> float:
        return self._clock() + store.CLOCK_SLACK_S

    def _find(self, session: str) -> tuple[int, SessionRow]:
        if not session or "\0" in session:
            return store.pick(session, [], self._ids)
        # A whole id is found by its index; only the beginning of one needs a look at all of them.
        query = f"SELECT {_SESSION} FROM {_SESSIONS} WHERE"
        matches = self._select(f"{query} id = %(session)s", session=session) or self._select(
            f"{query} starts_with(id, %(session)s) ORDER BY {_UPDATED} DESC", session=session
        )
        return store.pick(session, [(key, SessionRow(*row)) for key, *row in matches], self._ids)

    def _ids(self) -> list[str]:
        return [row[0] for row in self._select(f"SELECT id FROM {_SESSIONS} ORDER BY {_UPDATED} DESC")]

    def _info(self, key: int, row: SessionRow) -> SessionInfo:
        events = "SELECT at, time, fact FROM ra_events WHERE session = %(key)s"
        said_rows = self._select(f"{events} AND kind = 'said' ORDER BY at LIMIT 8", key=key)
        said_rows += self._select(f"{events} AND kind = 'titled' ORDER BY at DESC LIMIT 1", key=key)
        bills = self._select(f"{events} AND kind = 'spent' ORDER BY at", key=key)
        ((last, updated),) = self._select(
            f"SELECT coalesce(last.at, 0), {_UPDATED} FROM {_SESSIONS} WHERE key = %(key)s", key=key
        )
        return store.describe(
            row,
            said=[event_of(at, when, bytes(fact)) for at, when, fact in said_rows],
            bills=[event_of(at, when, bytes(fact)) for at, when, fact in bills],
            events=last,
            updated=updated,
        )

    def _delete(self, key: int, row: SessionRow) -> None:
        self._take(row.id)
        try:
            with self._database.writing() as connection:
                connection.execute("DELETE FROM ra_sessions WHERE key = %s", (key,))
                connection.execute(
                    "DELETE FROM ra_texts t WHERE NOT EXISTS (SELECT 1 FROM ra_keepers k WHERE k.ref = t.ref)"
                )
        finally:
            self._database.unlock(row.id)
            self._writers.discard(row.id)

    def _delete_unless_in_use(self, key: int, row: SessionRow) -> bool:
        try:
            self._delete(key, row)
        except SessionInUse:
            return False
        return True


def _last_at(connection: Connection, session: int) -> int:
    row = connection.execute("SELECT coalesce(max(at), 0) FROM ra_events WHERE session = %s", (session,)).fetchone()
    assert row is not None
    return int(row[0])
