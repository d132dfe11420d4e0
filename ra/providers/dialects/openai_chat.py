"""The dialect of Chat Completions: OpenAI's older API, Ollama, llama.cpp, vLLM, OpenRouter and others.

Servers differ, so this dialect sends only what all of them accept, and reads whatever any of them sends.
"""

from collections.abc import Iterator

import msgspec

from ra.core.events import CallDelta, Delta, TextDelta, ThinkingDelta
from ra.core.messages import Content, Document, Image, Message, Text, Thinking, ToolResult
from ra.core.model import ModelInfo, Reply, Request, Stop, Usage
from ra.core.value import JsonObject, encode
from ra.providers.catalog import no_thinking
from ra.providers.dialects import blocks
from ra.providers.dialects.draft import BlockDraft, Draft, new_id
from ra.providers.dialects.fields import child, children, counts, dumped, number, text
from ra.providers.errors import failure
from ra.providers.settings import ProviderName

name: ProviderName = "openai-chat"

STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
REASONING = ("reasoning_content", "reasoning")
"""Fields for the thinking: the first of DeepSeek, llama.cpp and vLLM, the second of OpenRouter, Groq and Ollama."""

DETAILS = "reasoning_details"
BLOCKS = "thinking_blocks"
"""Fields in which gateways send signed thinking, and expect it back: DETAILS of OpenRouter, BLOCKS of LiteLLM."""


def path(request: Request) -> str:
    return "/v1/chat/completions"


