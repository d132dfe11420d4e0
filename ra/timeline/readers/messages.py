"""How are plain lists of messages read, as the Chat Completions API takes them?

One conversation or many, in one JSON document or in lines: a list of messages, an object with `messages` or `traj`,
or a list of those.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ra.core.facts import Said, Spent
from ra.core.messages import Block, Message, Text, ToolResult
from ra.core.model import Section, Usage
from ra.timeline.readers.blocks import blocks_of, call, contents_of
from ra.timeline.readers.lines import Skips, elements, objects
from ra.timeline.readers.transcript import Draft, Transcript, count, items, members, modified, moment, price, text

FORMAT = "openai-messages"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_LISTS = ("messages", "traj", "conversation", "trajectory")


def recognises(entry: dict[str, Any]) -> bool:
    return _is_message(entry) or _conversation(entry) is not None


def read_document(path: Path) -> list[Transcript]:
    """A document of one piece, or, if that gives nothing, one of lines after all."""
    skips = Skips()
    found = _transcripts(path, elements(path, skips), skips, unit="element")
    return found if any(transcript.events for transcript in found) else read(path)


def read(path: Path) -> list[Transcript]:
    """A document of lines."""
    skips = Skips()
    return _transcripts(path, objects(path, skips), skips, unit="line")


def _transcripts(path: Path, found: Iterable[tuple[int, Any]], skips: Skips, *, unit: str) -> list[Transcript]:
    alone: list[Any] = []
    drafts: list[Draft] = []
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
    said = "content" in entry or "tool_calls" in entry or "function_call" in entry
    return entry.get("role") in _ROLES and said and "type" not in entry


def _conversation(entry: dict[str, Any]) -> list[Any] | None:
    lists = (entry.get(key) for key in _LISTS)
    return next((found for found in lists if isinstance(found, list)), None)


def _draft(name: str, about: dict[str, Any], talk: list[Any], time: float, skips: Skips) -> Draft:
    draft = Draft(name, FORMAT, time=time)
    model = text(about.get("model"))
    asked = ""  # the id of the last call, for results of the old kind, which have none
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
                asked = message.calls[-1].id if message.calls else asked
                if usage := members(raw.get("usage")):
                    draft.add(when, Spent(model, _usage(usage), price(usage.get("cost"))))
            case "tool" | "function":
                id = text(raw.get("tool_call_id")) or asked
                draft.answer(when, ToolResult(id, text(raw.get("name")), contents_of(raw.get("content"))))
            case role:
                skips.add(number, f"unknown role {role!r} in {name}", unit="message")
    return draft


def _input(draft: Draft, when: float | None, blocks: list[Block]) -> None:
    # In Anthropic's dialect the results of tools are blocks of the user's message.
    for block in blocks:
        if isinstance(block, ToolResult):
            draft.answer(when, block)
    said = tuple(block for block in blocks if not isinstance(block, ToolResult))
    if said or not blocks:
        draft.add(when, Said(Message("user", said)))


def _calls(raw: dict[str, Any], number: int) -> list[Block]:
    made = [
        (text(item.get("id")), members(item.get("function")) or item)
        for item in map(members, items(raw.get("tool_calls")))
    ]
    if legacy := members(raw.get("function_call")):
        made.append((f"call_{number}", legacy))
    return [
        call(id or f"call_{number}_{place}", text(about.get("name")), about.get("arguments"))
        for place, (id, about) in enumerate(made)
    ]


def _usage(raw: dict[str, Any]) -> Usage:
    """A bill as Chat Completions, Responses or Anthropic write it; only with the last does input exclude the cache."""
    whole = count(raw.get("prompt_tokens")) or count(raw.get("input_tokens"))
    output = count(raw.get("completion_tokens")) or count(raw.get("output_tokens"))
    if "cache_read_input_tokens" in raw or "cache_creation_input_tokens" in raw:
        read, written = count(raw.get("cache_read_input_tokens")), count(raw.get("cache_creation_input_tokens"))
        return Usage(whole, output, read, written)
    details = members(raw.get("prompt_tokens_details")) or members(raw.get("input_tokens_details"))
    cached = min(whole, count(details.get("cached_tokens")))
    written = min(whole - cached, count(details.get("cache_write_tokens")))
    return Usage(whole - cached - written, output, cached, written)


def _text_of(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))
