"""How does the full-text index learn, forget and answer?

It is written in the transaction of the event itself, so that the two can never disagree, whatever crashes.
That costs about 0.1 ms per event, and a search then finds everything at once, in a read-only store too.
"""

import sqlite3
from collections.abc import Iterator

from ra.core.facts import Fact, TimelineEvent
from ra.core.ports import Hit
from ra.timeline.codec import event_of
from ra.timeline.schema import at_of, key_of
from ra.timeline.search import expressions, hit, holds, needle, searchable, spaced, terms

_EVERYTHING = (0, (1 << 63) - 1)


def add(connection: sqlite3.Connection, key: int, fact: Fact) -> None:
    if text := searchable(fact):
        connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (key, spaced(text)))


def remove(connection: sqlite3.Connection, key: int, fact: Fact) -> None:
    # The index holds no text of its own: it is told again what it shall forget.
    if text := searchable(fact):
        connection.execute("INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", (key, spaced(text)))


def find(
    connection: sqlite3.Connection,
    query: str,
    limit: int,
    *,
    session: int | None = None,
    project: str | None = None,
    exclude: str | None = None,
) -> list[Hit]:
    """Events that hold the words of the query, best first. The copies that forks made of an event count once."""
    words = terms(query)
    scope = (
        *(_EVERYTHING if session is None else (key_of(session, 0), key_of(session + 1, 0) - 1)),
        *(project, project, exclude),
    )
    found: dict[tuple[int, float, str], Hit] = {}
    for key, event in _candidates(connection, words, scope, limit):
        text = searchable(event.fact)
        (name,) = connection.execute("SELECT id FROM sessions WHERE key = ?", (key >> 32,)).fetchone()
        new = hit(name, event, text, words)
        found.setdefault((new.at, new.time, new.snippet), new)
        if len(found) >= limit:
            break
    return list(found.values())


_SCOPE = (
    "BETWEEN ? AND ? AND EXISTS "
    "(SELECT 1 FROM sessions s WHERE s.key = e.key >> 32 AND (? IS NULL OR s.project = ?) AND s.id IS NOT ?)"
)


def _candidates(
    connection: sqlite3.Connection, words: tuple[str, ...], scope: tuple[object, ...], limit: int
) -> Iterator[tuple[int, TimelineEvent]]:
    seen = set()
    for expression in expressions(words):
        rows = connection.execute(
            "SELECT e.key, e.time, e.fact FROM words JOIN events e ON e.key = words.rowid "
            f"WHERE words MATCH ? AND words.rowid {_SCOPE} ORDER BY words.rank LIMIT ?",
            (expression, *scope, 4 * limit),  # some may be copies
        )
        for key, time, fact in rows.fetchall():
            if key not in seen:
                seen.add(key)
                yield key, event_of(at_of(key), time, fact)
    if seen or not words:
        return
    # No word begins like that: perhaps it stands inside one. SQLite sifts the stored text, we look closely.
    sieve = " AND ".join(["instr(lower(CAST(e.fact AS TEXT)), ?)"] * len(words))
    rows = connection.execute(
        f"SELECT e.key, e.time, e.fact FROM events e WHERE e.key {_SCOPE} AND {sieve} ORDER BY e.key DESC",
        (*scope, *map(needle, words)),
    )
    for key, time, fact in rows:
        event = event_of(at_of(key), time, fact)
        text = searchable(event.fact)
        if all(holds(text, word) for word in words):
            yield key, event
