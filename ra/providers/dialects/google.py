"""The dialect of Google's Gemini API, `streamGenerateContent`."""

import re
from collections.abc import Iterator
from typing import Literal

from ra.core.errors import BadStream
from ra.core.events import CallDelta, Delta, TextDelta, ThinkingDelta
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import ModelInfo, Reply, Request, Stop, Usage
from ra.core.value import JsonObject
from ra.providers.catalog import no_thinking
from ra.providers.dialects import blocks
from ra.providers.dialects.draft import OUR_ID, BlockDraft, Draft, new_id
from ra.providers.dialects.fields import child, children, counts, dumped, number, text
from ra.providers.errors import failure
from ra.providers.settings import ProviderName

name: ProviderName = "google"

REFUSALS = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "ESCALATION",
    "MODEL_ARMOR",
    "PUP_LIMITED_DISABLED",
}
MISTAKES = {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"}
STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
}
FOREIGN = "skip_thought_signature_validator"
"""Gemini 3 and later accept this instead of a signature on a call that another model made."""

_VERSION = re.compile(r"gemini-(\d+)")


def path(request: Request) -> str:
    return f"/v1beta/models/{request.model.removeprefix('models/')}:streamGenerateContent?alt=sse"


def headers(api_key: str) -> dict[str, str]:
    return {"x-goog-api-key": api_key} if api_key else {}


def body(request: Request, info: ModelInfo) -> JsonObject:
    turns, _ = blocks.turns(
        request, lambda message: _parts(message, request), is_result=lambda part: "functionResponse" in part
    )
    payload: JsonObject = {}
    if words := blocks.system_text(request):
        payload["systemInstruction"] = {"parts": [{"text": words}]}
    if request.tools:
        tools = sorted(request.tools, key=lambda tool: tool.name)
        payload["tools"] = [
            {"functionDeclarations": [_declaration(tool.name, tool.description, tool.schema) for tool in tools]}
        ]
    roles = {"user": "user", "assistant": "model"}
    payload["contents"] = [{"role": roles[speaker], "parts": parts} for speaker, parts in turns]
    limit, budget = blocks.room(request, info)
    payload["generationConfig"] = {"maxOutputTokens": limit}
    if budget:
        levels = {"thinkingLevel": request.effort.level.upper()}
        how = levels if info.thinking in ("effort", "adaptive") else {"thinkingBudget": budget}
        payload["generationConfig"]["thinkingConfig"] = {"includeThoughts": True} | how
    elif info.thinking != "none" and (least := no_thinking(request.model)):
        payload["generationConfig"]["thinkingConfig"] = (
            {"thinkingBudget": 0} if info.thinking == "budget" else {"thinkingLevel": least}
        )
    if request.answer_schema:
        form = {"responseMimeType": "application/json", "responseJsonSchema": request.answer_schema}
        payload["generationConfig"] |= form
    return payload


def reader(model: str) -> "GoogleReader":
    return GoogleReader(model)


def _declaration(called: str, description: str, schema: JsonObject) -> JsonObject:
    """A tool. The schema is omitted if it has no parameters: Gemini refuses an empty one."""
    parameters = {"parametersJsonSchema": schema} if schema.get("properties") else {}
    return {"name": called, "description": description} | parameters


def _parts(message: Message, request: Request) -> list[JsonObject]:
    if message.role == "system":
        return [{"text": blocks.labelled(message)}] if message.text.strip() else []
    parts = [part for block in blocks.replayed(message, request) for part in _part(block)]
    version = _VERSION.search(request.model)
    if message.calls and version and int(version[1]) >= 3:
        first = next(part for part in parts if "functionCall" in part)
        first.setdefault("thoughtSignature", FOREIGN)
    return parts


