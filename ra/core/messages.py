"""What do a user, a model and a tool say to each other? Messages made of blocks."""

from typing import Literal

from ra.core.value import JsonObject, Value

Role = Literal["system", "user", "assistant", "tool"]


class Text(Value, frozen=True):
    text: str
    signature: str = ""  # Google signs text parts too and wants the signature back


class Image(Value, frozen=True):
    media_type: str
    data: bytes


class Document(Value, frozen=True):
    """A file that the provider reads itself, such as a PDF."""

    media_type: str
    data: bytes
    name: str = ""


class Thinking(Value, frozen=True):
    """Reasoning. `signature` is the provider's seal, replayed as it came; without `text` the block was redacted."""

    text: str
    signature: str = ""
    id: str = ""


class ToolCall(Value, frozen=True):
    id: str
    name: str
    args: JsonObject
    broken: str = ""  # the raw arguments, when they were no JSON object: such a call never runs
    signature: str = ""


Content = Text | Image | Document


class ToolResult(Value, frozen=True):
    call_id: str
    name: str
    content: tuple[Content, ...]
    is_error: bool = False


Block = Text | Image | Document | Thinking | ToolCall | ToolResult


class Message(Value, frozen=True):
    """One utterance. A `tool` message carries exactly one ToolResult.

    `name` labels context that is not conversation (a source's name); `model` is who spoke, for an assistant.
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str = ""
    model: str = ""

    @property
    def text(self) -> str:
        """What a person would read: the text blocks, joined."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


def say(role: Role, text: str, *, name: str = "") -> Message:
    return Message(role, (Text(text),), name=name)


def result(call: ToolCall, text: str, *, is_error: bool = False) -> Message:
    """The tool message that answers `call` with text."""
    return Message("tool", (ToolResult(call.id, call.name, (Text(text),), is_error),))
