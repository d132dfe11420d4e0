"""Translates the events of a run and the messages of a stored session into the Agent Client Protocol."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acp import helpers
from acp.schema import ToolCallLocation, ToolCallUpdate, ToolKind

from ra.core.events import Compacted, Event, Retrying, Rotated, TextDelta, ThinkingDelta, ToolEnded, ToolStarted, Warned
from ra.core.messages import Content, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.text import clean, one_line

KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("Read", "LS", "Recall", "Skill"), "read"),
    **dict.fromkeys(("Write", "Edit"), "edit"),
    **dict.fromkeys(("Glob", "Grep"), "search"),
    **dict.fromkeys(("Bash", "Job"), "execute"),
    **dict.fromkeys(("Agent", "Entry"), "think"),
    "WebFetch": "fetch",
}
MAX_RESULT = 20_000  # characters of a result that an editor receives


def of_event(event: Event, cwd: Path) -> Iterator[Any]:
    """The updates for an event. Events without an equivalent in the protocol are sent as thoughts."""
    match event:
        case TextDelta(text):
            yield helpers.update_agent_message_text(clean(text))
        case ThinkingDelta(text):
            yield helpers.update_agent_thought_text(clean(text))
        case ToolStarted(call):
            yield started(call, cwd, status="in_progress")
        case ToolEnded(call, result):
            yield ended(call, result, cwd)
        case Warned(text):
            yield helpers.update_agent_thought_text(f"ra: {clean(text)}\n")
        case Retrying(reason, wait_s):
            yield helpers.update_agent_thought_text(f"ra: {clean(reason)} Trying again in {wait_s:.0f} s.\n")
        case Compacted(fact):
            words = f"ra: {fact.summary_line}\n"
            yield helpers.update_agent_thought_text(words)
        case Rotated(fact):
            yield helpers.update_agent_thought_text(f"ra: a new segment ({fact.reason})\n")
        case _:
            pass


def of_message(message: Message, cwd: Path) -> Iterator[Any]:
    """The updates for a stored message, when a session is loaded."""
    if message.name:
        return  # context, which nobody typed
    for block in message.blocks:
        match block:
            case Text(text) if message.role == "user" and text:
                yield helpers.update_user_message_text(clean(text))
            case Text(text) if message.role == "assistant" and text:
                yield helpers.update_agent_message_text(clean(text))
            case Thinking(text) if text:
                yield helpers.update_agent_thought_text(clean(text))
            case ToolCall():
                yield started(block, cwd, status="in_progress")
            case ToolResult():
                yield ended(ToolCall(block.call_id, block.name, {}), block, cwd)
            case _:
                pass


def started(call: ToolCall, cwd: Path, *, status: Any) -> Any:
    return helpers.start_tool_call(
        call.id,
        title(call),
        kind=KINDS.get(call.name, "other"),
        status=status,
        content=differences(call, cwd) or None,
        locations=_locations(call, cwd),
        raw_input=call.args,
    )


def ended(call: ToolCall, result: ToolResult, cwd: Path) -> Any:
    content = [] if call.name in ("Edit", "Write") and not result.is_error else list(_shown(result.content))
    return helpers.update_tool_call(
        call.id,
        status="failed" if result.is_error else "completed",
        content=[*differences(call, cwd), *content] or None,
    )


def asked(call: ToolCall, reason: str, cwd: Path) -> ToolCallUpdate:
    """The call for which permission is requested."""
    words = helpers.tool_content(helpers.text_block(reason))
    return ToolCallUpdate(
        tool_call_id=call.id,
        title=title(call),
        kind=KINDS.get(call.name, "other"),
        status="pending",
        content=[*differences(call, cwd), words],
        locations=_locations(call, cwd),
        raw_input=call.args,
    )


def title(call: ToolCall) -> str:
    subject = next(
        (call.args[name] for name in ("command", "path", "pattern", "url", "query") if name in call.args), ""
    )
    return one_line(clean(f"{call.name} {subject}"), 120)


def differences(call: ToolCall, cwd: Path) -> list[Any]:
    """The change that a call makes to a file, in the protocol's form."""
    path = call.args.get("path")
    if call.name not in ("Edit", "Write") or not isinstance(path, str):
        return []
    full = os.path.join(cwd, path)  # noqa: PTH118 - a path as the model wrote it
    if call.name == "Write":
        content = call.args.get("content")
        return [helpers.tool_diff_content(full, clean(content))] if isinstance(content, str) else []
    edits = call.args.get("edits") or [call.args]
    pairs = [(edit.get("old_string"), edit.get("new_string")) for edit in edits if isinstance(edit, dict)]
    return [
        helpers.tool_diff_content(full, clean(new), clean(old))
        for old, new in pairs
        if isinstance(old, str) and isinstance(new, str)
    ]


def _locations(call: ToolCall, cwd: Path) -> list[ToolCallLocation] | None:
    path = call.args.get("path")
    if not isinstance(path, str):
        return None
    return [ToolCallLocation(path=os.path.join(cwd, clean(path)))]  # noqa: PTH118 - a path as the model wrote it


def _shown(content: tuple[Content, ...]) -> Iterator[Any]:
    for block in content:
        if isinstance(block, Text):
            text = block.text if len(block.text) <= MAX_RESULT else block.text[:MAX_RESULT] + "\n[…]"
            yield helpers.tool_content(helpers.text_block(clean(text)))
        elif isinstance(block, Image):
            import base64

            encoded = base64.b64encode(block.data).decode()
            yield helpers.tool_content(helpers.image_block(encoded, block.media_type))