def headers(api_key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {api_key}"} if api_key else {}


def body(request: Request, info: ModelInfo) -> JsonObject:
    is_openai = blocks.is_openai(request.model)
    limit, _ = blocks.room(request, info)
    messages = _marked(request) if blocks.is_claude(request.model) else _messages(request, own=is_openai)
    payload: JsonObject = {"model": request.model, "messages": messages}
    if request.tools:
        payload["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    # OpenAI's newer models refuse the old name, and many other servers do not support the new one.
    payload["max_completion_tokens" if is_openai else "max_tokens"] = limit
    payload |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.effort.level != "off" and info.thinking != "none" and not _is_thoughtless(request.model, messages):
        payload["reasoning_effort"] = request.effort.level
    elif is_openai and info.thinking != "none" and (least := no_thinking(request.model)):
        payload["reasoning_effort"] = least
    if is_openai and request.cache_key:
        payload["prompt_cache_key"] = request.cache_key
    if request.answer_schema:
        form = {"name": "answer", "schema": request.answer_schema, "strict": True}
        payload["response_format"] = {"type": "json_schema", "json_schema": form}
    return payload


def reader(model: str) -> "ChatReader":
    return ChatReader(model)


def _messages(request: Request, *, own: bool) -> list[JsonObject]:
    messages: list[JsonObject] = []
    if words := blocks.system_text(request):
        messages.append({"role": "system", "content": words})
    attachments: list[JsonObject] = []  # images in tool results, which must follow after all results
    for _, message in blocks.conversation(request):
        if message.role != "tool":
            _say(messages, "user", attachments)
            attachments = []
        match message.role:
            case "tool":
                for result in (block for block in message.blocks if isinstance(block, ToolResult)):
                    messages.append(
                        {"role": "tool", "tool_call_id": result.call_id, "content": blocks.result_text(result)}
                    )
                    attachments += [_part(block) for block in blocks.attachments(result)]
            case "assistant":
                _answer(messages, message, request)
            case "system" if own and message.text.strip():
                messages.append({"role": "system", "content": message.text})
            case "system" if message.text.strip():  # many chat templates refuse a later system message
                _say(messages, "user", [{"type": "text", "text": blocks.labelled(message)}])
            case _:
                _say(messages, "user", [_part(block) for block in _contents(message)])
    _say(messages, "user", attachments)
    return messages


def _marked(request: Request) -> list[JsonObject]:
    """The messages for Claude behind a gateway: with lists of parts, which can carry cache marks."""
    messages: list[JsonObject] = []
    carriers: dict[blocks.Place, list[JsonObject]] = {}
    system: list[JsonObject] = []
    for i, section in blocks.system_sections(request):
        system.append({"type": "text", "text": section.content})
        carriers["section", i] = system[-1:]
    if system:
        messages.append({"role": "system", "content": system})
    shown: list[JsonObject] = []  # images in tool results, which must follow after all results
    for place, message in blocks.conversation(request):
        turns = _messages(Request(request.model, (), (message,)), own=False)
        for turn in turns:
            if isinstance(turn.get("content"), str):
                turn["content"] = [{"type": "text", "text": turn["content"]}]
        carriers[place] = [part for turn in turns for part in turn.get("content") or ()]
        if message.role == "tool":
            shown += [part for turn in turns if turn["role"] == "user" for part in turn["content"]]
            messages += [turn for turn in turns if turn["role"] == "tool"]
            continue
        for turn in [*_pictures(shown), *turns]:
            _join(messages, turn)
        shown = []
    for turn in _pictures(shown):
        _join(messages, turn)
    blocks.mark_parts(request, carriers, ("text",))
    return messages


def _is_thoughtless(model: str, messages: list[JsonObject]) -> bool:
    """Whether the gateway dropped the signed thinking of a tool loop: without it, Claude refuses to think again."""
    if not blocks.is_claude(model) or not messages or messages[-1]["role"] != "tool":
        return False
    answers = [message for message in messages if message["role"] == "assistant"]
    return bool(answers) and not (answers[-1].get(BLOCKS) or answers[-1].get(DETAILS))


def _pictures(parts: list[JsonObject]) -> list[JsonObject]:
    return [{"role": "user", "content": parts}] if parts else []


def _join(messages: list[JsonObject], turn: JsonObject) -> None:
    if messages and messages[-1]["role"] == turn["role"] == "user":
        messages[-1]["content"] = [*messages[-1]["content"], *turn["content"]]
    else:
        messages.append(turn)


def _contents(message: Message) -> list[Content]:
    plain = (blocks.as_text(block) for block in message.blocks if isinstance(block, (Text, Image, Document)))
    return [block for block in plain if not isinstance(block, Text) or block.text]


def _say(messages: list[JsonObject], role: str, parts: list[JsonObject]) -> None:
    """Adds parts, to the last message if it has the same role: many chat templates require alternating roles."""
    if not parts:
        return
    if messages and messages[-1]["role"] == role:
        before = messages.pop()["content"]
        parts = [*(before if isinstance(before, list) else [{"type": "text", "text": before}]), *parts]
    words = [part["text"] for part in parts if part["type"] == "text"]
    # A plain string if possible: not every server reads lists of parts.
    messages.append({"role": role, "content": "\n\n".join(words) if len(words) == len(parts) else parts})


def _answer(messages: list[JsonObject], message: Message, request: Request) -> None:
    words = "\n\n".join(block.text for block in message.blocks if isinstance(block, Text) and block.text)
    turn: JsonObject = {"role": "assistant", "content": words or None}
    for thought in (block for block in blocks.replayed(message, request) if isinstance(block, Thinking)):
        if thought.id in REASONING:
            turn[thought.id] = turn.get(thought.id, "") + thought.text
        elif thought.id in (DETAILS, BLOCKS):
            turn[thought.id] = msgspec.json.decode(thought.signature)
    if message.calls:
        turn["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": blocks.call_json(call)}}
            for call in message.calls
        ]
    if words or message.calls:
        messages.append(turn)


def _part(block: Content) -> JsonObject:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": blocks.data_url(block)}}
        case Document():
            return {"type": "file", "file": {"filename": blocks.file_name(block), "file_data": blocks.data_url(block)}}