def _part(block: Block) -> Iterator[JsonObject]:
    match block:
        case Text():
            if block.text or block.signature:  # an empty text may carry a signature, which goes back
                yield {"text": block.text} | _sealed(block.signature)
        case Thinking():
            if block.signature:
                yield {"text": block.text, "thought": True} | _sealed(block.signature)
        case ToolCall():
            call: JsonObject = {"name": block.name, "args": blocks.call_args(block)}
            yield {"functionCall": call | _known(block.id)} | _sealed(block.signature)
        case ToolResult():
            response = {"error" if block.is_error else "output": blocks.result_text(block)}
            yield {"functionResponse": {"name": block.name, "response": response} | _known(block.call_id)}
            for shown in blocks.attachments(block):
                yield from _part(shown)
        case Image() | Document():
            plain = blocks.as_text(block)
            if isinstance(plain, Text):
                yield {"text": plain.text}
            else:
                yield {"inlineData": {"mimeType": plain.media_type, "data": blocks.base64_of(plain)}}


def _sealed(signature: str) -> JsonObject:
    return {"thoughtSignature": signature} if signature else {}


def _known(call_id: str) -> JsonObject:
    return {} if call_id.startswith(OUR_ID) else {"id": call_id}


class GoogleReader:
    def __init__(self, model: str) -> None:
        self._draft = Draft(model)
        self._usage: JsonObject = {}
        self._mistake = ""

    @property
    def usage(self) -> Usage:
        return self._draft.usage

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        if event.get("error"):
            raise failure(0, {}, event, provider=name)
        self._count(counts(event, "usageMetadata"))
        if text(child(event, "promptFeedback"), "blockReason"):
            self._draft.stop = "refused"
        for candidate in children(event, "candidates"):
            if number(candidate, "index"):
                continue  # ra asks for one answer
            for part in children(child(candidate, "content"), "parts"):
                yield from self._add(part)
            if reason := text(candidate, "finishReason"):
                self._end(reason, text(candidate, "finishMessage"))

    def finish(self) -> Reply:
        if self._mistake:
            raise BadStream(self._mistake, partial=self._draft.message(cut=True), usage=self._draft.usage)
        return self._draft.reply()

    def _end(self, reason: str, said: str) -> None:
        if reason in MISTAKES:
            self._mistake = f"The model's answer ended with {reason}{': ' if said else ''}{said}"
        self._draft.stop = "refused" if reason in REFUSALS else STOPS.get(reason, "end")

    def _add(self, part: JsonObject) -> Iterator[Delta]:
        signature = text(part, "thoughtSignature")
        if part.get("functionCall") is not None:
            call = child(part, "functionCall")
            piece = self._open("call")
            piece.id, piece.name = text(call, "id") or new_id(), text(call, "name")
            piece.parts, piece.signature, piece.whole = [dumped(child(call, "args"))], signature, True
            yield CallDelta(piece.name)
        elif part.get("thought") is True:
            words = text(part, "text")
            self._continue("thinking", signature).parts.append(words)
            if words:
                yield ThinkingDelta(words)
        elif part.get("text") is not None:
            words = text(part, "text")
            if words or signature:
                self._continue("text", signature).parts.append(words)
            if words:
                yield TextDelta(words)

    def _continue(self, kind: Literal["text", "thinking"], signature: str) -> BlockDraft:
        """The last piece, or a new one if the kinds differ or either is signed: a signature covers only its part."""
        last = next(reversed(self._draft.pieces.values()), None)
        if last and last.kind == kind and not last.signature and not signature:
            return last
        piece = self._open(kind)
        piece.signature = signature
        return piece

    def _open(self, kind: Literal["text", "thinking", "call"]) -> BlockDraft:
        return self._draft.piece(len(self._draft.pieces), kind)

    def _count(self, counted: JsonObject) -> None:
        """Updates the running totals. The prompt's count includes cached tokens; thinking is counted separately."""
        self._usage |= {key: value for key, value in counted.items() if value is not None}
        prompt, read = number(self._usage, "promptTokenCount"), number(self._usage, "cachedContentTokenCount")
        answered = number(self._usage, "candidatesTokenCount") + number(self._usage, "thoughtsTokenCount")
        fresh = (prompt - read if prompt >= read else prompt) + number(self._usage, "toolUsePromptTokenCount")
        self._draft.usage = Usage(fresh, answered, read)
