"""The texts of a session: those of a piece, part by part, and the places where a phrase occurs."""

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


def piece_text(content: Content, *, start: int = 0, part: int | None = None, page: int = PAGE) -> PieceText:
    """The text of a piece, at most a page of each part; `part` and `start` select a later page of one part."""
    parts = []
    for number, (kind, name, text) in enumerate(texts(content)):
        if part is not None and number != part:
            continue
        excerpt = text[start : start + page]
        next_start = start + page if start + page < len(text) else 0
        parts.append(TextPart(kind, clean(name), clean(excerpt), next_start, len(text)))
    return PieceText(parts)


def redacted(content: Content) -> PieceText:
    """The complete text of a piece, without anything that looks like a secret."""
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
            result_text = "\n".join(part.text if isinstance(part, Text) else _attached(part) for part in content)
            return "error" if is_error else "result", name, result_text
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
    """The pieces that contain the phrase, in order, ignoring case; the first place in each."""
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