class ChatReader:
    def __init__(self, model: str) -> None:
        self._draft = Draft(model)
        self._calls: list[tuple[object, BlockDraft]] = []
        self._details: dict[object, JsonObject] = {}
        self._thoughts: list[JsonObject] = []  # signed, from LiteLLM
        self._refused = False

    @property
    def usage(self) -> Usage:
        return self._draft.usage

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        if event.get("error"):
            raise failure(0, {}, event, provider=name)
        if event.get("usage") is not None:
            self._draft.usage = usage_of(counts(event, "usage"))
        for choice in children(event, "choices"):
            if number(choice, "index"):
                continue  # ra asks for one answer
            yield from self._add(child(choice, "delta") or child(choice, "message"))
            if reason := text(choice, "finish_reason"):
                self._draft.stop = "refused" if self._refused else STOPS.get(reason, "end")

    def finish(self) -> Reply:
        if self._details:
            thought = self._draft.piece("thinking", "thinking")
            thought.id, thought.signature = DETAILS, encode(list(self._details.values())).decode()
        elif any(block.get("signature") or block.get("data") for block in self._thoughts):
            thought = self._draft.piece("thinking", "thinking")
            thought.id, thought.signature = BLOCKS, encode(self._thoughts).decode()
        return self._draft.reply()

    def _add(self, delta: JsonObject) -> Iterator[Delta]:
        for key in REASONING:
            if words := text(delta, key):
                yield from self._think(words, key)
                break  # some servers send the same thinking under both names
        for detail in children(delta, DETAILS):
            self._detail(detail)
        for block in children(delta, BLOCKS):
            self._thought(block)
        if isinstance(delta.get("content"), list):
            yield from self._parts(children(delta, "content"))
        elif words := text(delta, "content"):
            yield from self._say(words)
        if words := text(delta, "refusal"):
            self._refused = True
            yield from self._say(words)
        for call in children(delta, "tool_calls"):
            yield from self._call(call)

    def _say(self, words: str) -> Iterator[Delta]:
        self._draft.piece("text", "text").parts.append(words)
        yield TextDelta(words)

    def _think(self, words: str, key: str) -> Iterator[Delta]:
        piece = self._draft.piece("thinking", "thinking")
        piece.id = key
        piece.parts.append(words)
        yield ThinkingDelta(words)

    def _parts(self, parts: list[JsonObject]) -> Iterator[Delta]:
        """Reads content parts, in which Mistral's reasoning models stream."""
        for part in parts:
            if words := text(part, "text"):
                yield from self._say(words)
            if isinstance(part.get("thinking"), list):
                for inner in children(part, "thinking"):
                    yield from self._think(text(inner, "text"), "")

    def _detail(self, detail: JsonObject) -> None:
        """Adds a piece of OpenRouter's encrypted reasoning: text fields are appended, others replaced."""
        detail_before = self._details.setdefault((text(detail, "type"), number(detail, "index")), {})
        for key, value in detail.items():
            if value is not None:
                grows = key in ("text", "summary", "data")
                detail_before[key] = text(detail_before, key) + text(detail, key) if grows else value

    def _thought(self, block: JsonObject) -> None:
        """Adds a piece of LiteLLM's signed thinking: the signature ends a block."""
        last = self._thoughts[-1] if self._thoughts else {}
        grows = last.get("type") == block.get("type") == "thinking" and not last.get("signature")
        if not grows:
            self._thoughts.append({key: value for key, value in block.items() if value is not None})
            return
        last["thinking"] = text(last, "thinking") + text(block, "thinking")
        if signature := text(block, "signature"):
            last["signature"] = signature

    def _call(self, fragment: JsonObject) -> Iterator[Delta]:
        function = child(fragment, "function")
        piece = self._open(fragment, text(function, "name"))
        if not piece.name and (called := text(function, "name")):
            piece.name = called
            yield CallDelta(called)
        arguments = function.get("arguments")
        piece.parts.append(dumped(arguments) if isinstance(arguments, dict) else text(function, "arguments"))

    def _open(self, fragment: JsonObject, called: str) -> BlockDraft:
        """The call that a fragment continues, or a new one. Some servers give every call the index 0, some none."""
        index, id = fragment.get("index"), text(fragment, "id")
        same_index = [piece for key, piece in self._calls if key == index] if index is not None else []
        candidate = same_index[-1] if same_index else self._calls[-1][1] if self._calls and index is None else None
        if candidate and not (id and candidate.id != id) and not (index is None and called and not id):
            return candidate
        self._draft.close()
        piece = self._draft.piece(("call", len(self._calls)), "call")
        piece.id = id or new_id()
        self._calls.append((index, piece))
        return piece


def usage_of(report: JsonObject) -> Usage:
    """The usage in disjoint counts: the prompt's count includes cached tokens, unless they exceed it."""
    details = child(report, "prompt_tokens_details")
    prompt, answered = number(report, "prompt_tokens"), number(report, "completion_tokens")
    read = number(details, "cached_tokens") or number(report, "prompt_cache_hit_tokens")
    read = read or number(report, "cached_tokens")
    read = read or number(report, "cache_read_input_tokens")  # Claude's field, behind LiteLLM
    cache_write = number(details, "cache_write_tokens") or number(details, "cache_creation_tokens")
    cache_write = cache_write or number(report, "cache_creation_input_tokens")
    reasoned = number(child(report, "completion_tokens_details"), "reasoning_tokens")
    if reasoned and number(report, "total_tokens") == prompt + answered + reasoned:
        answered += reasoned  # xAI counts them separately
    return Usage(prompt - read - cache_write if prompt >= read + cache_write else prompt, answered, read, cache_write)
