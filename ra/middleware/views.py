"""The parts of a run that a hook may change: copies that are edited in place or by assignment, then compared."""

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ra.core.messages import Content, Document, Image, Message, Text, ToolCall, ToolResult, plain_message
from ra.core.model import Effort, Reply, Request, Section, Stop, ToolSpec, Usage
from ra.core.text import clean
from ra.core.value import Value, encode


class Spending(Value, frozen=True):
    """The tokens and dollars that the run has used so far. `input_tokens` excludes cache reads and writes.

    `cost` is in dollars, None when a model's price is not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @classmethod
    def of(cls, usage: Usage, cost: float | None = None) -> "Spending":
        return cls(usage.input, usage.output, usage.cache_read, usage.cache_write, cost)


class Sealed:
    """A part of a ctx. Once sealed, only `changes` can be assigned: any other assignment would be lost silently."""

    changes: ClassVar[tuple[str, ...]] = ()
    state: ClassVar[tuple[str, ...]] = ()  # what the methods of the class assign
    _sealed = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._sealed and not name.startswith("_") and name not in (*self.changes, *self.state):
            raise AttributeError(f"{name!r} cannot be changed here; you can change {', '.join(self.changes)}")
        super().__setattr__(name, value)


class LoopView(Sealed):
    """The run so far, the same for every hook. `messages` may be changed or assigned; the rest is read-only."""

    changes = ("messages",)

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        iteration: int = 0,
        usage: Spending = Spending(),  # noqa: B008 - frozen
        session: str = "",
        model: str = "",
    ) -> None:
        self._before = messages
        self._messages: list[Message] | None = None
        self.iteration = iteration
        self.usage = usage
        self.session = session
        self.model = model
        self._sealed = True

    @property
    def cost(self) -> float | None:
        return self.usage.cost

    @property
    def messages(self) -> list[Message]:
        if self._messages is None:
            self._messages = list(self._before)
        return self._messages

    @messages.setter
    def messages(self, value: Iterable[Message | Mapping[str, Any]]) -> None:
        self._messages = as_messages(value)

    def settle(self) -> tuple[Message, ...] | None:
        """The changed conversation, checked; None when it is unchanged. Raises TypeError."""
        return None if self._messages is None else changed_messages(self._messages, self._before)

    def rebased(self, edited: tuple[Message, ...], now: Sequence[Message]) -> tuple[Message, ...]:
        """The edit combined with what was recorded while the hook ran, such as results of parallel calls."""
        return edited if now is self._before else merge_edit(edited, self._before, now)


class OutgoingRequest(Sealed):
    """The request of this call. `messages`, `sections`, `tools` and `max_output` may be changed or assigned."""

    changes = ("messages", "sections", "tools", "max_output")

    def __init__(self, request: Request) -> None:
        self._before = request
        self._messages = list(request.messages)
        self.sections: list[Section] = list(request.sections)
        self.tools: list[ToolSpec] = list(request.tools)
        self.max_output = request.max_output
        self._sealed = True

    @property
    def model(self) -> str:
        return self._before.model

    @property
    def effort(self) -> Effort:
        return self._before.effort

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, value: Iterable[Message | Mapping[str, Any]]) -> None:
        self._messages = as_messages(value)

    def settle(self) -> Request | None:
        before = self._before
        messages = changed_messages(self._messages, before.messages)
        parts = (tuple(self.sections), tuple(self.tools), self.max_output)
        if messages is None and parts == (before.sections, before.tools, before.max_output):
            return None
        request = msgspec.structs.replace(
            before,
            messages=before.messages if messages is None else messages,
            sections=convert(parts[0], tuple[Section, ...]),
            tools=convert(parts[1], tuple[ToolSpec, ...]),
            max_output=convert(self.max_output, int),
        )
        marks = msgspec.structs.replace(
            before.marks,
            tools=before.marks.tools and bool(request.tools),
            sections=tuple(i for i in before.marks.sections if i < len(request.sections)),
            messages=tuple(i for i in before.marks.messages if i < len(request.messages)),
        )
        return msgspec.structs.replace(request, marks=marks)


class OutgoingCall(msgspec.Struct):
    """The call that is about to run. `name` and `args` may be changed or assigned; the id stays the model's."""

    id: str
    name: str
    args: dict[str, Any]
    broken: str = ""

    @classmethod
    def of(cls, call: ToolCall) -> "OutgoingCall":
        return cls(call.id, call.name, copy.deepcopy(call.args), call.broken)

    def assign(self, value: "ToolCall | OutgoingCall | Mapping[str, Any]") -> None:
        """Takes the name and args of another call, or those that a mapping has. Raises TypeError."""
        if not isinstance(value, ToolCall | OutgoingCall | Mapping):
            raise TypeError(f"a tool call is {{name, args}}, not {type(value).__name__}")
        fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {"name": value.name, "args": value.args}
        if unknown := set(fields) - set(ToolCall.__struct_fields__) - {"type"}:
            raise TypeError(f"a tool call has name and args, not {sorted(unknown)[0]!r}")
        self.name = convert(fields.get("name", self.name), str)
        self.args = convert(fields.get("args", self.args), dict[str, Any])

    def applied_to(self, call: ToolCall) -> ToolCall:
        """The model's call with this name and these args. Raises TypeError."""
        name, args = convert(self.name, str), convert(self.args, dict[str, Any])
        return msgspec.structs.replace(call, name=name, args=args)


