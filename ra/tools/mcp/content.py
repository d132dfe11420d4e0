"""Translates an MCP server's answer for the model: text, images and PDFs within limits, a note for anything else."""

import base64
import binascii
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ra.core.messages import Content, Document, Image, Text
from ra.system import images
from ra.system.files import IMAGE_TYPES, PDF, media_type
from ra.system.process import Ends

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents

MAX_BLOCKS = 200
MAX_IMAGE_TYPES = 20
MAX_BINARY_BYTES = 8_000_000
MAX_TEXT = 1_000_000  # characters


def of_call(result: "CallToolResult") -> tuple[Content, ...]:
    """The result's blocks; structured data without blocks becomes JSON."""
    blocks = [of_block(block) for block in result.content[:MAX_BLOCKS]]
    if not blocks and result.structured_content is not None:
        blocks = [Text(msgspec.json.encode(result.structured_content).decode())]
    if more := len(result.content) - MAX_BLOCKS:
        blocks += [Text(f"[{more} more blocks are left out]")] if more > 0 else []
    if not blocks:  # an API refuses an error without text
        blocks = [Text("[the server gave no reason]" if result.is_error else "[the server gave an empty result]")]
    return bounded(blocks)


def of_block(block: "ContentBlock") -> Content:
    match block.type:
        case "text":
            return Text(block.text)
        case "image":
            return _binary(block.data, block.mime_type, "an image")
        case "audio":
            return Text(f"[audio of type {block.mime_type}, which cannot be shown]")
        case "resource_link":
            return Text(f"[resource {block.name}: {block.uri}{f' ({block.description})' if block.description else ''}]")
        case "resource":
            return of_resource(block.resource)


def of_resource(resource: "TextResourceContents | BlobResourceContents") -> Content:
    text = getattr(resource, "text", None)  # the only difference between the two types
    if isinstance(text, str):
        return Text(text)
    return _binary(getattr(resource, "blob", ""), resource.mime_type or "", resource.uri)


def bounded(blocks: Iterable[Content]) -> tuple[Content, ...]:
    """The blocks in order, within limits: a megabyte of text with both ends kept, so many images, valid UTF-8."""
    shown: list[Content] = []
    images = 0
    for block in blocks:
        match block:
            case Text(text) if shown and isinstance(shown[-1], Text):
                shown[-1] = Text(f"{shown[-1].text}\n{text}")
            case Text(text):
                shown.append(block)
            case _ if images < MAX_IMAGE_TYPES:
                images += 1
                shown.append(block)
            case _:
                pass
    shown = [Text(_clean(block.text)) if isinstance(block, Text) else block for block in shown]
    size = sum(len(block.text) for block in shown if isinstance(block, Text))
    if size <= MAX_TEXT:
        return tuple(shown) or (Text(""),)
    ends = Ends()  # both ends of the joined text, then the other blocks
    for block in shown:
        if isinstance(block, Text):
            ends.add((b"\n" if ends.total else b"") + block.text.encode())
    return (Text(ends.text()), *(block for block in shown if not isinstance(block, Text)))


def _clean(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _binary(data: str, kind: str, what: str) -> Content:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{what}: its data is damaged]")
    if len(raw) > MAX_BINARY_BYTES:
        return Text(f"[{what}: {len(raw):,} bytes are more than {MAX_BINARY_BYTES:,}; left out]")
    if kind in IMAGE_TYPES:
        try:
            raw, kind = images.fit_image(raw)
        except images.UnfitImage as error:
            return Text(f"[{what} {error}; left out]")
        return Image(kind, raw)
    if kind == PDF and media_type(raw) == PDF:
        return Document(kind, raw, what)
    if kind.startswith("text/") or kind == "application/json":
        return Text(raw.decode("utf-8", "replace"))
    return Text(f"[{what}: {len(raw):,} bytes of type {kind or 'unknown'}, which cannot be shown]")
