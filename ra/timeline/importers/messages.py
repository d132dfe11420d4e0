"""Read plain lists of messages, as the Chat Completions API takes them.

One conversation or many, in one JSON document or in lines: a list of messages, an object with `messages` or `traj`,
or a list of those.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ra.core.facts import Said, Spent
from ra.core.messages import Block, Message, Text, ToolResult
from ra.core.model import Section, Usage
from ra.timeline.importers.blocks import blocks_of, call, contents_of
from ra.timeline.importers.lines import Skips, elements, objects
from ra.timeline.importers.transcript import (
    Transcript,
    TranscriptDraft,
    count,
    items,
    members,
    modified,
    moment,
    price,
    text,
)

FORMAT = "openai-messages"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_LISTS = ("messages", "history", "traj", "conversation", "trajectory")


def recognises(entry: dict[str, Any]) -> bool:
    return _is_message(entry) or _conversation(entry) is not None


def read_document(path: Path) -> list[Transcript]:
    """A document of one piece, or, if that gives nothing, one of lines after all."""
    skips = Skips()
    transcripts = _transcripts(path, elements(path, skips), skips, unit="element")
    return transcripts if any(transcript.events for transcript in transcripts) else read(path)


def read(path: Path) -> list[Transcript]:
    """A document of lines."""
    skips = Skips()
    return _transcripts(path, objects(path, skips), skips, unit="line")


def _transcripts(path: Path, found: Iterable[tuple[int, Any]], skips: Skips, *, unit: str) -> list[Transcript]:
    alone: list[Any] = []
    drafts: list[TranscriptDraft] = []
    for number, element in found:
        about = members(element)
        talk = element if isinstance(element, list) else _conversation(about)
        if _is_message(about):
            alone.append(element)  # a bare list of messages arrives as its elements
        elif talk is not None:
            name = next((str(about[key]) for key in ("id", "task_id", "name") if key in about), str(number))
            trial = f".{about['trial']}" if "trial" in about else ""
            drafts.append(_draft(f"{path.stem}#{name}{trial}", about, talk, modified(path), skips))
        else:
            skips.add(number, "neither a message nor a conversation", unit=unit)
    if alone or not drafts:
        drafts.insert(0, _draft(path.stem, {}, alone, modified(path), skips))
    if len(drafts) == 1:
        drafts[0].name = path.stem
    return [draft.finished(skips if place == 0 else Skips()) for place, draft in enumerate(drafts)]


def _is_message(entry: dict[str, Any]) -> bool:
    has_content = "content" in entry or "tool_calls" in entry or "function_call" in entry
    return entry.get("role") in _ROLES and has_content and "type" not in entry


def _conversation(entry: dict[str, Any]) -> list[Any] | None:
    lists = [entry[key] for key in _LISTS if isinstance(entry.get(key), list)]
    spoken = next((messages for messages in lists if any("role" in members(one) for one in messages)), None)
    if spoken is None and any("observation" in members(one) for one in items(entry.get("trajectory"))):
        return _steps(entry["trajectory"])
    return spoken if spoken is not None else next(iter(lists), None)


def _steps(trajectory: list[Any]) -> list[Any]:
    """The steps of SWE-agent where no history was written: what was answered, done and seen."""
    messages: list[Any] = []
    for number, step in enumerate(map(members, trajectory)):
        action = {"name": "bash", "arguments": {"command": text(step.get("action"))}}
        said = text(step.get("response")) or text(step.get("thought"))
        messages += [
            {"role": "assistant", "content": said, "tool_calls": [{"id": f"step_{number}", "function": action}]},
            {"role": "tool", "tool_call_id": f"step_{number}", "content": text(step.get("observation"))},
        ]
    return messages


def _draft(name: str, about: dict[str, Any], talk: list[Any], time: float, skips: Skips) -> TranscriptDraft:
    draft = TranscriptDraft(name, FORMAT, time=time)
    model = text(about.get("model"))
    last_call_id = ""  # the id of the last call, for results of the old kind, which have none
    for number, element in enumerate(talk, 1):
        raw = members(element)
        when = moment(raw.get("timestamp") or raw.get("created_at"))
        blocks = blocks_of(raw.get("content"))
        match raw.get("role"):
            case "system" | "developer" if not draft.events:
                section = Section("system", "pinned", _text_of(blocks))
                draft.sections = (*draft.sections, section)
            case "system" | "developer":
                draft.add(when, Said(Message("system", tuple(blocks))))
            case "user":
                _input(draft, when, blocks)
            case "assistant":
                blocks += _calls(raw, number)
                model = text(raw.get("model")) or model
                message = Message("assistant", tuple(blocks), model=model)
                draft.speak(when, message)
                last_call_id = message.calls[-1].id if message.calls else last_call_id
                if usage := members(raw.get("usage")):
                    draft.add(when, Spent(model, _usage(usage), price(usage.get("cost"))))
            case "tool" | "function":
                ids = items(raw.get("tool_call_ids"))  # SWE-agent
                id = text(raw.get("tool_call_id")) or (text(ids[0]) if ids else "") or last_call_id
                draft.answer(when, ToolResult(id, text(raw.get("name")), contents_of(raw.get("content"))))
            case role:
                skips.add(number, f"unknown role {role!r} in {name}", unit="message")
    return draft


def _input(draft: TranscriptDraft, when: float | None, blocks: list[Block]) -> None:
    # In Anthropic's dialect the results of tools are blocks of the user's message.
    for block in blocks:
        if isinstance(block, ToolResult):
            draft.answer(when, block)
    spoken = tuple(block for block in blocks if not isinstance(block, ToolResult))
    if spoken or not blocks:
        draft.add(when, Said(Message("user", spoken)))


def _calls(raw: dict[str, Any], number: int) -> list[Block]:
    calls = [
        (text(item.get("id")), members(item.get("function")) or item)
        for item in map(members, items(raw.get("tool_calls")))
    ]
    if legacy := members(raw.get("function_call")):
        calls.append((f"call_{number}", legacy))
    return [
        call(id or f"call_{number}_{place}", text(about.get("name")), about.get("arguments"))
        for place, (id, about) in enumerate(calls)
    ]


def _usage(raw: dict[str, Any]) -> Usage:
    """A bill as Chat Completions, Responses or Anthropic write it; only with the last does input exclude the cache."""
    total_input = count(raw.get("prompt_tokens")) or count(raw.get("input_tokens"))
    output = count(raw.get("completion_tokens")) or count(raw.get("output_tokens"))
    if "cache_read_input_tokens" in raw or "cache_creation_input_tokens" in raw:
        read, cache_write = count(raw.get("cache_read_input_tokens")), count(raw.get("cache_creation_input_tokens"))
        return Usage(total_input, output, read, cache_write)
    details = members(raw.get("prompt_tokens_details")) or members(raw.get("input_tokens_details"))
    cached = min(total_input, count(details.get("cached_tokens")))
    cache_write = min(total_input - cached, count(details.get("cache_write_tokens")))
    return Usage(total_input - cached - cache_write, output, cached, cache_write)


def _text_of(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))