class IncomingResponse(Sealed):
    """The model's answer. Assign `message`, or `text`, which leaves tool calls and thinking unchanged."""

    changes = ("message", "text")

    def __init__(self, reply: Reply) -> None:
        self.before = reply
        self._message = reply.message
        self._sealed = True

    @property
    def usage(self) -> Usage:
        return self.before.usage

    @property
    def stop(self) -> Stop:
        return self.before.stop

    @property
    def message(self) -> Message:
        return self._message

    @message.setter
    def message(self, value: Message | Mapping[str, Any]) -> None:
        message = plain_message(value)
        if message.role != "assistant":
            raise TypeError(f"a response is an assistant message, not {message.role!r}")
        self._message = message

    @property
    def text(self) -> str:
        return self._message.text

    @text.setter
    def text(self, value: str) -> None:
        self._message = msgspec.structs.replace(self._message, blocks=with_text(self._message.blocks, value))


class Outcome(Sealed):
    """The result of a tool. `content` is its text; assign text, or blocks when there are images."""

    changes = ("content", "blocks", "is_error")

    def __init__(self, result: ToolResult) -> None:
        self.before = result
        self._blocks = result.content
        self.is_error = result.is_error
        self._sealed = True

    @property
    def content(self) -> str:
        return "\n".join(block.text for block in self._blocks if isinstance(block, Text))

    @content.setter
    def content(self, value: "str | Iterable[Content]") -> None:
        self._blocks = with_text(self._blocks, value) if isinstance(value, str) else as_blocks(value)

    @property
    def blocks(self) -> tuple[Content, ...]:
        return self._blocks

    @blocks.setter
    def blocks(self, value: Iterable[Content]) -> None:
        self._blocks = as_blocks(value)


def convert(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, from_attributes=False)
    except msgspec.ValidationError as error:
        raise TypeError(str(error)) from error


def as_messages(values: Iterable[Any]) -> list[Message]:
    if isinstance(values, str | Mapping):
        raise TypeError("messages is a list of messages")
    return [plain_message(value) for value in values]


def changed_messages(now: Sequence[Message], before: Sequence[Message]) -> tuple[Message, ...] | None:
    if len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True)):
        return None
    ids_before = {id(message) for message in before}
    checked = tuple(message if id(message) in ids_before else plain_message(message) for message in now)
    return None if checked == tuple(before) else checked


def merge_edit(edited: Sequence[Message], before: Sequence[Message], now: Sequence[Message]) -> tuple[Message, ...]:
    """The `edited` version of `before`, with the changes from `before` to `now`: additions keep their neighbours."""
    ours, old, theirs = _numbered(edited), _numbered(before), _numbered(now)
    result = [key for key in ours if key not in old or key in theirs]
    place = 0
    for key in theirs:
        if key not in old and key not in ours:
            result.insert(place, key)
        if key in result:
            place = result.index(key) + 1
    return tuple((ours | theirs)[key] for key in result)


def _numbered(messages: Sequence[Message]) -> dict[tuple[bytes, int], Message]:
    """Messages by content; equal messages are numbered in order."""
    counts: Counter[bytes] = Counter()
    numbered: dict[tuple[bytes, int], Message] = {}
    for message in messages:
        content = encode(message)
        counts[content] += 1
        numbered[content, counts[content]] = message
    return numbered


def as_blocks(values: Iterable[Content]) -> tuple[Content, ...]:
    blocks = tuple(values)
    for block in blocks:
        if not isinstance(block, Text | Image | Document):
            raise TypeError(f"content is text, or Text, Image and Document blocks, not {type(block).__name__}")
    return tuple(Text(clean(block.text)) if isinstance(block, Text) else block for block in blocks)


def with_text(blocks: Sequence[Any], text: str) -> tuple[Any, ...]:
    """The blocks with `text` in place of the first text block, and without the others."""
    if not isinstance(text, str):
        raise TypeError(f"text is a str, not {type(text).__name__}")
    first = next((i for i, block in enumerate(blocks) if isinstance(block, Text)), len(blocks))
    other_blocks = [block for block in blocks[first:] if not isinstance(block, Text)]
    return (*blocks[:first], Text(clean(text)), *other_blocks)


def request_fault(request: Request) -> str:
    """Why every provider would reject a request, such as a result without a call; "" when it is valid."""
    waiting: dict[str, str] = {}
    call_ids: set[str] = set()
    has_content = False
    for number, message in enumerate(request.messages, 1):
        results = [block for block in message.blocks if isinstance(block, ToolResult)]
        for result in results:
            if waiting.pop(result.call_id, None) is None:
                return f"the result of {result.name} ({result.call_id}) in message {number} answers no call before it"
        if waiting and not results:
            call_id, name = next(iter(waiting.items()))
            return f"the call of {name} ({call_id}) before message {number} has no result"
        if message.calls and message.role != "assistant":
            return f"message {number} is the {message.role}'s and holds a tool call"
        for call in message.calls:
            if call.id in call_ids:
                return f"the call of {call.name} ({call.id}) occurs in it twice"
            call_ids.add(call.id)
            waiting[call.id] = call.name
        filled = any(not isinstance(block, Text) or block.text.strip() for block in message.blocks)
        has_content = has_content or (message.role != "system" and filled)
    if waiting:
        call_id, name = next(iter(waiting.items()))
        return f"the call of {name} ({call_id}) has no result"
    if not has_content:
        return "it has no message with content"
    tool_names = [tool.name for tool in request.tools]
    if duplicate := next((name for name in tool_names if tool_names.count(name) > 1), ""):
        return f"the tool {duplicate} occurs in it twice"
    if request.max_output < 1:
        return f"max_output is {request.max_output}"
    return ""
