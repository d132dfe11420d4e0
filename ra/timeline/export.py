"""Exports a session: as JSON lines that can be imported without loss, or as Markdown for people."""

import time
from collections.abc import Iterable, Iterator
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
from ra.core.value import encode
from ra.timeline import folds

FORMAT = "ra-timeline"
VERSION = 1


def export_lines(
    session: str, project: str, events: Iterable[TimelineEvent], texts: Iterable[str] = ()
) -> Iterator[bytes]:
    """JSON lines: a header, one line per event, and one per text that is stored outside the log."""
    yield encode({"format": FORMAT, "version": VERSION, "session": session, "project": project}) + b"\n"
    for event in events:
        yield encode(event) + b"\n"
    for text in texts:
        yield encode({"kept": text}) + b"\n"


def export_markdown(session: str, events: Iterable[TimelineEvent]) -> Iterator[str]:
    """The conversation and its tool calls, in order, for a person to read."""
    recorded = list(events)
    yield f"# {folds.title(recorded) or session}\n\n"
    if recorded:
        spent = folds.spend(recorded)
        began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(recorded[0].time))
        money = f", ${spent.dollars:.4f}" if spent.priced else ""
        yield f"Session {session}, {began} UTC, {spent.calls} model calls{money}.\n\n"
    for event in recorded:
        if markdown := _markdown(event.fact):
            yield f"{markdown.rstrip()}\n\n"


def _markdown(fact: Fact) -> str:
    match fact:
        case Said(message):
            return _message(message)
        case Cut(message, reason):
            return f"{_message(message)}\n\n*Broken off: {reason}*"
        case EntrySet():
            return f"*Entry {fact.id} set:*\n\n{_quoted(fact.content)}"
        case EntryRemoved(id):
            return f"*Entry {id} removed.*"
        case Noticed(section):
            return f"*Context {section.name}:*\n\n{_quoted(section.content)}"
        case Checkpointed():
            return f"*Compacted ({fact.strategy}, {fact.reason}).*\n\n{_quoted(fact.summary)}"
        case Rotated():
            return f"*A new segment ({fact.reason}).*\n\n{_quoted(fact.handover)}"
        case Edited(by):
            return f"*The conversation was edited by {by}.*"
        case Titled(title):
            return f"*Title: {title}*"
        case Kept(at):
            return f"*The user brought #{at} back into the window.*"
        case Rewound(to):
            return f"*The user went back to #{to}.*"
        case Failed(kind, text):
            return f"*Failed ({kind}): {text}*"
        case Interrupted(reason):
            return f"*Interrupted: {reason}*"
        case Configured():
            return f"*Model: {fact.model}*"
        case Spent() | CacheDecided():
            return ""
        case _:
            assert_never(fact)


_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def _message(message: Message) -> str:
    who = _SPEAKERS[message.role] + (f" ({message.name})" if message.name else "")
    return "\n\n".join([f"## {who}", *map(_block, message.blocks)])


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case Thinking():
            return f"<details><summary>Thinking</summary>\n\n{_quoted(block.text)}\n\n</details>"
        case ToolCall():
            return f"**{block.name}**\n\n{_fenced(block.broken or encode(block.args).decode(), 'json')}"
        case ToolResult():
            content = "\n".join(_block(part) for part in block.content)
            return f"**{block.name}**{' failed' if block.is_error else ''}\n\n{_fenced(content)}"
        case Image() | Document():
            return f"[{block.media_type}, {len(block.data)} bytes]"
        case _:
            assert_never(block)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
