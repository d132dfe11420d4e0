"""Full-text search in PostgreSQL, with the words that the SQLite index has.

The words of a text are found here and not by PostgreSQL's parser, which takes paths, addresses and hyphenated words
for one word and depends on the locale of the database. A text has at most 16 383 word positions in a tsvector and
1 MB of words: of a longer one the rest is found by reading the stored text, when the index finds nothing.
"""

import unicodedata
from collections.abc import Iterable, Iterator

import regex

from ra.core.facts import TimelineEvent
from ra.core.ports import Hit
from ra.timeline.postgres_database import PostgresDatabase
from ra.timeline.query import hit, holds, needle, terms
from ra.timeline.relevance import best_first, keywords
from ra.timeline.search import searchable, spaced
from ra.timeline.store import event_of

MAX_POSITION = 16_383
MAX_PLACES = 200  # of one word; PostgreSQL keeps 255
MAX_BYTES = 700_000
MAX_WORD = 500  # characters

_WORD = regex.compile(r"[\p{L}\p{N}\p{Co}\p{Mn}\p{Mc}]+")
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")

_SCOPE = (
    "JOIN ra_sessions s ON s.key = e.session WHERE (%(session)s::bigint IS NULL OR e.session = %(session)s) "
    "AND (%(project)s::text IS NULL OR s.project = %(project)s) AND s.id IS DISTINCT FROM %(exclude)s::text"
)
_FOUND = "SELECT s.id, e.session, e.at, e.time, e.fact FROM ra_events e"
_LOWER = "translate(convert_from(e.fact, 'UTF8'), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"


def words(text: str) -> list[str]:
    """The words of a text as they are indexed: lower case, without accents, spaceless scripts by character."""
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", spaced(text))))
    return [word.casefold()[:MAX_WORD] for word in _WORD.findall(plain)]


def vector(text: str) -> str | None:
    """The text as a tsvector; None when it has no words."""
    places: dict[str, list[int]] = {}
    size = 0
    for position, word in enumerate(words(text), 1):
        if word not in places:
            size += len(word.encode()) + 8
            if size > MAX_BYTES:
                break
            places[word] = []
        if len(places[word]) < MAX_PLACES and position <= MAX_POSITION:
            places[word].append(position)
    lexemes = (_quoted(word) + (":" if at else "") + ",".join(map(str, at)) for word, at in places.items())
    return " ".join(lexemes) or None


def queries(asked: tuple[str, ...]) -> list[str]:
    """What to ask the index, best first: all words; all, or longer ones that begin so; any that says something."""
    exact = [f"({' <-> '.join(parts)})" for _, parts in _indexed(asked)]
    forms = [" & ".join(exact), " & ".join(_beginnings(asked)), " | ".join(_beginnings(keywords(asked)))]
    return list(dict.fromkeys(forms)) if exact else []


def _indexed(terms: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    for term in terms:
        if parts := [_quoted(word) for word in words(term)]:
            yield term, parts


def _beginnings(terms: Iterable[str]) -> list[str]:
    return [f"({' <-> '.join(parts)}{':*' if len(term) > 2 else ''})" for term, parts in _indexed(terms)]


def find(
    database: PostgresDatabase,
    query: str,
    limit: int,
    *,
    session: int | None = None,
    project: str | None = None,
    exclude: str | None = None,
) -> list[Hit]:
    """Events that hold the words of the query, best first. The copies that forks made of an event count once."""
    query_terms = terms(query)
    scope: dict[str, object] = {"session": session, "project": project, "exclude": exclude}
    names: dict[int, str] = {}  # of the session of an event as an object
    candidates = []
    for name, event in _candidates(database, query_terms, scope, limit):
        names[id(event)] = name
        candidates.append((event, searchable(event.fact)))
    hits: dict[tuple[int, float, str], Hit] = {}
    for match in best_first(query_terms, candidates):
        event = match.event
        hits.setdefault((event.at, event.time, match.snippet), hit(names[id(event)], match))
        if len(hits) >= limit:
            break
    return list(hits.values())


def _candidates(
    database: PostgresDatabase, asked: tuple[str, ...], scope: dict[str, object], limit: int
) -> Iterator[tuple[str, TimelineEvent]]:
    indexed = set()
    for query in queries(asked):
        statement = (
            f"{_FOUND} {_SCOPE} AND e.words @@ %(query)s::tsquery "
            "ORDER BY ts_rank(e.words, %(query)s::tsquery, 1) DESC, e.session DESC, e.at DESC LIMIT %(most)s"
        )
        for name, key, at, time, fact in database.rows(statement, scope | {"query": query, "most": 4 * limit}):
            if (key, at) not in indexed:
                indexed.add((key, at))
                yield name, event_of(at, time, bytes(fact))
    if indexed or not asked:
        return
    # No word begins like that: perhaps it stands inside one. PostgreSQL sifts the stored text, we look closely.
    needles = {f"needle{number}": needle(term) for number, term in enumerate(asked)}
    sieve = " AND ".join(f"position(%({name})s in {_LOWER}) > 0" for name in needles)
    rows = database.rows(f"{_FOUND} {_SCOPE} AND {sieve} ORDER BY e.session DESC, e.at DESC", scope | needles)
    for name, _, at, time, fact in rows:
        event = event_of(at, time, bytes(fact))
        text = searchable(event.fact)
        if all(holds(text, term) for term in asked):
            yield name, event


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
