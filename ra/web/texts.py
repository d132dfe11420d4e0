"""The words of a session: what a piece says, part by part, and where a phrase occurs."""

import json
from collections.abc import Iterator
from typing import Literal

import msgspec

from ra.bench.requests import Content
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Section, ToolSpec
from ra.core.secrets import redact
from ra.core.text import clean
from ra.core.value import encode
from ra.web.values import PieceText, SearchHit, SearchHits, TextPart

Kind = Literal["text", "thinking", "call", "result", "error", "attachment"]

PAGE = 50_000  # characters of a part that are sent at once: a browser lays them out in a few milliseconds
AROUND = 60
MOST_HITS = 200


def words(content: Content, *, start: int = 0, part: int | None = None, page: int = PAGE) -> PieceText:
    """What a piece says, each part up to a page; `part` and `start` turn the pages of one."""
    parts = []
    for number, (kind, name, text) in enumerate(texts(content)):
        if part is not None and number != part:
            continue
        excerpt = text[start : start + page]
        next_start = start + page if start + page < len(text) else 0
        parts.append(TextPart(kind, clean(name), clean(excerpt), next_start, len(text)))
    return PieceText(parts)


def redacted(content: Content) -> PieceText:
    """All that a piece says, without what looks like a secret."""
    return PieceText([TextPart(kind, clean(name), redact(clean(text))) for kind, name, text in texts(content)])


def texts(content: Content) -> Iterator[tuple[Kind, str, str]]:
    match content:
        case ToolSpec(name=name, description=description, schema=schema):
            yield "text", name, f"{description}\n{_json(schema)}"
        case Section(content=text):
            yield "text", content.name, text
        case Message(blocks=blocks):
            for block in blocks:
                yield _part(block)


def _part(block: Block) -> tuple[Kind, str, str]:
    match block:
        case Text(text=text):
            return "text", "", text
        case Thinking(text=text):
            return "thinking", "", text or "(redacted by the provider)"
        case ToolCall(name=name, args=args, broken=broken):
            return "call", name, broken or _json(args)
        case ToolResult(name=name, content=content, is_error=is_error):
            text_said = "\n".join(part.text if isinstance(part, Text) else _attached(part) for part in content)
            return "error" if is_error else "result", name, text_said
        case Image() | Document():
            return "attachment", "", _attached(block)


def _attached(block: Image | Document) -> str:
    return f"[{block.media_type}, {len(block.data):,} bytes]"


def _json(value: object) -> str:
    try:
        return msgspec.json.format(encode(value), indent=2).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, indent=2)


def search(contents: list[Content], phrase: str, *, most: int = MOST_HITS) -> SearchHits:
    """The pieces that hold the phrase, in order, whatever its case; the first place in each."""
    folded_phrase = phrase.casefold()
    hits: list[SearchHit] = []
    for number, content in enumerate(contents):
        for _, name, text in texts(content):
            if folded_phrase in name.casefold():
                text = name + "\n" + text
            place = text.casefold().find(folded_phrase)
            if place >= 0:
                end = place + len(phrase)
                before, after = text[max(0, place - AROUND) : place], text[end : end + AROUND]
                hits.append(SearchHit(number, clean(before), clean(text[place:end]), clean(after)))
                break
        if len(hits) >= most:
            return SearchHits(hits, more=True)
    return SearchHits(hits, more=False)
