"""Sessions, events, kept texts and the full-text index in the tables of the SQLite file.

The index is written in the transaction of the event itself, so that the two can never disagree, whatever crashes.
That costs about 0.1 ms per event, and a search then finds everything at once, in a read-only store too.
"""

import sqlite3
from collections.abc import Iterable, Iterator

from ra.core.facts import Configured, Fact, TimelineEvent
from ra.core.text import reference
from ra.timeline.search import searchable, spaced
from ra.timeline.sqlite_file import at_of, key_of
from ra.timeline.store import SessionRow, encoded, event_of, newest_configured, tag

LAST_EVENT = "FROM events WHERE key BETWEEN s.key << 32 AND s.key << 32 | 4294967295 ORDER BY key DESC LIMIT 1"
"""Of a session `s`."""

LAST = f"(SELECT key {LAST_EVENT})"
"""The key of the last event of a session `s`; NULL when it has none."""


def add_session(connection: sqlite3.Connection, row: SessionRow) -> int:
    key = connection.execute(
        "INSERT INTO sessions (id, project, agent, channel, chat_id, parent, forked_at, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (row.id, row.project, row.agent, row.channel, row.chat_id, row.parent, row.forked_at, row.created),
    ).lastrowid
    assert key is not None
    return key


def last_at(connection: sqlite3.Connection, session: int) -> int:
    (key,) = connection.execute(f"SELECT {LAST} FROM (SELECT ? AS key) s", (session,)).fetchone()
    return at_of(key or 0)


def add(connection: sqlite3.Connection, session: int, events: Iterable[TimelineEvent]) -> None:
    for event in events:
        key = key_of(session, event.at)
        connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?)", (key, event.time, tag(event.fact), encoded(event.fact))
        )
        _index(connection, key, event.fact)


def read(connection: sqlite3.Connection, session: int, since: int, limit: int) -> list[TimelineEvent]:
    """At most `limit` events after position `since`."""
    page = connection.execute(
        "SELECT key, time, fact FROM events WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
        (key_of(session, max(since, 0)), key_of(session + 1, 0), limit),
    ).fetchall()
    return [event_of(at_of(key), time, fact) for key, time, fact in page]


def configured(connection: sqlite3.Connection, session: int) -> Configured | None:
    """The newest of its kind. The kinds before it are read, but not what they hold."""
    newest = connection.execute(
        "SELECT key & 4294967295, time, fact FROM events WHERE key > ? AND key < ? AND kind = 'configured' "
        "ORDER BY key DESC LIMIT 1",
        (key_of(session, 0), key_of(session + 1, 0)),
    ).fetchall()
    return newest_configured(newest)


def copy(connection: sqlite3.Connection, source: int, target: int, upto: int) -> None:
    """Let one session begin as another did."""
    shift = key_of(target, 0) - key_of(source, 0)
    bounds = (key_of(source, 0), key_of(source, upto))
    connection.execute(
        "INSERT INTO events SELECT key + ?, time, kind, fact FROM events WHERE key BETWEEN ? AND ?", (shift, *bounds)
    )
    for event in stored(connection, target):
        _index(connection, key_of(target, event.at), event.fact)
    connection.execute("INSERT INTO keepers SELECT ?, ref FROM keepers WHERE session = ?", (target, source))


def remove(connection: sqlite3.Connection, session: int) -> None:
    for event in stored(connection, session):
        _unindex(connection, key_of(session, event.at), event.fact)
    connection.execute("DELETE FROM events WHERE key BETWEEN ? AND ?", (key_of(session, 0), key_of(session + 1, 0) - 1))
    connection.execute("DELETE FROM keepers WHERE session = ?", (session,))
    connection.execute("DELETE FROM texts WHERE ref NOT IN (SELECT ref FROM keepers)")
    connection.execute("DELETE FROM sessions WHERE key = ?", (session,))


def stored(connection: sqlite3.Connection, session: int) -> Iterator[TimelineEvent]:
    """All events of a session, read in pieces, so that a long one does not fill the memory."""
    since = 0
    while page := read(connection, session, since, 200):
        yield from page
        since = page[-1].at


def keep(connection: sqlite3.Connection, session: int, text: str) -> str:
    ref = reference(text)
    connection.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (ref, text))
    connection.execute("INSERT OR IGNORE INTO keepers VALUES (?, ?)", (session, ref))
    return ref


def kept(connection: sqlite3.Connection, ref: str) -> str | None:
    row = connection.execute("SELECT body FROM texts WHERE ref = ?", (ref,)).fetchone()
    return str(row[0]) if row else None


def texts(connection: sqlite3.Connection, session: int) -> list[str]:
    bodies = connection.execute(
        "SELECT body FROM texts JOIN keepers USING (ref) WHERE session = ? ORDER BY ref", (session,)
    )
    return [body for (body,) in bodies]


def _index(connection: sqlite3.Connection, key: int, fact: Fact) -> None:
    if text := searchable(fact):
        connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (key, spaced(text)))


def _unindex(connection: sqlite3.Connection, key: int, fact: Fact) -> None:
    # The index holds no text of its own: it is told again what it shall forget.
    if text := searchable(fact):
        connection.execute("INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", (key, spaced(text)))
