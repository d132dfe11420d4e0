"""Reads the sessions of Gemini CLI: one JSON object with `messages` of the types user and gemini."""

from pathlib import Path
from typing import Any

from ra.core.facts import Failed, Said, Spent
from ra.core.messages import Block, Message, Text, Thinking, ToolResult
from ra.core.model import Usage
from ra.timeline.importers.blocks import blocks_of, call, contents_of
from ra.timeline.importers.lines import Skips, elements
from ra.timeline.importers.transcript import Transcript, TranscriptDraft, count, items, members, modified, moment, text

FORMAT = "gemini-cli"
_TYPES = ("user", "gemini")


def recognises(entry: dict[str, Any]) -> bool:
    messages = items(entry.get("messages"))
    return "sessionId" in entry and any(members(one).get("type") in _TYPES for one in messages)


def read(path: Path) -> list[Transcript]:
    skips = Skips()
    drafts = []
    for number, element in elements(path, skips):
        about = members(element)
        if recognises(about):
            drafts.append(_draft(path, about))
        else:
            skips.add(number, "no session of Gemini CLI", unit="element")
    drafts = drafts or [TranscriptDraft(path.stem, FORMAT, time=modified(path))]
    return [draft.finished(skips if place == 0 else Skips()) for place, draft in enumerate(drafts)]


def _draft(path: Path, about: dict[str, Any]) -> TranscriptDraft:
    draft = TranscriptDraft(path.stem, FORMAT, time=moment(about.get("startTime")) or modified(path))
    for element in items(about.get("messages")):
        raw = members(element)
        time = moment(raw.get("timestamp"))
        match raw.get("type"):
            case "user":
                draft.add(time, Said(Message("user", tuple(_spoken(raw.get("content"))))))
            case "gemini":
                _answer(draft, time, raw)
            case "error":
                draft.add(time, Failed("provider", "\n".join(_texts(_spoken(raw.get("content"))))))
            case _:
                pass  # notes to the user
    return draft


def _answer(draft: TranscriptDraft, time: float | None, raw: dict[str, Any]) -> None:
    thoughts = [text(members(one).get("description")) for one in items(raw.get("thoughts"))]
    calls = [members(one) for one in items(raw.get("toolCalls"))]
    blocks: list[Block] = [Thinking("\n".join(thoughts))] if any(thoughts) else []
    blocks += _spoken(raw.get("content"))
    blocks += [call(text(one.get("id")), text(one.get("name")), one.get("args")) for one in calls]
    model = text(raw.get("model"))
    draft.speak(time, Message("assistant", tuple(blocks), model=model))
    tokens = members(raw.get("tokens"))
    if tokens:
        cached = min(count(tokens.get("cached")), count(tokens.get("input")))
        output = count(tokens.get("output")) + count(tokens.get("thoughts"))
        draft.add(time, Spent(model, Usage(count(tokens.get("input")) - cached, output, cached)))
    for one in calls:
        result = [members(members(part).get("functionResponse")) for part in items(one.get("result"))]
        output_text = [_output(members(part.get("response"))) for part in result]
        content = contents_of("\n".join(output_text) or text(one.get("resultDisplay")))
        failed = one.get("status") in ("error", "cancelled")
        draft.answer(moment(one.get("timestamp")) or time, ToolResult(text(one.get("id")), "", content, failed))


def _output(response: dict[str, Any]) -> str:
    return text(response.get("output")) or text(response.get("error"))


def _spoken(content: Any) -> list[Block]:
    """A string, or parts in the words of Google's API."""
    if isinstance(content, list):
        return [Text(text(members(part).get("text"))) for part in content if text(members(part).get("text"))]
    return blocks_of(content)


def _texts(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Text)]
