"""The dialect of OpenAI's Responses API. OpenAI stores nothing: ra sends encrypted reasoning back."""

from collections.abc import Iterator

from ra.core.events import CallDelta, Delta, TextDelta, ThinkingDelta
from ra.core.messages import Content, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.core.value import JsonObject
from ra.providers.catalog import no_thinking
from ra.providers.dialects import blocks
from ra.providers.dialects.draft import BlockDraft, Draft
from ra.providers.dialects.fields import child, children, counts, number, text
from ra.providers.errors import failure
from ra.providers.settings import ProviderName

name: ProviderName = "openai"

PHASES = ("commentary", "final_answer")
"""Labels that newer models give their messages and expect back; ra stores the label as the text's signature."""


def path(request: Request) -> str:
    return "/v1/responses"


def headers(api_key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {api_key}"} if api_key else {}


def body(request: Request, info: ModelInfo) -> JsonObject:
    limit, _ = blocks.room(request, info)
    payload: JsonObject = {"model": request.model, "store": False, "stream": True}
    claude, is_openai = blocks.is_claude(request.model), blocks.is_openai(request.model)
    if not claude and (words := blocks.system_text(request)):
        payload["instructions"] = words
    if request.tools:
        payload["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    payload["input"] = _marked(request) if claude else list(_input(request))
    payload["max_output_tokens"] = max(16, limit)  # the smallest that the API accepts
    if info.thinking != "none":
        payload["include"] = ["reasoning.encrypted_content"]
        if request.effort.level != "off" and not (claude and _is_thoughtless(payload["input"])):
            payload["reasoning"] = {"effort": request.effort.level, "summary": "auto"}
        elif is_openai and (least := no_thinking(request.model)):
            payload["reasoning"] = {"effort": least}
    if request.cache_key and (
        is_openai or info.window is None
    ):  # gateways refuse fields that other vendors do not support
        payload["prompt_cache_key"] = request.cache_key
    if request.answer_schema:
        form = {"type": "json_schema", "name": "answer", "schema": request.answer_schema, "strict": True}
        payload["text"] = {"format": form}
    return payload


def reader(model: str) -> "ResponsesReader":
    return ResponsesReader(model)


def _input(request: Request) -> Iterator[JsonObject]:
    for _, message in blocks.conversation(request):
        yield from _items(message, request)


def _marked(request: Request) -> list[JsonObject]:
    """The input for Claude behind a gateway: the system part as an item, and lists of parts, which can carry marks."""
    carriers: dict[blocks.Place, list[JsonObject]] = {}
    system: list[JsonObject] = []
    for i, section in blocks.system_sections(request):
        system.append({"type": "input_text", "text": section.content})
        carriers["section", i] = system[-1:]
    input_items: list[JsonObject] = [{"type": "message", "role": "system", "content": system}] if system else []
    for place, message in blocks.conversation(request):
        items = list(_items(message, request))
        for item in items:
            if item["type"] == "function_call_output" and isinstance(item["output"], str):
                item["output"] = [{"type": "input_text", "text": item["output"]}]
        carriers[place] = [part for item in items for part in item.get("content") or item.get("output") or ()]
        input_items += items
    blocks.mark_parts(request, carriers, ("input_text",))
    return input_items


def _is_thoughtless(items: list[JsonObject]) -> bool:
    """Whether the gateway dropped the thinking of a tool loop: without it, Claude refuses to think again."""
    if not items or items[-1]["type"] != "function_call_output":
        return False
    begun = max((place for place, item in enumerate(items) if item.get("role") == "user"), default=0)
    return not any(item["type"] == "reasoning" for item in items[begun:])


def _items(message: Message, request: Request) -> Iterator[JsonObject]:
    match message.role:
        case "system" if message.text.strip():
            yield {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": message.text}]}
        case "user":
            if parts := _parts(message.blocks):
                yield {"type": "message", "role": "user", "content": parts}
        case "assistant":
            yield from _answer(message, request)
        case "tool":
            for result in (block for block in message.blocks if isinstance(block, ToolResult)):
                has_attachments = bool(blocks.attachments(result))
                output = _parts(result.content) if has_attachments else blocks.result_text(result)
                yield {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _answer(message: Message, request: Request) -> Iterator[JsonObject]:
    waiting: list[JsonObject] = []  # the API refuses reasoning without an item after it
    for block in blocks.replayed(message, request):
        item = _item(block)
        if item is None:
            continue
        if item["type"] == "reasoning":
            waiting.append(item)
        else:
            yield from waiting
            waiting = []
            yield item


def _item(block: object) -> JsonObject | None:
    match block:
        case Text(text=words) if words:
            phase = {"phase": block.signature} if block.signature in PHASES else {}
            content = [{"type": "output_text", "text": words}]
            return {"type": "message", "role": "assistant", "content": content} | phase
        case Thinking() if block.signature and block.id:
            summary = [{"type": "summary_text", "text": block.text}] if block.text else []
            return {"type": "reasoning", "id": block.id, "summary": summary, "encrypted_content": block.signature}
        case ToolCall():
            call = {"call_id": block.id, "name": block.name, "arguments": blocks.call_json(block)}
            return {"type": "function_call"} | call
    return None


def _parts(content: tuple[object, ...]) -> list[JsonObject]:
    plain = (blocks.as_text(block) for block in content if isinstance(block, (Text, Image, Document)))
    return [_part(block) for block in plain if not isinstance(block, Text) or block.text]


def _part(block: Content) -> JsonObject:
    match block:
        case Text():
            return {"type": "input_text", "text": block.text}
        case Image():
            return {"type": "input_image", "image_url": blocks.data_url(block), "detail": "auto"}
        case Document():
            return {"type": "input_file", "filename": blocks.file_name(block), "file_data": blocks.data_url(block)}


class ResponsesReader:
    def __init__(self, model: str) -> None:
        self._draft = Draft(model)
        self._index: dict[str, int] = {}  # by item, for servers whose deltas name only the item
        self._refused = False

    @property
    def usage(self) -> Usage:
        return self._draft.usage

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        match event.get("type"):
            case "response.output_item.added":
                yield from self._begin(event)
            case "response.output_text.delta":
                yield from self._say(event)
            case "response.refusal.delta":
                self._refused = True
                yield from self._say(event)
            case "response.reasoning_summary_part.added" if number(event, "summary_index"):
                yield from self._think(event, "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield from self._think(event, text(event, "delta"))
            case "response.function_call_arguments.delta":
                self._draft.piece(self._key(event), "call").parts.append(text(event, "delta"))
            case "response.output_item.done":
                self._end(self._key(event), child(event, "item"))
            case "response.completed" | "response.incomplete":
                self._complete(child(event, "response"))
            case None if event.get("object") == "response":  # an answer without streaming
                if event.get("error"):
                    raise failure(0, {}, event, provider=name)
                self._complete(event)
                yield from self._draft.said()
            case "response.failed" | "error":
                raise failure(0, {}, event, provider=name)
            case _ if event.get("error"):
                raise failure(0, {}, event, provider=name)

    def finish(self) -> Reply:
        return self._draft.reply()

    def _key(self, event: JsonObject) -> int:
        if event.get("output_index") is not None:
            return number(event, "output_index")
        item = text(event, "item_id") or text(child(event, "item"), "id")
        return self._index.setdefault(item, len(self._index))

    def _begin(self, event: JsonObject) -> Iterator[Delta]:
        item = child(event, "item")
        key = self._key(event)
        if id := text(item, "id"):
            self._index[id] = key
        match item.get("type"):
            case "function_call":
                yield CallDelta(self._name(key, item).name)
            case "reasoning":
                self._draft.piece(key, "thinking").id = text(item, "id")

    def _name(self, key: int, item: JsonObject) -> BlockDraft:
        piece = self._draft.piece(key, "call")
        piece.id = text(item, "call_id") or text(item, "id")
        piece.name = text(item, "name")
        return piece

    def _say(self, event: JsonObject) -> Iterator[Delta]:
        words = text(event, "delta")
        self._draft.piece((self._key(event), number(event, "content_index")), "text").parts.append(words)
        if words:
            yield TextDelta(words)

    def _think(self, event: JsonObject, words: str) -> Iterator[Delta]:
        self._draft.piece(self._key(event), "thinking").parts.append(words)
        if words:
            yield ThinkingDelta(words)

    def _end(self, key: int, item: JsonObject) -> None:
        """Replaces the content of an item's deltas by the complete item."""
        match item.get("type"):
            case "function_call":
                piece = self._name(key, item)
                piece.parts = [text(item, "arguments")]
                piece.whole = text(item, "status") != "incomplete"
            case "reasoning":
                piece = self._draft.piece(key, "thinking")
                piece.id, piece.signature = text(item, "id"), text(item, "encrypted_content")
                texts = [text(part, "text") for part in children(item, "summary") or children(item, "content")]
                piece.parts = ["\n\n".join(texts)] if texts else piece.parts
            case "message":
                for i, part in enumerate(children(item, "content")):
                    self._refused = self._refused or part.get("type") == "refusal"
                    piece = self._draft.piece((key, i), "text")
                    piece.parts = [text(part, "text") or text(part, "refusal")]
                    piece.signature = phase if piece.parts[0] and (phase := text(item, "phase")) in PHASES else ""

    def _complete(self, response: JsonObject) -> None:
        usage = counts(response, "usage")
        details = child(usage, "input_tokens_details")
        read, cache_write = number(details, "cached_tokens"), number(details, "cache_write_tokens")
        total_input = number(usage, "input_tokens")
        fresh = total_input - read - cache_write if total_input >= read + cache_write else total_input
        self._draft.usage = Usage(fresh, number(usage, "output_tokens"), read, cache_write)
        if not self._draft.pieces:  # some servers send everything at the end
            for i, item in enumerate(children(response, "output")):
                self._end(i, item)
        reason = text(child(response, "incomplete_details"), "reason")
        if self._refused or reason == "content_filter":
            self._draft.stop = "refused"
        else:
            self._draft.stop = "length" if reason or text(response, "status") == "incomplete" else "end"
