"""Shares what all dialects do alike to turn a request into a body."""

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import Literal

from ra.core.messages import Block, Content, Document, Image, Message, Role, Text, Thinking, ToolCall, ToolResult
from ra.core.model import ModelInfo, Request, Section
from ra.core.text import quoted
from ra.core.value import JsonObject, encode

TEXTUAL = r"text/|application/(json|xml|yaml|toml|x-yaml|javascript)$|.*\+(json|xml)$"
MINIMUM_BUDGET = 1024  # the smallest that Anthropic accepts
FIRST = "(The conversation begins with the assistant.)"

_OPENAI = re.compile(r"([\w.-]+/)*(ft:)?(gpt-(?!oss)|o\d|chatgpt|codex-)", re.I)

Place = tuple[Literal["section", "message"], int]
Speaker = Literal["user", "assistant"]


def system_sections(request: Request) -> list[tuple[int, Section]]:
    """The non-empty sections of the system part, in order, with their indexes."""
    return [(i, s) for i, s in enumerate(request.sections) if s.role == "system" and s.content.strip()]


def system_text(request: Request) -> str:
    return "\n\n".join(section.content for _, section in system_sections(request))


def conversation(request: Request) -> Iterator[tuple[Place, Message]]:
    """The sections with another role, then the messages, each with its origin (for cache marks)."""
    for i, section in enumerate(request.sections):
        if section.role != "system":
            role: Role = "assistant" if section.role == "assistant" else "user"
            yield ("section", i), Message(role, (Text(section.content),), name=section.name)
    for i, message in enumerate(request.messages):
        yield ("message", i), message


def turns(
    request: Request, make: Callable[[Message], list[JsonObject]], *, is_result: Callable[[JsonObject], bool]
) -> tuple[list[tuple[Speaker, list[JsonObject]]], dict[Place, list[JsonObject]]]:
    """The conversation as alternating turns that begin with the user, with the tool results first in each.

    Also returns the blocks of each section or message.
    """
    alternating: list[tuple[Speaker, list[JsonObject]]] = []
    places: dict[Place, list[JsonObject]] = {}
    for place, message in conversation(request):
        message_blocks = make(message)
        if not message_blocks:
            continue
        places[place] = message_blocks
        speaker: Speaker = "assistant" if message.role == "assistant" else "user"
        if not alternating and speaker == "assistant":
            alternating.append(("user", make(Message("user", (Text(FIRST),)))))
        if not alternating or alternating[-1][0] != speaker:
            alternating.append((speaker, []))
        content = alternating[-1][1]
        content.extend(message_blocks)
        content.sort(key=lambda block: not is_result(block))  # stable: results first, the rest in its order
    return alternating, places


def is_claude(model: str) -> bool:
    """Whether a gateway forwards requests for this model to Anthropic's API, or to another host of Claude."""
    return "claude" in model.lower()


def is_openai(model: str) -> bool:
    """Whether the model is one of OpenAI's own, also under a gateway's name: `openai/gpt-5`, `azure/gpt-5`."""
    return _OPENAI.match(model) is not None


def cache_control(request: Request) -> JsonObject:
    """A cache mark. Without a `ttl`, it lasts the provider's five minutes."""
    return {"type": "ephemeral", "ttl": "1h"} if request.marks.long_lived else {"type": "ephemeral"}


def mark_parts(
    request: Request, carriers: dict[Place, list[JsonObject]], kinds: tuple[str, ...], most: int = 4
) -> None:
    """Sets cache marks in the form that gateways accept for Claude: `cache_control` on the last text part.

    The tools need no mark: they precede the system part, whose mark covers them.
    """
    marked: dict[int, JsonObject] = {}
    for kind, indexes in (("section", request.marks.sections), ("message", request.marks.messages)):
        for wanted in sorted(set(indexes)):
            before = [parts for (of, i), parts in sorted(carriers.items()) if of == kind and i <= wanted]
            texts = [part for parts in before for part in parts if part.get("type") in kinds and part.get("text")]
            if texts:
                marked[id(texts[-1])] = texts[-1]
    for part in list(marked.values())[-most:]:
        part["cache_control"] = cache_control(request)


def replayed(message: Message, request: Request) -> tuple[Block, ...]:
    """The blocks to send back: without thinking and signatures of another model, which mean nothing to this one."""
    if message.role != "assistant" or message.model == request.model:
        return message.blocks
    return tuple(_unsealed(block) for block in message.blocks if not isinstance(block, Thinking))


def _unsealed(block: Block) -> Block:
    match block:
        case Text():
            return Text(block.text)
        case ToolCall():
            return ToolCall(block.id, block.name, block.args, block.broken)
        case _:
            return block


def labelled(message: Message) -> str:
    """A system message as user text, for positions without a system role."""
    return f'<context name="{quoted(message.name or "system")}">\n{_closed(message.text)}\n</context>'


def _closed(text: str) -> str:
    return text.replace("</context", "&lt;/context")


def call_args(call: ToolCall) -> JsonObject:
    """Arguments to send back. Invalid JSON goes as a string, so that the model sees its mistake."""
    return {"invalid_json": call.broken} if call.broken else call.args


def call_json(call: ToolCall) -> str:
    return encode(call_args(call)).decode()


def result_text(result: ToolResult) -> str:
    return "\n".join(block.text for block in map(as_text, result.content) if isinstance(block, Text) and block.text)


def attachments(result: ToolResult) -> tuple[Content, ...]:
    """The blocks of a result that are not text."""
    return tuple(block for block in map(as_text, result.content) if not isinstance(block, Text))


def as_text(block: Content) -> Content:
    """A block with text files turned into text, whatever the provider could read itself."""
    if isinstance(block, Document) and re.match(TEXTUAL, block.media_type):
        return Text(f'<document name="{quoted(block.name)}">\n{block.data.decode("utf-8", "replace")}\n</document>')
    return block


def data_url(block: Image | Document) -> str:
    return f"data:{block.media_type};base64,{base64_of(block)}"


def base64_of(block: Image | Document) -> str:
    return b2a_base64(block.data, newline=False).decode()


def file_name(block: Document) -> str:
    return block.name or "document.pdf"


def room(request: Request, info: ModelInfo) -> tuple[int, int]:
    """The output limit and thinking budget of a call: the limit exceeds the budget, within the model's maximum."""
    if request.effort.level == "off" or info.thinking == "none":
        return request.max_output, 0
    budget = max(request.effort.budget, MINIMUM_BUDGET)
    limit = request.max_output if request.max_output > budget else budget + request.max_output
    if limit > max(info.max_output, request.max_output):
        limit = max(info.max_output, request.max_output, 2 * MINIMUM_BUDGET)
    return limit, max(MINIMUM_BUDGET, min(budget, limit - MINIMUM_BUDGET))
