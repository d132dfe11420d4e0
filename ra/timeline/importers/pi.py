"""Read sessions of pi.

A file of lines: a header, then entries. From version 2 on the entries are a tree by `id` and `parentId`, and the
lines still come in the order of time: where a line goes on from an earlier one, the conversation was set back.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from ra.core.facts import Edited, Failed, Interrupted, Rotated, Said, Spent
from ra.core.messages import Block, Message, Text, ToolResult, say
from ra.core.model import Section, Usage
from ra.timeline.importers.blocks import blocks_of, contents_of
from ra.timeline.importers.lines import Skips, objects
from ra.timeline.importers.transcript import Transcript, TranscriptDraft, count, members, modified, moment, price, text

FORMAT = "pi"
_ROLES = ("system", "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage")
_NOISE = ("thinking_level_change", "model_change", "custom", "label", "session_info")


def recognises(entry: dict[str, Any]) -> bool:
    match entry.get("type"):
        case "session":
            return "cwd" in entry and "sessionId" not in entry
        case "message":
            return members(entry.get("message")).get("role") in _ROLES and "uuid" not in entry
        case _:
            return False


def read(path: Path) -> list[Transcript]:
    reader, skips = _Reader(path), Skips()
    for number, entry in objects(path, skips):
        if problem := reader.take(number, entry):
            skips.add(number, problem)
    return [reader.draft.finished(skips)]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.draft = TranscriptDraft(path.stem, FORMAT, time=modified(path))
        self._model = ""
        self._places: dict[str, int] = {}  # id, and number of the line as compactions of version 1 count → position
        self._parents: dict[str, str] = {}
        self._compactions: dict[str, tuple[str, str]] = {}  # id → summary, id of the first entry kept
        self._said: dict[str, list[Message]] = {}  # id → what the entry said
        self._leaf = ""

    def take(self, number: int, entry: dict[str, Any]) -> str:
        """Read one entry. Returns what is wrong with it, if anything."""
        problem = self._entry(number, entry)
        if id := text(entry.get("id")):
            facts = (event.fact for event in self.draft.events[self._places.get(id, self.draft.next_at) - 1 :])
            self._said[id] = [fact.message for fact in facts if isinstance(fact, Said)]
        return problem

    def _entry(self, number: int, entry: dict[str, Any]) -> str:
        kind, id = text(entry.get("type")), text(entry.get("id"))
        if kind == "session":
            self.draft.project = text(entry.get("cwd"))
            self._model = text(entry.get("modelId"))
            return ""
        if id:
            self._grow(id, text(entry.get("parentId")))
        place = self.draft.next_at
        self._places |= {str(number - 1): place, id: place}
        time = moment(entry.get("timestamp"))
        match kind:
            case "message":
                return self._message(time, members(entry.get("message")))
            case "compaction":
                first_kept = text(entry.get("firstKeptEntryId")) or str(entry.get("firstKeptEntryIndex", ""))
                summary = text(entry.get("summary"))
                self._compactions[id] = (summary, first_kept)
                reason = f"compaction at {count(entry.get('tokensBefore'))} tokens"
                self.draft.add(time, Rotated(reason, summary, self._places.get(first_kept, place)))
                self._bill(time, entry, "summary")
            case "branch_summary":
                self.draft.add(time, Said(say("user", text(entry.get("summary")), name="branch summary")))
                self._bill(time, entry, "summary")
            case "usage":  # such as a small call that keeps the cache warm
                self._bill(time, entry, "agent")
            case "context_edit":
                self._edit(time, text(entry.get("targetId")), entry.get("replacement"))
            case "custom_message":
                self._context(time, entry)
            case _ if kind not in _NOISE:
                return f"unknown entry {kind!r}"
        return ""

    def _bill(self, time: float | None, entry: dict[str, Any], purpose: Literal["summary", "agent"]) -> None:
        """A call that is no turn."""
        if usage := members(entry.get("usage")):
            model = text(entry.get("model")) or self._model
            self.draft.add(time, Spent(model, _usage(usage), _price(usage), purpose=purpose))

    def _edit(self, time: float | None, target: str, replacement: Any) -> None:
        """From here on the model sees something else in the place of an entry, or nothing."""
        if target not in self._said:
            return
        blocks = tuple(blocks_of(members(replacement).get("content")))
        self._said[target] = [_replaced(message, blocks) for message in self._said[target]] if replacement else []
        self.draft.add(time, Edited("context edit", self._branch(self._leaf)))

    def _grow(self, id: str, parent: str) -> None:
        if self._leaf and parent != self._leaf and (parent in self._parents or not parent):
            self.draft.add(None, Edited("branch", self._branch(parent)))
        self._parents[id] = parent
        self._leaf = id

    def _branch(self, leaf: str) -> tuple[Message, ...]:
        """What the model sees at an earlier entry."""
        ids: list[str] = []
        while leaf in self._parents and len(ids) < len(self._parents):  # a damaged file may go in circles
            ids.append(leaf)
            leaf = self._parents[leaf]
        visible: list[tuple[str, Message]] = []
        for id in reversed(ids):
            if id in self._compactions:
                summary, first_kept = self._compactions[id]
                start = next((place for place, (name, _) in enumerate(visible) if name == first_kept), len(visible))
                visible = [(id, say("user", summary, name="summary")), *visible[start:]]
            visible += ((id, message) for message in self._said.get(id, ()))
        return tuple(message for _, message in visible)

    def _message(self, time: float | None, raw: dict[str, Any]) -> str:
        match raw.get("role"):
            case "user":
                self.draft.add(time, Said(Message("user", tuple(blocks_of(raw.get("content"))))))
            case "system":
                words = [block.text for block in blocks_of(raw.get("content")) if isinstance(block, Text)]
                self.draft.sections = (Section("system", "pinned", "\n".join(words)),)
            case "assistant":
                self._answer(time, raw)
            case "toolResult":
                content = contents_of(raw.get("content"))
                name = text(raw.get("toolName"))
                result = ToolResult(text(raw.get("toolCallId")), name, content, raw.get("isError") is True)
                self.draft.answer(time, result)
            case "bashExecution":
                if raw.get("excludeFromContext") is not True:
                    ran = f"Ran `{text(raw.get('command'))}`\n```\n{text(raw.get('output'))}\n```"
                    self.draft.add(time, Said(say("user", ran, name="bash")))
            case "custom" | "hookMessage":
                self._context(time, raw)
            case "branchSummary" | "compactionSummary":
                self.draft.add(time, Said(say("user", text(raw.get("summary")), name="summary")))
            case role:
                return f"unknown role {role!r}"
        return ""

    def _context(self, time: float | None, raw: dict[str, Any]) -> None:
        name = text(raw.get("customType")) or "extension"
        self.draft.add(time, Said(Message("user", tuple(blocks_of(raw.get("content"))), name=name)))

    def _answer(self, time: float | None, raw: dict[str, Any]) -> None:
        model = text(raw.get("model")) or self._model
        message = Message("assistant", tuple(blocks_of(raw.get("content"))), model=model)
        stop, reason = raw.get("stopReason"), text(raw.get("errorMessage"))
        if stop not in ("aborted", "error"):
            self.draft.speak(time, message)
        elif message.blocks:
            self.draft.speak(time, message, cut=reason or str(stop))
        else:
            self.draft.add(time, Interrupted(reason) if stop == "aborted" else Failed("provider", reason))
        if usage := members(raw.get("usage")):
            began = moment(raw.get("timestamp"))
            self.draft.add(
                time,
                Spent(
                    model,
                    _usage(usage),
                    _price(usage),
                    seconds=max(0.0, time - began) if time and began else 0.0,
                ),
            )


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(*(count(usage.get(kind)) for kind in ("input", "output", "cacheRead", "cacheWrite")))


def _price(usage: dict[str, Any]) -> str:
    return price(members(usage.get("cost")).get("total"))


def _replaced(message: Message, blocks: tuple[Block, ...]) -> Message:
    """The message with other content; a result keeps its call."""
    if message.role == "tool" and isinstance(result := message.blocks[0], ToolResult):
        content = tuple(block for block in blocks if isinstance(block, Text))
        blocks = (msgspec.structs.replace(result, content=content),)
    return msgspec.structs.replace(message, blocks=blocks)
