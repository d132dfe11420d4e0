"""What a search looks at: the indexed text of a fact, the terms of a query, and the snippet of a hit.

The index knows words of every script (unicode61). Scripts that do not put spaces between words are indexed by
character and asked for as phrases, so that any part of such a text is found. What the index cannot see, a part
from the middle of a word or a sign such as `->`, is looked for in the stored text itself.

`searchable` and `spaced` belong to the format of the store: rows leave the index by being told what went in.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import assert_never

from ra.core.facts import (
    CacheDecided,
    Checkpointed,
    Configured,
    Cut,
    Edited,
    EntryRemoved,
    EntrySet,
    Fact,
    Failed,
    Interrupted,
    Kept,
    Noticed,
    Rewound,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
    Titled,
)
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.ports import Hit
from ra.core.text import clean
from ra.core.value import encode
from ra.timeline.store import tag

MAX_TERMS = 32
TOKENIZER = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"  # as in the store's index
AROUND = 80  # characters of a snippet on each side of the find

# Thai, Lao, Tibetan, Burmese, Khmer; kana, Hangul, ideographs and all beyond the first plane's letters of that kind.
# Patterns are compiled when they are first used: a run that does not search does not pay for them.
_SPACELESS = (
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TERM = r'"([^"]*)"?|([^\s"]+)'


def searchable(fact: Fact) -> str:
    """The text of a fact that a search looks at: all that was said, noted and summed up, not what was configured."""
    match fact:
        case Said(message) | Cut(message):
            return _text_of(message)
        case Noticed(section):
            return section.content
        case EntrySet():
            return "\n".join((fact.id, fact.name, fact.content, *fact.attrs.values()))
        case EntryRemoved(id):
            return id
        case Checkpointed():
            return "\n".join((fact.reason, fact.marker, fact.summary))
        case Rotated():
            return "\n".join((fact.reason, fact.handover))
        case Edited():
            return "\n".join((fact.by, *map(_text_of, fact.messages)))
        case Failed(kind, text):
            return f"{kind}\n{text}"
        case Interrupted(reason):
            return reason
        case Titled(title):
            return title
        case Spent() | CacheDecided() | Configured() | Kept() | Rewound():
            return ""
        case _:
            assert_never(fact)


def _text_of(message: Message) -> str:
    return "\n".join(part for block in message.blocks for part in _parts(block))


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Text() | Thinking():
            yield block.text
        case ToolCall():
            yield block.name
            yield block.broken or "\n".join(_leaves(block.args))
        case ToolResult():
            for content in block.content:
                yield from _parts(content)
        case Document():
            yield block.name
        case Image():
            pass
        case _:
            assert_never(block)


def _leaves(value: object) -> Iterator[str]:
    # With a stack of its own: arguments may be nested deeper than functions may call each other.
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case dict() as members:
                for name, item in reversed(members.items()):
                    stack += (item, name)
            case list() as items:
                stack.extend(reversed(items))
            case None | bool():
                pass
            case number:
                yield str(number)


def spaced(text: str) -> str:
    """Text as it goes into the index."""
    return text if text.isascii() else re.sub(_SPACELESS, r" \g<0> ", text)


def terms(query: str) -> tuple[str, ...]:
    """The words of a query; what stands in double quotes is one of them. A model may spell half a character."""
    parts = (quoted.strip() or word for quoted, word in re.findall(_TERM, clean(query)))
    return tuple(dict.fromkeys(term for term in parts if term))[:MAX_TERMS]


def expressions(words: Iterable[str]) -> list[str]:
    """What to ask the index, best first: all words; all, or longer ones that begin so; any of those."""
    indexed = [word for word in words if any(map(str.isalnum, word))]
    exact = ['"' + spaced(word).replace('"', '""').replace("\0", " ") + '"' for word in indexed]
    # One or two letters begin too many words to tell anything.
    longer = [phrase + " *" if len(word) > 2 else phrase for word, phrase in zip(indexed, exact, strict=True)]
    queries = [" ".join(exact), " ".join(longer), " OR ".join(longer)]
    return list(dict.fromkeys(queries)) if indexed else []


def needle(word: str) -> str:
    """How the word stands in the stored JSON, with a–z lowered as SQLite's lower() does."""
    escaped = encode(word).decode()[1:-1]
    return "".join(char.lower() if char.isascii() else char for char in escaped)


def holds(text: str, word: str) -> bool:
    return word in text or word.casefold() in text.casefold()


def snippet(text: str, words: Iterable[str]) -> str:
    """The first find with the text around it, on one line."""
    folded = text.lower()
    places = [place for word in words if (place := folded.find(word.lower())) >= 0]
    place = min(places, default=0)
    start, end = max(0, place - AROUND), place + AROUND
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"


def rank(question: str, documents: Sequence[tuple[str, str]], limit: int) -> list[tuple[int, float]]:
    """The documents, (heading, text), that hold any word of the question: their index and score, best first.

    A word in a heading counts as three in the text. A run of a script without spaces is asked for by pairs of
    characters, since its words are not known.
    """
    import sqlite3  # a server on PostgreSQL need not load it

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
    for run in re.findall(f"{_SPACELESS}+", folded):
        for at in range(max(1, len(run) - 1)):
            yield f'"{" ".join(run[at : at + 2])}"'
    for word in re.findall(r"\w+", re.sub(_SPACELESS, " ", folded)):
        if any(map(str.isalnum, word)):
            yield f'"{word}"'


def scan(session: str, events: Iterable[TimelineEvent], query: str, limit: int) -> list[Hit]:
    """A search without an index, for a timeline in memory: most words first, then the newest."""
    words = terms(query)
    matches = []
    for event in events:
        text = searchable(event.fact)
        count = sum(holds(text, word) for word in words)
        if count:
            matches.append((-count, -event.at, text, event))  # positions differ: events are never compared
    return [hit(session, event, text, words) for _, _, text, event in sorted(matches)[:limit]]


def hit(session: str, event: TimelineEvent, text: str, words: Iterable[str]) -> Hit:
    return Hit(session, event.at, event.time, tag(event.fact), snippet(text, words))
