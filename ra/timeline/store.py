"""Where are all the sessions, and how does one get at them?"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ra.core.errors import SessionInUse, UserError
from ra.core.facts import TimelineEvent
from ra.core.model import Usage
from ra.core.ports import Hit
from ra.core.value import Value
from ra.timeline import folds, index, rows
from ra.timeline.codec import event_of
from ra.timeline.database import Database
from ra.timeline.lock import WriterLock
from ra.timeline.rows import LAST, SessionRow
from ra.timeline.schema import at_of
from ra.timeline.sqlite import SqliteTimeline

# A fork counts as new although its last event is old.
_UPDATED = f"max(s.created, coalesce((SELECT time FROM events WHERE key = {LAST}), 0))"
_SESSION = "s.key, s.id, s.project, s.agent, s.channel, s.chat_id, s.parent, s.forked_at, s.created"


class SessionInfo(Value, frozen=True):
    """A line of `ra sessions list`.

    Dollars and tokens are what this session spent itself, not what it was forked with; `dollars` is None when no
    call had a known price.
    """

    id: str
    project: str
    title: str
    created: float
    updated: float
    events: int
    model: str
    dollars: Decimal | None
    tokens: Usage
    parent: str = ""
    forked_at: int = 0
    agent: str = ""
    channel: str = ""
    chat_id: str = ""


class Learned(Value, frozen=True):
    """What the errors and the bills of a model have taught: its window, and its tokens per token of o200k_base."""

    window: int | None = None
    factor: float | None = None


class Store:
    """All sessions of a user, in one file. Reading never makes anything; the first write makes what is missing.

    `busy_s` is how long a write waits for another program's write to end.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time, busy_s: float = 10.0) -> None:
        self.path = path
        self._clock = clock
        self._database = Database(path, busy_s=busy_s)
        self._locks = path.parent / "locks"

    def close(self) -> None:
        self._database.close()

    def create(self, project: str, *, agent: str = "", channel: str = "", chat_id: str = "") -> SqliteTimeline:
        """A new session. It is on the disk as soon as something has been recorded in it, not before."""
        row = SessionRow(_new_id(), project, agent, channel, chat_id, "", 0, self._clock())
        lock = WriterLock(self._locks, row.id)
        return SqliteTimeline(self._database, row, key=None, lock=lock, clock=self._clock)

    def open(self, session: str, *, write: bool) -> SqliteTimeline:
        """A session by its id, or by a beginning that no other id has. Raises UserError, SessionInUse."""
        key, row = self._find(session)
        lock = WriterLock(self._locks, row.id) if write else None
        return SqliteTimeline(self._database, row, key=key, lock=lock, clock=self._clock)

    def latest(self, project: str) -> str | None:
        """The session of the project in which something happened last."""
        query = f"SELECT id FROM sessions s WHERE project = ? ORDER BY {_UPDATED} DESC, key DESC LIMIT 1"
        found = self._select(query, project)
        return found[0][0] if found else None

    def find(self, agent: str, channel: str, chat_id: str) -> str | None:
        """The session of a served chat: the newest that is not a fork of it."""
        query = (
            "SELECT id FROM sessions WHERE agent = ? AND channel = ? AND chat_id = ? "
            "ORDER BY parent = '' DESC, key DESC LIMIT 1"
        )
        found = self._select(query, agent, channel, chat_id)
        return found[0][0] if found else None

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """What there is, latest first."""
        query = (
            f"SELECT {_SESSION} FROM sessions s WHERE ? IS NULL OR project = ? "
            f"ORDER BY {_UPDATED} DESC, key DESC LIMIT ?"
        )
        found = self._select(query, project, project, -1 if limit is None else limit)
        return [self._info(key, SessionRow(*row)) for key, *row in found]

    def info(self, session: str) -> SessionInfo:
        return self._info(*self._find(session))

    def fork(self, session: str, at: int | None = None) -> str:
        """A new session that begins with the events up to `at` (all, if None) and goes its own way from there."""
        source, row = self._find(session)
        with self._database.writing() as connection:
            last = rows.last_at(connection, source)
            upto = last if at is None else at
            if not 0 <= upto <= last:
                raise UserError(f"Session {row.id} can be forked at 0 to {last}, not at {upto}.")
            copy = SessionRow(_new_id(), row.project, row.agent, row.channel, row.chat_id, row.id, upto, self._clock())
            rows.copy(connection, source, rows.add_session(connection, copy), upto)
        return copy.id

    def adopt(self, project: str, events: Sequence[TimelineEvent], *, texts: Iterable[str] = ()) -> str:
        """Store a session that was recorded elsewhere, with its own times. Positions count from 1."""
        if wrong := next((event.at for place, event in enumerate(events, 1) if event.at != place), None):
            raise UserError(f"The events to store must be numbered 1, 2, 3 …; number {wrong} is out of order.")
        row = SessionRow(_new_id(), project, "", "", "", "", 0, events[0].time if events else self._clock())
        with self._database.writing() as connection:
            key = rows.add_session(connection, row)
            rows.add(connection, key, events)
            for text in texts:
                rows.keep(connection, key, text)
        return row.id

    def delete(self, session: str) -> None:
        """Remove a session with everything that only it has. Raises SessionInUse while it is being written."""
        self._delete(*self._find(session))
        self._database.shrink()

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, project: str | None = None
    ) -> list[str]:
        """Delete sessions in which nothing happened for so long, or all but the newest `keep`.

        With both, what fits both. Returns the ids that are gone; sessions in use stay.
        """
        if older_than_s is None and keep is None:
            raise UserError("Say what to prune: an age, or how many of the newest sessions to keep.")
        query = (
            f"SELECT {_UPDATED}, {_SESSION} FROM sessions s WHERE ? IS NULL OR project = ? ORDER BY 1 DESC, key DESC"
        )
        horizon = self._clock() - (older_than_s or 0)
        gone = []
        for updated, key, *columns in self._select(query, project, project)[keep or 0 :]:
            row = SessionRow(*columns)
            if updated <= horizon and self._delete_unless_in_use(key, row):
                gone.append(row.id)
        if gone:
            self._database.shrink()
        return gone

    def search(
        self, query: str, *, project: str | None = None, exclude: str | None = None, limit: int = 20
    ) -> list[Hit]:
        """Events of all sessions that hold the words of the query, best first; `exclude` leaves out one session.

        An entry that was removed since is found too: what is live is for `folds.entries` to say.
        """
        with self._database.reading() as connection:
            if connection is None:
                return []
            return index.find(connection, query, limit, project=project, exclude=exclude)

    def spent(self, *, since: float = 0.0, project: str | None = None) -> Iterator[tuple[str, TimelineEvent]]:
        """Every bill since a moment, with its session, oldest first; what a fork copied is not billed again."""
        query = (
            "SELECT s.id, e.key, e.time, e.fact FROM events e JOIN sessions s ON s.key = e.key >> 32 "
            "WHERE e.kind = 'spent' AND e.time >= ? AND (? IS NULL OR s.project = ?) "
            "AND (e.key & 4294967295) > s.forked_at ORDER BY e.time, e.key"
        )
        for session, key, when, fact in self._select(query, since, project, project):
            yield session, event_of(at_of(key), when, fact)

    def learned(self, model: str) -> Learned:
        found = self._select("SELECT window, factor FROM models WHERE model = ?", model)
        return Learned(*found[0]) if found else Learned()

    def learn(self, model: str, *, window: int | None = None, factor: float | None = None) -> None:
        """Remember what a model taught; what is None stays as it was."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO models VALUES (?, ?, ?) ON CONFLICT (model) DO UPDATE SET "
                "window = coalesce(excluded.window, window), factor = coalesce(excluded.factor, factor)",
                (model, window, factor),
            )

    def _select(self, query: str, *values: object) -> list[Any]:
        with self._database.reading() as connection:
            return [] if connection is None else connection.execute(query, values).fetchall()

    def _find(self, session: str) -> tuple[int, SessionRow]:
        query = f"SELECT {_SESSION} FROM sessions s WHERE substr(id, 1, ?) = ? ORDER BY {_UPDATED} DESC"
        found = self._select(query, len(session), session) if session else []
        exact = [row for row in found if row[1] == session] or found
        if len(exact) == 1:
            key, *columns = exact[0]
            return key, SessionRow(*columns)
        if found:
            raise UserError(
                f"More than one session begins with {session}: {_some([row[1] for row in found])}; write more of it."
            )
        raise UserError(f"There is no session {session!r}. {self._near(session)}")

    def _near(self, session: str) -> str:
        from difflib import get_close_matches  # only on this error's path

        ids = [row[0] for row in self._select(f"SELECT id FROM sessions s ORDER BY {_UPDATED} DESC")]
        if not ids:
            return "Nothing has been stored yet."
        if near := get_close_matches(session, ids):
            return f"Did you mean {_some(near)}? `ra sessions list` shows all."
        return f"The latest are {_some(ids)}; `ra sessions list` shows all."

    def _info(self, key: int, row: SessionRow) -> SessionInfo:
        bounds = (key << 32, (key + 1) << 32)
        said = "SELECT key, time, fact FROM events WHERE key > ? AND key < ? AND kind = 'said' ORDER BY key LIMIT 8"
        paid = "SELECT key, time, fact FROM events WHERE key > ? AND key < ? AND kind = 'spent' ORDER BY key"
        last = f"SELECT {LAST}, {_UPDATED} FROM sessions s WHERE key = ?"
        first = [event_of(at_of(place), when, fact) for place, when, fact in self._select(said, *bounds)]
        bills = [event_of(at_of(place), when, fact) for place, when, fact in self._select(paid, *bounds)]
        spend = folds.spend(event for event in bills if event.at > row.forked_at)
        ((end, updated),) = self._select(last, key)
        return SessionInfo(
            id=row.id,
            project=row.project,
            title=folds.title(first),
            created=row.created,
            updated=updated,
            events=at_of(end or 0),
            model=folds.model(bills),
            dollars=spend.dollars if spend.priced else None,
            tokens=spend.usage,
            parent=row.parent,
            forked_at=row.forked_at,
            agent=row.agent,
            channel=row.channel,
            chat_id=row.chat_id,
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


def _new_id() -> str:
    """Ten hex digits: short enough to type, and a beginning of it will do."""
    return os.urandom(5).hex()


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")
