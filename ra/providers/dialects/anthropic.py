"""The dialect of Anthropic's Messages API."""

import re
from collections.abc import Iterator

from ra.core.events import CallDelta, Delta, TextDelta, ThinkingDelta
from ra.core.messages import Block, Content, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import ModelInfo, Reply, Request, Stop, Usage
from ra.core.value import JsonObject
from ra.providers.dialects import blocks
from ra.providers.dialects.draft import Draft
from ra.providers.dialects.fields import child, children, counts, dumped, number, text
from ra.providers.errors import failure
from ra.providers.settings import ProviderName

name: ProviderName = "anthropic"

MOST_MARKS = 4
THOUGHTS = ("thinking", "redacted_thinking")
UNSHOWN = "thinking"
"""The id of a thinking block that came without its text. Redacted blocks, a separate type, do not have it."""

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}

_ID = re.compile(r"[^a-zA-Z0-9_-]")


def path(request: Request) -> str:
    return "/v1/messages"


def headers(api_key: str) -> dict[str, str]:
    key = {"x-api-key": api_key} if api_key else {}
    return {"anthropic-version": "2023-06-01", **key}


def body(request: Request, info: ModelInfo) -> JsonObject:
    turns, places = blocks.turns(request, lambda message: _message_blocks(message, request), is_result=_is_result)
    messages = [{"role": role, "content": content} for role, content in turns]
    system: list[JsonObject] = []
    for i, section in blocks.system_sections(request):
        system.append({"type": "text", "text": section.content})
        places["section", i] = system[-1:]
    tools: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
        for tool in sorted(request.tools, key=lambda tool: tool.name)
    ]
    _mark(request, tools, places)
    limit, budget = blocks.room(request, info)
    payload: JsonObject = {"model": request.model, "max_tokens": limit, "stream": True}
    if system:
        payload["system"] = system
    if tools:
        payload["tools"] = tools
    payload["messages"] = messages
    if budget and info.thinking == "adaptive":
        payload["thinking"] = {"type": "adaptive", "display": "summarized"}
        payload["output_config"] = {"effort": request.effort.level}
    elif budget and not _thoughtless_loop(messages):
        payload["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif budget:
        payload["max_tokens"] = request.max_output
    if request.answer_schema:
        form = {"type": "json_schema", "schema": request.answer_schema}
        payload["output_config"] = payload.get("output_config", {}) | {"format": form}
    return payload


def reader(model: str) -> "AnthropicReader":
    return AnthropicReader(model)


def _is_result(block: JsonObject) -> bool:
    return bool(block["type"] == "tool_result")


def _message_blocks(message: Message, request: Request) -> list[JsonObject]:
    content = [block for block in map(_block, _content(message, request)) if block is not None]
    while content and content[-1]["type"] in THOUGHTS:  # the API refuses an answer that ends in thinking
        content.pop()
    return content


def _content(message: Message, request: Request) -> tuple[Block, ...]:
    if message.role == "system":
        return (Text(blocks.labelled(message)),) if message.text.strip() else ()
    return blocks.replayed(message, request)


def _block(block: Block) -> JsonObject | None:
    match block:
        case Text() | Image() | Document():
            return _plain(block)
        case Thinking(signature=""):
            return None  # from another provider, or cut off: the API refuses it without its signature
        case Thinking(text="") if block.id != UNSHOWN:
            return {"type": "redacted_thinking", "data": block.signature}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case ToolCall():
            return {"type": "tool_use", "id": _id(block.id), "name": block.name, "input": blocks.call_args(block)}
        case ToolResult():
            content = [result for part in block.content if (result := _plain(part)) is not None]
            result = {"type": "tool_result", "tool_use_id": _id(block.call_id), "content": content}
            return result | {"is_error": True} if block.is_error else result


def _plain(block: Content) -> JsonObject | None:
    match blocks.as_text(block):
        case Text(text=words):
            return {"type": "text", "text": words} if words.strip() else None  # the API refuses blank text
        case Image() as image:
            return {"type": "image", "source": _source(image)}
        case Document(media_type=kind) as document if kind != "application/pdf":
            return {"type": "text", "text": f"[{document.name or 'a file'}: {kind} cannot be read by this model]"}
        case Document() as document:
            title = {"title": document.name} if document.name else {}
            return {"type": "document", "source": _source(document)} | title


def _source(block: Image | Document) -> JsonObject:
    return {"type": "base64", "media_type": block.media_type, "data": blocks.base64_of(block)}


def _id(call_id: str) -> str:
    """The id without characters that this API refuses: other providers use them."""
    return _ID.sub("_", call_id) or "_"


def _mark(request: Request, tools: list[JsonObject], places: dict[blocks.Place, list[JsonObject]]) -> None:
    """Sets the cache marks. An index without a block that can carry a mark passes it to the block before."""
    marked: list[JsonObject] = [tools[-1]] if request.marks.tools and tools else []
    for kind, indexes in (("section", request.marks.sections), ("message", request.marks.messages)):
        for wanted in sorted(set(indexes)):
            before = [group for (group_kind, i), group in sorted(places.items()) if group_kind == kind and i <= wanted]
            carriers = [block for group in before for block in group if block["type"] not in THOUGHTS]
            marked += carriers[-1:]
    unique = list({id(block): block for block in marked}.values())
    for block in unique[-MOST_MARKS:]:  # the deepest ones: they cover the omitted ones
        block["cache_control"] = blocks.cache_control(request)


def _thoughtless_loop(messages: list[JsonObject]) -> bool:
    """Whether a tool loop's last turn has no thinking (another model began it): the API then refuses a budget."""
    if len(messages) < 2 or not any(block["type"] == "tool_result" for block in messages[-1]["content"]):
        return False
    return messages[-2]["content"][0]["type"] not in THOUGHTS


class AnthropicReader:
    def __init__(self, model: str) -> None:
        self._draft = Draft(model)
        self._at_once: set[int] = set()

    @property
    def usage(self) -> Usage:
        return self._draft.usage

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        match event.get("type"):
            case "message_start":
                self._count(counts(child(event, "message"), "usage"))
            case "content_block_start":
                yield from self._start(number(event, "index"), child(event, "content_block"))
            case "content_block_delta":
                yield from self._add(number(event, "index"), child(event, "delta"))
            case "content_block_stop":
                if piece := self._draft.pieces.get(number(event, "index")):
                    piece.whole = True
            case "message_delta":
                self._count(counts(event, "usage"))
                if reason := text(child(event, "delta"), "stop_reason"):
                    self._draft.stop = STOPS.get(reason, "end")
            case "message":  # an answer without streaming
                self._count(counts(event, "usage"))
                for index, block in enumerate(children(event, "content")):
                    yield from self._start(index, block)
                self._draft.close()
                self._draft.stop = STOPS.get(text(event, "stop_reason"), "end")
            case "message_stop":
                self._draft.stop = self._draft.stop or "end"
            case "error":
                raise failure(0, {}, event, provider=name)
            case _ if isinstance(event.get("error"), dict):
                raise failure(0, {}, event, provider=name)

    def finish(self) -> Reply:
        return self._draft.reply()

    def _start(self, index: int, block: JsonObject) -> Iterator[Delta]:
        match block.get("type"):
            case "text":
                yield from self._text(index, text(block, "text"))
            case "thinking":
                piece = self._draft.piece(index, "thinking")
                piece.id, piece.signature = UNSHOWN, text(block, "signature")
                yield from self._thinking(index, text(block, "thinking"))
            case "redacted_thinking":
                self._draft.piece(index, "thinking").signature = text(block, "data")
            case "tool_use":
                piece = self._draft.piece(index, "call")
                piece.id, piece.name = text(block, "id"), text(block, "name")
                if whole := child(block, "input"):  # some servers send all arguments at once
                    piece.parts.append(dumped(whole))
                    self._at_once.add(index)
                yield CallDelta(piece.name)

    def _add(self, index: int, delta: JsonObject) -> Iterator[Delta]:
        match delta.get("type"):
            case "text_delta":
                yield from self._text(index, text(delta, "text"))
            case "thinking_delta":
                yield from self._thinking(index, text(delta, "thinking"))
            case "signature_delta":
                self._draft.piece(index, "thinking").signature = text(delta, "signature")
            case "input_json_delta":
                if index in self._draft.pieces:  # otherwise it belongs to a block of an unknown type
                    self._arguments(index, text(delta, "partial_json"))

    def _text(self, index: int, words: str) -> Iterator[Delta]:
        self._draft.piece(index, "text").parts.append(words)
        if words:
            yield TextDelta(words)

    def _thinking(self, index: int, words: str) -> Iterator[Delta]:
        piece = self._draft.piece(index, "thinking")
        piece.parts.append(words)
        if words:
            piece.id = ""
            yield ThinkingDelta(words)

    def _arguments(self, index: int, words: str) -> None:
        piece = self._draft.piece(index, "call")
        if words and index in self._at_once:  # some servers send them at once and then in pieces: the pieces count
            self._at_once.discard(index)
            piece.parts.clear()
        piece.parts.append(words)

    def _count(self, counted: JsonObject) -> None:
        """Updates the usage. Counts are running totals: a later one replaces an earlier one, unless it is absent."""
        fields = {
            "input": "input_tokens",
            "output": "output_tokens",
            "cache_read": "cache_read_input_tokens",
            "cache_write": "cache_creation_input_tokens",
        }
        usage = self._draft.usage
        self._draft.usage = Usage(
            **{
                ours: number(counted, key) if counted.get(key) is not None else getattr(usage, ours)
                for ours, key in fields.items()
            }
        )
