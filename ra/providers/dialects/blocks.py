"""What all dialects do alike when a request becomes a body."""

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import Literal

from ra.core.messages import Block, Content, Document, Image, Message, Role, Text, Thinking, ToolCall, ToolResult
from ra.core.model import ModelInfo, Request, Section
from ra.core.text import quoted
from ra.core.value import JsonObject, encode

TEXTUAL = r"text/|application/(json|xml|yaml|toml|x-yaml|javascript)$|.*\+(json|xml)$"
MINIMUM_BUDGET = 1024  # the least that Anthropic accepts
FIRST = "(The conversation begins with the assistant.)"

_OPENAI = re.compile(r"([\w.-]+/)*(gpt-(?!oss)|o\d|chatgpt)")

Place = tuple[Literal["section", "message"], int]
Speaker = Literal["user", "assistant"]


def system_sections(request: Request) -> list[tuple[int, Section]]:
    """The sections of the system part with their indexes, in order, without empty ones."""
    return [(i, s) for i, s in enumerate(request.sections) if s.role == "system" and s.content.strip()]


def system_text(request: Request) -> str:
    return "\n\n".join(section.content for _, section in system_sections(request))


def conversation(request: Request) -> Iterator[tuple[Place, Message]]:
    """Sections that speak in another role, then the messages, each with where it came from (for cache marks)."""
    for i, section in enumerate(request.sections):
        if section.role != "system":
            role: Role = "assistant" if section.role == "assistant" else "user"
            yield ("section", i), Message(role, (Text(section.content),), name=section.name)
    for i, message in enumerate(request.messages):
        yield ("message", i), message


def turns(
    request: Request, make: Callable[[Message], list[JsonObject]], *, is_result: Callable[[JsonObject], bool]
) -> tuple[list[tuple[Speaker, list[JsonObject]]], dict[Place, list[JsonObject]]]:
    """The conversation as turns that alternate and begin with the user, each with its tool results in front.

    Also what each section or message became.
    """
    found: list[tuple[Speaker, list[JsonObject]]] = []
    places: dict[Place, list[JsonObject]] = {}
    for place, message in conversation(request):
        made = make(message)
        if not made:
            continue
        places[place] = made
        speaker: Speaker = "assistant" if message.role == "assistant" else "user"
        if not found and speaker == "assistant":
            found.append(("user", make(Message("user", (Text(FIRST),)))))
        if not found or found[-1][0] != speaker:
            found.append((speaker, []))
        content = found[-1][1]
        content.extend(made)
        content.sort(key=lambda block: not is_result(block))  # stable: results first, all else as it stood
    return found, places


def is_claude(model: str) -> bool:
    """Whether a gateway passes requests for this model on to Anthropic's API, or to a host of it."""
    return "claude" in model.lower()


def is_openai(model: str) -> bool:
    """Whether the model is one of OpenAI's own, also by a gateway's name: `openai/gpt-5`, `azure/gpt-5`."""
    return _OPENAI.match(model) is not None


def cache_control(request: Request) -> JsonObject:
    """A mark. Without a time it is the provider's five minutes."""
    return {"type": "ephemeral", "ttl": "1h"} if request.marks.long_lived else {"type": "ephemeral"}


def mark_parts(
    request: Request, carriers: dict[Place, list[JsonObject]], kinds: tuple[str, ...], most: int = 4
) -> None:
    """Cache marks as gateways take them for Claude: `cache_control` on the last text part of what is marked.

    The tools need none: they stand before the system part, whose mark covers them.
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
    """The blocks that may be said again: another model's thinking and seals mean nothing to this one."""
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
    """A system message as user text, for a place where the provider knows no system role."""
    return f'<context name="{quoted(message.name or "system")}">\n{_closed(message.text)}\n</context>'


def _closed(text: str) -> str:
    return text.replace("</context", "&lt;/context")


def call_args(call: ToolCall) -> JsonObject:
    """Arguments that a provider takes back. What was no JSON goes as a string, so that the model sees its mistake."""
    return {"invalid_json": call.broken} if call.broken else call.args


def call_json(call: ToolCall) -> str:
    return encode(call_args(call)).decode()


def result_text(result: ToolResult) -> str:
    return "\n".join(block.text for block in map(as_text, result.content) if isinstance(block, Text) and block.text)


def attachments(result: ToolResult) -> tuple[Content, ...]:
    """What of a result is no text."""
    return tuple(block for block in map(as_text, result.content) if not isinstance(block, Text))


def as_text(block: Content) -> Content:
    """A text file is text, whatever a provider can read itself."""
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
    """Output limit and thinking budget of this call: the limit exceeds the budget and stays within the model's."""
    if request.effort.level == "off" or info.thinking == "none":
        return request.max_output, 0
    budget = max(request.effort.budget, MINIMUM_BUDGET)
    limit = request.max_output if request.max_output > budget else budget + request.max_output
    if limit > max(info.max_output, request.max_output):
        limit = max(info.max_output, request.max_output, 2 * MINIMUM_BUDGET)
    return limit, max(MINIMUM_BUDGET, min(budget, limit - MINIMUM_BUDGET))
