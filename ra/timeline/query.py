"""Turns a query into index expressions, and the matches into hits.

The index cannot find the middle of a word or a sign such as `->`: these are searched in the stored text itself.
This module is not loaded before the first search.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from ra.core.facts import TimelineEvent
from ra.core.ports import Hit
from ra.core.text import clean
from ra.core.value import encode
from ra.timeline.relevance import Find, best_first, keywords
from ra.timeline.search import SPACELESS, searchable, spaced
from ra.timeline.store import tag

MAX_TERMS = 32
TOKENIZER = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"  # as in the store's index

_TERM = r'"([^"]*)"?|([^\s"]+)'


def terms(query: str) -> tuple[str, ...]:
    """The words of a query; a phrase in double quotes counts as one. Lone surrogates from a model are repaired."""
    parts = (quoted.strip() or word for quoted, word in re.findall(_TERM, clean(query)))
    return tuple(dict.fromkeys(term for term in parts if term))[:MAX_TERMS]


def expressions(words: Sequence[str]) -> list[str]:
    """The expressions to try, best first: all words; all words as prefixes; any word that carries meaning."""
    indexed = _in_index(words)
    exact = list(map(_phrase, indexed))
    any_of = map(_beginning, _in_index(keywords(words)))
    queries = [" ".join(exact), " ".join(map(_beginning, indexed)), " OR ".join(any_of)]
    return list(dict.fromkeys(queries)) if indexed else []


def _in_index(words: Iterable[str]) -> list[str]:
    return [word for word in words if any(map(str.isalnum, word))]


def _phrase(word: str) -> str:
    return '"' + spaced(word).replace('"', '""').replace("\0", " ") + '"'


def _beginning(word: str) -> str:
    # Too many words begin with any one or two letters.
    return _phrase(word) + " *" if len(word) > 2 else _phrase(word)


def needle(word: str) -> str:
    """The word as the stored JSON spells it, with A–Z lowered as SQLite's lower() does."""
    escaped = encode(word).decode()[1:-1]
    return "".join(char.lower() if char.isascii() else char for char in escaped)


def holds(text: str, word: str) -> bool:
    return word in text or word.casefold() in text.casefold()


def rank(question: str, documents: Sequence[tuple[str, str]], limit: int) -> list[tuple[int, float]]:
    """The documents, (heading, text), that hold any word of the question: their index and score, best first.

    A word in a heading counts three times. Text in a script without spaces is searched by pairs of characters, since
    its word boundaries are unknown.
    """
    import sqlite3  # a server on PostgreSQL does not need it

    expression = " OR ".join(dict.fromkeys(_phrases(question)))
    if not expression:
        return []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE VIRTUAL TABLE words USING fts5(heading, body, tokenize="{TOKENIZER}")')
        rows = ((index, spaced(heading), spaced(text)) for index, (heading, text) in enumerate(documents))
        connection.executemany("INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)", rows)
        ranked = connection.execute(
            "SELECT rowid, -bm25(words, 3.0, 1.0) AS score FROM words WHERE words MATCH ? ORDER BY score DESC, rowid "
            "LIMIT ?",
            (expression, limit),
        )
        return ranked.fetchall()


def _phrases(question: str) -> Iterator[str]:
    folded = clean(question)
    for run in re.findall(f"{SPACELESS}+", folded):
        for at in range(max(1, len(run) - 1)):
            yield f'"{" ".join(run[at : at + 2])}"'
    for word in re.findall(r"\w+", re.sub(SPACELESS, " ", folded)):
        if any(map(str.isalnum, word)):
            yield f'"{word}"'


def scan(session: str, events: Iterable[TimelineEvent], query: str, limit: int) -> list[Hit]:
    """A search without an index, for a timeline in memory. The newest comes first among equally good matches."""
    words = terms(query)
    asked = {*words, *keywords(words)} if words else set()
    texts = ((event, searchable(event.fact)) for event in events)
    candidates = [(event, text) for event, text in texts if any(holds(text, word) for word in asked)]
    return [hit(session, find) for find in best_first(words, reversed(candidates))[:limit]]


def hit(session: str, find: Find) -> Hit:
    event = find.event
    return Hit(session, event.at, event.time, tag(event.fact), find.snippet)
