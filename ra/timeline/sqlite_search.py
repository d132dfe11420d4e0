"""Full-text search in the SQLite file. Loaded when somebody searches."""

import sqlite3
from collections.abc import Iterator

from ra.core.facts import TimelineEvent
from ra.core.ports import Hit
from ra.timeline.query import expressions, hit, holds, needle, terms
from ra.timeline.relevance import best_first
from ra.timeline.search import searchable
from ra.timeline.sqlite_file import at_of, key_of
from ra.timeline.store import event_of

_EVERYTHING = (0, (1 << 63) - 1)


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
    keys: dict[int, int] = {}  # of an event as an object → of its row
    candidates = []
    for key, event in _candidates(connection, words, scope, limit):
        keys[id(event)] = key
        candidates.append((event, searchable(event.fact)))
    hits: dict[tuple[int, float, str], Hit] = {}
    for match in best_first(words, candidates):
        key = keys[id(match.event)]
        (name,) = connection.execute("SELECT id FROM sessions WHERE key = ?", (key >> 32,)).fetchone()
        hits.setdefault((match.event.at, match.event.time, match.snippet), hit(name, match))
        if len(hits) >= limit:
            break
    return list(hits.values())


_SCOPE = (
    "BETWEEN ? AND ? AND EXISTS "
    "(SELECT 1 FROM sessions s WHERE s.key = e.key >> 32 AND (? IS NULL OR s.project = ?) AND s.id IS NOT ?)"
)


def _candidates(
    connection: sqlite3.Connection, words: tuple[str, ...], scope: tuple[object, ...], limit: int
) -> Iterator[tuple[int, TimelineEvent]]:
    indexed = set()
    for expression in expressions(words):
        rows = connection.execute(
            "SELECT e.key, e.time, e.fact FROM words JOIN events e ON e.key = words.rowid "
            f"WHERE words MATCH ? AND words.rowid {_SCOPE} ORDER BY words.rank LIMIT ?",
            (expression, *scope, 4 * limit),  # some may be copies
        )
        for key, time, fact in rows.fetchall():
            if key not in indexed:
                indexed.add(key)
                yield key, event_of(at_of(key), time, fact)
    if indexed or not words:
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
