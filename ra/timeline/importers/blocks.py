"""Translate the blocks of other formats: one table for all of them, since their names do not clash."""

import base64
import binascii
from typing import Any

import msgspec

from ra.core.messages import Block, Content, Document, Image, Text, Thinking, ToolCall, ToolResult
from ra.core.value import JsonObject
from ra.timeline.importers.transcript import items, members, text


def blocks_of(content: Any) -> list[Block]:
    """The blocks of a message's content: a string, or a list of blocks in any of the known dialects."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    blocks = []
    for item in items(content):
        block = Text(item) if isinstance(item, str) else block_of(members(item))
        if block is not None:
            blocks.append(block)
    return blocks


def contents_of(content: Any) -> tuple[Content, ...]:
    """The same, where only content can stand: in a tool's result."""
    blocks = blocks_of(content)
    if not blocks and content not in (None, "", []):
        blocks = [Text(msgspec.json.encode(content).decode())]
    return tuple(block for block in blocks if isinstance(block, Text | Image | Document))


def block_of(raw: dict[str, Any]) -> Block | None:
    """One block; None when it says nothing that we know."""
    match raw.get("type"):
        case "text" | "input_text" | "output_text" | "summary_text" | "refusal":
            words = text(raw.get("text")) or text(raw.get("refusal"))
            return Text(words) if words else None
        case "thinking":
            signature = text(raw.get("signature")) or text(raw.get("thinkingSignature"))
            return Thinking(text(raw.get("thinking")), signature)
        case "redacted_thinking":
            return Thinking("", text(raw.get("data")))
        case "image":
            source = members(raw.get("source")) or raw
            media_type = text(source.get("media_type")) or text(source.get("mimeType"))
            return _image(media_type or "image/png", text(source.get("data")))
        case "image_url" | "input_image":
            return _linked_image(raw.get("image_url"))
        case "document":
            source = members(raw.get("source"))
            content = _decoded(text(source.get("data")))
            return Document(text(source.get("media_type")), content, text(raw.get("title"))) if content else None
        case "tool_use" | "toolCall":
            args = raw["arguments"] if "arguments" in raw else raw.get("input")
            return call(text(raw.get("id")), text(raw.get("name")), args)
        case "tool_result":
            return ToolResult(
                text(raw.get("tool_use_id")), "", contents_of(raw.get("content")), raw.get("is_error") is True
            )
        case _:
            return None


def call(id: str, name: str, args: Any) -> ToolCall:
    """A tool call whose arguments are an object, JSON text of one, or free text."""
    if isinstance(args, dict):
        return ToolCall(id, name, args)
    raw = args if isinstance(args, str) else ""
    try:
        return ToolCall(id, name, msgspec.json.decode(raw or "{}", type=JsonObject))
    except (msgspec.DecodeError, RecursionError):
        return ToolCall(id, name, {}, broken=raw)


def _linked_image(link: Any) -> Block | None:
    url = text(link) or text(members(link).get("url"))
    head, _, encoded = url.partition(";base64,")
    if encoded and head.startswith("data:"):
        return _image(head.removeprefix("data:"), encoded)
    return Text(f"[image: {url}]") if url else None


def _image(media_type: str, data: str) -> Image | None:
    decoded = _decoded(data)
    return Image(media_type, decoded) if decoded else None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):
        return b""
