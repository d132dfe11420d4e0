"""Reads back what was cut: by reference, word for word, or by a full-text search."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import assert_never

from ra.context.view import View
from ra.core.facts import (
    Checkpointed,
    Configured,
    Cut,
    Edited,
    EntrySet,
    Fact,
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.ports import Timeline
from ra.core.value import encode

PAGE = 24_000  # bytes of one answer: about 6 000 tokens of English, 8 000 of Chinese
HITS = 20

_SPAN = re.compile(r"#(\d{1,9})(?:\s*[-–…]\s*#?(\d{1,9}))?")
_REF = re.compile(rf"^\s*(?P<spans>{_SPAN.pattern}(?:\s*,\s*{_SPAN.pattern})*)\s*(?:\+\s*(?P<offset>\d+))?\s*$")
_KEPT = re.compile(r"^\s*(?P<ref>~[0-9a-f]{12})\s*(?:\+\s*(?P<offset>\d+))?\s*$")


def recall(query: str, timeline: Timeline, *, view: View | None = None, page: int = PAGE) -> str:
    """The text behind a reference (`#12`, `#12-18`, `#3, #9-11`, `~3f9a…`), or the places where words occur.

    Long text is divided into pages of `page` bytes; each ends with the reference of the next. Matches that the next
    request of the `view` has anyway come last: the question itself is one of them.
    """
    stored = _KEPT.match(query)
    if stored:
        text = timeline.kept(stored["ref"])
        return _missing(query) if text is None else _page(text, stored["ref"], int(stored["offset"] or 0), page)
    ref = _REF.match(query)
    if ref:
        spans = [(int(start), int(end or start)) for start, end in _SPAN.findall(ref["spans"])]
        text = "\n\n".join(_events(timeline, spans))
        return _page(text, ref["spans"], int(ref["offset"] or 0), page) if text else _missing(query)
    return _search(query.strip(), timeline, view)


def written(fact: Fact) -> str:
    """All text of a fact, word for word."""
    match fact:
        case Said(message) | Cut(message=message):
            return _message(message)
        case Noticed(section):
            return f"context {section.name}:\n{section.content}"
        case EntrySet(id=id, content=content):
            return f"entry {id}:\n{content}"
        case Checkpointed(summary=summary, marker=marker):
            return "compaction:\n" + "\n".join(part for part in (summary, marker) if part)
        case Rotated(handover=handover):
            return f"rotation:\n{handover}"
        case Edited(by=by, messages=messages):
            return "\n\n".join((f"edited by {by}:", *map(_message, messages)))
        case _:
            return encode(fact).decode()


def _events(timeline: Timeline, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    for start, end in spans:
        events = _between(timeline, start, end)
        # A range is read for the conversation in it; bills and settings have references of their own.
        spoken = [event for event in events if not isinstance(event.fact, Spent | Configured)]
        yield from map(_event, spoken or events)


def _between(timeline: Timeline, start: int, end: int) -> list[TimelineEvent]:
    return list(takewhile(lambda event: event.at <= end, timeline.events(since=max(0, start - 1))))


def _event(event: TimelineEvent) -> str:
    return f"#{event.at} {written(event.fact)}"


def _message(message: Message) -> str:
    label = f"{message.role} {message.name}".strip()
    return "\n".join((f"{label}:", *map(_block, message.blocks)))


def _block(block: Block) -> str:
    match block:
        case Text(text) | Thinking(text):
            return text
        case ToolCall(name=name, args=args, broken=broken):
            return f"[call {name} {broken or encode(args).decode()}]"
        case ToolResult(name=name, content=content, is_error=failed):
            return "\n".join((f"[{'error' if failed else 'result'} of {name}]", *map(_block, content)))
        case Image(media_type=kind, data=data) | Document(media_type=kind, data=data):
            return f"[{kind}, {len(data)} bytes]"
        case _:
            assert_never(block)


def _page(text: str, ref: str, offset: int, room: int) -> str:
    """The text from character `offset` on, as much as fits the page, unaltered, and the reference of the next page."""
    if offset >= len(text) > 0:
        return f"There are only {len(text)} characters behind {ref}."
    page = text[offset : offset + room].encode()[:room].decode(errors="ignore")
    end = offset + len(page)
    if end >= len(text):
        return page
    return f'{page}\n[{end} of {len(text)} characters; recall("{ref}+{end}") goes on]'


def _search(words: str, timeline: Timeline, view: View | None) -> str:
    visible = _visible(view) if view else frozenset()
    hits = timeline.search(words, limit=HITS * (4 if visible else 1)) if words else ()
    if not hits:
        return f'Nothing was found for "{words}". Try other or fewer words, or a reference such as #12.'
    hits = sorted(hits, key=lambda hit: hit.session == timeline.session and hit.at in visible)[:HITS]
    places = (f"#{hit.at}" if hit.session == timeline.session else f"session {hit.session} #{hit.at}" for hit in hits)
    lines = [f"{place}: {' '.join(hit.snippet.split())}" for place, hit in zip(places, hits, strict=True)]
    return "\n".join((*lines, 'Recall "#N" to read one of them word for word.'))


def _visible(view: View) -> frozenset[int]:
    """The positions that the model sees word for word."""
    groups = (group for group in view.groups if group.kind not in ("marker", "handover"))  # they stand where others did
    items = [item for group in groups for item in group.items]
    short = {item.place[0] for item in items if view.clipped(item) is not item.message}
    return frozenset(item.place[0] for item in items) - short


def _missing(query: str) -> str:
    return f"Nothing is stored under {query.strip()} in this session."
