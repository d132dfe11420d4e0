"""Makes the searchable text of a fact.

The index knows words of every script (unicode61). Scripts without spaces between words are indexed by character and
searched as phrases, so that any part of such a text is found.

`searchable` and `spaced` are part of the store's format: removing a row from the index takes the text that went in.
"""

import re
from collections.abc import Iterator
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
    Titled,
)
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult

# Thai, Lao, Tibetan, Burmese, Khmer; kana, Hangul, ideographs and all beyond the first plane's letters of that kind.
# Patterns are compiled when they are first used: a run that does not search does not pay for them.
SPACELESS = (
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def searchable(fact: Fact) -> str:
    """The searchable text of a fact: everything said, noted and summarized, but not the configuration."""
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
    # With an explicit stack: arguments may be nested deeper than Python's recursion limit.
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
    """The text as it is indexed: with spaces around the characters of scripts without spaces."""
    return text if text.isascii() else re.sub(SPACELESS, r" \g<0> ", text)
