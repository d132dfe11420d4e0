"""Extracts from a stretch of conversation what happened: files, commands, errors, names. Calls no model.

It works for tools of any name, also in imported transcripts: the arguments show what a call did.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from ra.context.compaction.names import identifiers, strings
from ra.context.render import text_of
from ra.context.view import Group
from ra.core.messages import ToolCall, ToolResult
from ra.core.text import one_line

LINE = 160  # characters of one line of an index
SCANNED = 200_000  # characters of one message that are searched for names
USED = 3  # a name in a call's arguments counts as much as this many occurrences elsewhere

_PATH_KEYS = re.compile(
    r"^(?:(?:target|notebook|source|dest(?:ination)?)_?)?(?:file|path|file_?path|file_?name)s?$", re.I
)
_COMMAND_KEYS = re.compile(r"^(?:cmd|command|commands|script|shell)$", re.I)
_CHANGING = re.compile(
    r"write|edit|create|patch|replace|update|insert|append|delete|remove|rename|move|save|str_?repl", re.I
)
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ b/)(.+)$", re.M)
# Both are for lower-case text: without re.I the search is several times faster.
_EXIT = re.compile(r"(?:exit(?:ed)?|return(?:ed)?|status)[ _]?(?:with)?[ _]?(?:code|status)?\W{1,4}(-?\d{1,3})\b")
_FAULTS = (
    *("error", "exception", "failed", "failure", "fatal", "panic", "traceback", "denied", "not found", "no such"),
    *("cannot", "refused", "fehler", "erreur", "ошибка", "エラー", "失败", "错误", "失敗", "오류"),
)


class Note(msgspec.Struct, frozen=True):
    """One line of an index, and its position."""

    kind: Literal["changed", "read", "command", "error"]
    text: str
    at: int


class GroupTrace(msgspec.Struct, frozen=True):
    """What one group left behind. `names` holds each as often as it counts: what the agent used more than what it saw.

    A tuple, since a long session has tens of thousands of these and dicts of weights took a quarter of its memory.
    """

    notes: tuple[Note, ...]
    names: tuple[str, ...]
    tools: tuple[str, ...]


def trace(group: Group) -> GroupTrace:
    notes: list[Note] = []
    names: list[str] = []
    calls = group.item.message.calls
    for call, item in zip(calls, group.results, strict=True):
        answer = text_of(item.message) if item else ""
        failed = item is not None and any(b.is_error for b in item.message.blocks if isinstance(b, ToolResult))
        notes += _call_notes(call, answer, item.place[0] if item else group.at, failed=failed)
        names += [*identifiers("\n".join(strings(call.args))[:SCANNED])] * USED
        names += identifiers(answer[:SCANNED])
    names += identifiers(text_of(group.item.message)[:SCANNED])
    return GroupTrace(tuple(notes), tuple(names), tuple(dict.fromkeys(call.name for call in calls)))


def paths(call: ToolCall) -> Iterator[str]:
    """The files that a call names in its arguments or in a patch."""
    for key, value in call.args.items():
        if _PATH_KEYS.match(key):
            yield from (one for one in _texts(value) if one and "\n" not in one)
        elif isinstance(value, str):
            yield from (path.strip() for path in _PATCHED.findall(value))


def changes(call: ToolCall) -> bool:
    """Whether a call writes, judged by the tool's name or by a patch among its arguments."""
    return bool(_CHANGING.search(call.name)) or bool(_PATCHED.search(" ".join(_texts(list(call.args.values())))))


def command(call: ToolCall) -> str:
    """The command line that a call runs; empty if none."""
    for key, value in call.args.items():
        if _COMMAND_KEYS.match(key):
            words = list(_texts(value))
            return words[-1] if words[:2] == ["bash", "-lc"] or len(words) == 1 else " ".join(words)
    return ""


def line(text: str, length: int = LINE) -> str:
    """Text as one line of an index."""
    return one_line(text, length)


def _call_notes(call: ToolCall, answer: str, at: int, *, failed: bool) -> Iterator[Note]:
    ran = command(call)
    if ran:
        code = _EXIT.search(answer[:300].lower()) or _EXIT.search(answer[-300:].lower())
        outcome = f" → exit {code[1]}" if code else " → error" if failed else ""
        yield Note("command", line(ran, LINE - len(outcome)) + outcome, at)
    changed = changes(call)
    for path in dict.fromkeys(paths(call)):
        yield Note("changed" if changed and not failed else "read", line(path), at)
    if failed or (ran and _tells_fault(answer[-2000:])):
        fault = next(filter(_tells_fault, answer.splitlines()), answer)
        if fault.strip():
            yield Note("error", line(fault), at)


def _tells_fault(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _FAULTS)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
