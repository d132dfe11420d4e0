"""What does a model see of an MCP server's answer? Text, images and PDFs, within bounds; of anything else, a word."""

import base64
import binascii
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ra.core.messages import Content, Document, Image, Text
from ra.tools.output import Ends

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents

MAX_BLOCKS = 200
MAX_IMAGES = 20
MAX_BINARY_BYTES = 8_000_000
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def of_call(result: "CallToolResult") -> tuple[Content, ...]:
    """The blocks; what is only there as structured data, as JSON."""
    blocks = [of_block(block) for block in result.content[:MAX_BLOCKS]]
    if not blocks and result.structured_content is not None:
        blocks = [Text(msgspec.json.encode(result.structured_content).decode())]
    if more := len(result.content) - MAX_BLOCKS:
        blocks += [Text(f"[{more} more blocks are left out]")] if more > 0 else []
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
    text = getattr(resource, "text", None)  # the two differ in nothing but this
    if isinstance(text, str):
        return Text(text)
    return _binary(getattr(resource, "blob", ""), resource.mime_type or "", resource.uri)


def bounded(blocks: Iterable[Content]) -> tuple[Content, ...]:
    """Text together at most a megabyte, both ends kept; at most so many images; only what JSON can carry."""
    kept: list[Content] = []
    ends, images = Ends(), 0
    for block in blocks:
        if isinstance(block, Text):
            data = block.text.encode("utf-8", "replace")
            ends.add(data if not ends.total else b"\n" + data)
        elif images < MAX_IMAGES:
            images += 1
            kept.append(block)
    texts = (Text(ends.text()),) if ends.total or not kept else ()
    return (*texts, *kept)


def _binary(data: str, kind: str, what: str) -> Content:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{what}: its data is damaged]")
    if len(raw) > MAX_BINARY_BYTES:
        return Text(f"[{what}: {len(raw):,} bytes are more than {MAX_BINARY_BYTES:,}; left out]")
    if kind in IMAGES:
        return Image(kind, raw)
    if kind == "application/pdf":
        return Document(kind, raw, what)
    if kind.startswith("text/") or kind == "application/json":
        return Text(raw.decode("utf-8", "replace"))
    return Text(f"[{what}: {len(raw):,} bytes of type {kind or 'unknown'}, which cannot be shown]")
