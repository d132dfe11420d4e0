"""What happened in a stretch of conversation? Read off by program: files, commands, errors, words of the user, names.

Works for tools of any name, ours and those of imported transcripts: what a call did is told by its arguments.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from ra.context.compaction.names import identifiers, strings
from ra.context.projection import text_of
from ra.context.units import Unit
from ra.core.messages import ToolCall, ToolResult
from ra.core.text import one_line

LINE = 160  # characters of one line of an index
SCANNED = 200_000  # characters of one message that are searched for names
USED = 3  # a name in the arguments of a call counts as much as one that was seen so often

_PATH_KEYS = re.compile(
    r"^(?:(?:target|notebook|source|dest(?:ination)?)_?)?(?:file|path|file_?path|file_?name)s?$", re.I
)
_COMMAND_KEYS = re.compile(r"^(?:cmd|command|commands|script|shell)$", re.I)
_CHANGING = re.compile(
    r"write|edit|create|patch|replace|update|insert|append|delete|remove|rename|move|save|str_?repl", re.I
)
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ b/)(.+)$", re.M)
_EXIT = re.compile(r"(?:exit(?:ed)?|return(?:ed)?|status)[ _]?(?:with)?[ _]?(?:code|status)?\W{1,4}(-?\d{1,3})\b", re.I)
_FAULT = re.compile(
    r"error|exception|failed|failure|fatal|panic|traceback|denied|not found|no such|cannot|refused"
    r"|fehler|erreur|ошибка|エラー|失败|错误|失敗|오류",
    re.I,
)
_DECISION = re.compile(
    r"\b(?:must|never|always|only|use|prefer|don'?t|do not|instead|should|let'?s|decide|keep|avoid|remember|from now)\b"
    r"|nicht|immer|bitte|siempre|nunca|toujours|jamais|нельзя|всегда|必须|不要|使用|总是|请|ください|しないで|必ず|항상",
    re.I,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


class Note(msgspec.Struct, frozen=True):
    """One line of an index, and where it was found."""

    kind: Literal["changed", "read", "command", "error", "user"]
    text: str
    at: int


class Trace(msgspec.Struct, frozen=True):
    """What one group left behind. `names` weighs what the agent itself used more than what it only saw."""

    notes: tuple[Note, ...]
    names: dict[str, int]
    tools: tuple[str, ...]


def trace(unit: Unit) -> Trace:
    notes: list[Note] = []
    names: Counter[str] = Counter()
    calls = unit.item.message.calls
    if unit.is_prompt:
        notes += [Note("user", line, unit.at) for line in decisions(unit.item.message.text)]
    for call, item in zip(calls, unit.results, strict=True):
        answer = text_of(item.message) if item else ""
        failed = item is not None and any(b.is_error for b in item.message.blocks if isinstance(b, ToolResult))
        notes += _call_notes(call, answer, item.place[0] if item else unit.at, failed=failed)
        for name in identifiers("\n".join(strings(call.args))[:SCANNED]):
            names[name] += USED
        names.update(identifiers(answer[:SCANNED]))
    names.update(identifiers(text_of(unit.item.message)[:SCANNED]))
    return Trace(tuple(notes), dict(names), tuple(dict.fromkeys(call.name for call in calls)))


def decisions(text: str) -> Iterator[str]:
    """What the user settled: a short message as it is, of a long one the sentences that ask, forbid or prefer."""
    if len(text) <= 2 * LINE:
        if text.strip():
            yield line(text, 2 * LINE)
        return
    found = [sentence.strip() for sentence in _SENTENCE.findall(text[:SCANNED]) if _DECISION.search(sentence)]
    yield from (line(sentence) for sentence in (found[:5] or [text]))


def paths(call: ToolCall) -> Iterator[str]:
    """Files that a call names in its arguments, or in a patch."""
    for key, value in call.args.items():
        if _PATH_KEYS.match(key):
            yield from (one for one in _texts(value) if one and "\n" not in one)
        elif isinstance(value, str):
            yield from (found.strip() for found in _PATCHED.findall(value))


def command(call: ToolCall) -> str:
    """The command line that a call runs, or nothing."""
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
        code = _EXIT.search(answer[:300]) or _EXIT.search(answer[-300:])
        outcome = f" → exit {code[1]}" if code else " → error" if failed else ""
        yield Note("command", line(ran, LINE - len(outcome)) + outcome, at)
    changing = bool(_CHANGING.search(call.name))
    for path in dict.fromkeys(paths(call)):
        changed = changing or bool(_PATCHED.search(" ".join(_texts(list(call.args.values())))))
        yield Note("changed" if changed and not failed else "read", line(path), at)
    if failed or (ran and _FAULT.search(answer[-2000:])):
        fault = next((text for text in answer.splitlines() if _FAULT.search(text)), answer)
        if fault.strip():
            yield Note("error", line(fault), at)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
