"""Messages between user, model and tools, and the blocks they consist of."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ra.core.text import clean
from ra.core.value import JsonObject, Value

Role = Literal["system", "user", "assistant", "tool"]


class Text(Value, frozen=True):
    text: str
    signature: str = ""  # Google signs text parts too, and requires the signature when they are replayed


class Image(Value, frozen=True):
    media_type: str
    data: bytes


class Document(Value, frozen=True):
    """A file that the provider reads itself, such as a PDF."""

    media_type: str
    data: bytes
    name: str = ""


class Thinking(Value, frozen=True):
    """Reasoning. `signature` is the provider's, replayed unchanged. A block without `text` was redacted."""

    text: str
    signature: str = ""
    id: str = ""


class ToolCall(Value, frozen=True):
    id: str
    name: str
    args: JsonObject
    broken: str = ""  # the raw arguments when they are not a JSON object: such a call never runs
    signature: str = ""


Content = Text | Image | Document


class ToolResult(Value, frozen=True):
    call_id: str
    name: str
    content: tuple[Content, ...]
    is_error: bool = False


Block = Text | Image | Document | Thinking | ToolCall | ToolResult


class Message(Value, frozen=True):
    """One message of a conversation. A `tool` message has exactly one ToolResult.

    `name` labels context that is not conversation (a source's name); `model` is the author of an assistant message.
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str = ""
    model: str = ""

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([block for block in self.blocks if isinstance(block, ToolCall)])


def say(role: Role, text: str, *, name: str = "") -> Message:
    return Message(role, (Text(text),), name=name)


def result(call: ToolCall, text: str, *, is_error: bool = False) -> Message:
    """The tool message that answers `call` with text."""
    return Message("tool", (ToolResult(call.id, call.name, (Text(text),), is_error),))


def tool_output(text: str, name: str) -> Message:
    """Output of a tool without a call, as labelled text: no provider accepts a result that answers no call."""
    return say("user", f"[Output of the tool {name}]\n{text}", name=f"tool:{name}")


def plain_message(value: object) -> Message:
    """A checked message, from a Message, its JSON, or an object with `role` and `content`.

    `content` is text, or a list of texts and blocks. Raises TypeError for what cannot be stored and sent.
    """
    if isinstance(value, Message):
        message = value
    else:
        fields: Mapping[str, Any] = (
            value
            if isinstance(value, Mapping)
            else {key: getattr(value, key, None) for key in ("role", "content", "tool_call_id", "name")}
        )
        if not fields.get("role"):
            raise TypeError(f"a message is a Message or {{'role': …, 'content': …}}, not {type(value).__name__}")
        if "blocks" not in fields and fields.get("role") == "tool":
            return _tool_message(fields)
        message = (
            _converted(fields, Message)
            if "blocks" in fields
            else _converted({"role": fields["role"], "blocks": _blocks(fields.get("content"))}, Message)
        )
    try:
        # A round trip checks a message built by hand like one that was read: the timeline must be able to store it.
        return msgspec.json.decode(msgspec.json.encode(message), type=Message)
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError) as error:
        raise TypeError(f"not a message that can be stored: {error}") from error


def _tool_message(fields: Mapping[str, Any]) -> Message:
    call_id = fields.get("tool_call_id") or fields.get("toolCallId")
    name = str(fields.get("name") or "tool")
    content = tuple(block for block in _blocks(fields.get("content")) if isinstance(block, Content))
    if call_id:
        return Message("tool", (ToolResult(str(call_id), name, content),))
    return tool_output("\n".join(block.text for block in content if isinstance(block, Text)), name)


def _blocks(content: object) -> tuple[Block, ...]:
    match content:
        case str():
            return (Text(clean(content)),)
        case list() | tuple():
            return tuple(_block(part) for part in content)
        case _:
            raise TypeError(f"the content of a message is text or a list of blocks, not {type(content).__name__}")


def _block(part: object) -> Block:
    match part:
        case str():
            return Text(clean(part))
        case {"type": "text", "text": str(text)}:
            return Text(clean(text))
        case Mapping():
            block: Block = _converted(part, Block)
            return block
        case Text() | Image() | Document() | Thinking() | ToolCall() | ToolResult():
            return part
        case _:
            raise TypeError(f"a block of a message is text or a block, not {type(part).__name__}")


def _converted(value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise TypeError(str(error)) from error
