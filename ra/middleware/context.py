"""The `ctx` that a hook receives: one class per kind of hook, the documented API of middleware.

The agent loop creates a ctx, fires the hook and reads `ctx.edits()`. A ctx holds copies and compares them, so that it
notices in-place changes as well as assignments.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, get_args

import msgspec

from ra.core.errors import UsageError
from ra.core.events import Delta
from ra.core.facts import Checkpointed
from ra.core.messages import Content, Message, ToolCall, ToolResult, plain_message
from ra.core.model import Reply, Request, Section, ToolSpec
from ra.core.settings import snake
from ra.core.value import JsonObject, Value
from ra.middleware.views import (
    IncomingResponse,
    LoopView,
    Outcome,
    OutgoingCall,
    OutgoingRequest,
    Sealed,
    Spending,
    convert,
)

Hook = Literal[
    "beforeLoopBegin",
    "onContextBuild",
    "beforeModelCall",
    "onStreamChunk",
    "afterModelResponse",
    "beforeToolExecution",
    "afterToolExecution",
    "afterLoopIteration",
    "afterLoopComplete",
    "beforeCompaction",
    "afterCompaction",
    "onError",
]
HOOKS: tuple[Hook, ...] = get_args(Hook)


class Edits(Value, frozen=True):
    """The changes that the hooks of one point made; None where they changed nothing."""

    messages: tuple[Message, ...] | None = None  # the conversation: record it as Edited
    message: Message | None = None  # beforeLoopBegin: the user's message
    sections: tuple[Section, ...] | None = None  # onContextBuild
    request: Request | None = None  # beforeModelCall
    response: Message | None = None  # afterModelResponse
    tool_call: ToolCall | None = None  # beforeToolExecution
    result: ToolResult | None = None  # afterToolExecution
    denied: str | None = None  # beforeToolExecution: the reason
    compact: bool = False  # compact before the next model call
    by: str = ""  # the hook files that ran, for Edited.by


class Context(Sealed):
    """The ctx that all hooks have in common. Subclasses add the values of one hook."""

    may_deny: ClassVar[bool] = False
    writable: ClassVar[dict[str, Any]] = {"loop.messages": list}  # what a script may change, and its type

    changes: ClassVar[tuple[str, ...]] = ("loop.messages",)
    state = ("stopped", "denied", "compacting", "hook", "file")

    def __init_subclass__(cls) -> None:
        cls.changes = tuple(cls.writable)

    def __init__(self, loop: LoopView) -> None:
        self.loop = loop
        self.stopped: str | None = None
        self.denied: str | None = None
        self.compacting = False
        self.hook: Hook | None = None  # the current hook, and the file that runs: set by the chain
        self.file = ""
        self.ran: list[str] = []

    def seal(self) -> None:
        """Called before a hook gets the ctx: from then on, only documented values can be assigned."""
        self._sealed = True

    def stop(self, reason: str = "") -> "_Awaitable":
        """Ends the run with exit 3, after the other hooks of this point. The first reason counts."""
        if self.stopped is None:
            self.stopped = f"{reason or 'no reason given'} ({self.file}, {self.hook})"
        return _Awaitable()

    def deny(self, reason: str = "") -> "_Awaitable":
        """Refuses the tool call: it does not run, and the model gets the reason. The first reason counts."""
        if not self.may_deny:
            raise TypeError("deny() belongs to beforeToolExecution; stop(reason) ends the run.")
        if self.denied is None:
            self.denied = reason or f"denied by {self.file}"
        return _Awaitable()

    def compact(self) -> "_Awaitable":
        """Compacts the conversation before the next model call, however full it is."""
        self.compacting = True
        return _Awaitable()

    def accepts(self, answer: object) -> bool:
        """Whether a hook function may return this value: a hook changes ctx, and returns nothing."""
        return answer is None or answer is self

    def edits(self) -> Edits:
        """All changes. Raises TypeError for a value of the wrong type."""
        return Edits(
            messages=self.loop.settle(),
            denied=self.denied,
            compact=self.compacting,
            by=", ".join(self.ran),
            **self._own_edits(),
        )

    def to_json(self) -> JsonObject:
        """The JSON that a script reads on stdin, with the Python names."""
        loop = self.loop
        return {
            "hook": self.hook,
            "loop": {
                "iteration": loop.iteration,
                "session": loop.session,
                "model": loop.model,
                "cost": loop.cost,
                "usage": {name: getattr(loop.usage, name) for name in Spending.__struct_fields__},
                "messages": loop.messages,
            },
            **self._own_json(),
        }

    def apply(self, change: Mapping[str, Any]) -> None:
        """Applies what a script wrote under `context`, in the shape of `to_json`. Raises TypeError."""
        as_sent = msgspec.json.decode(msgspec.json.encode(self.to_json()))
        for key, value in change.items():
            if key in self.writable or not isinstance(value, Mapping):
                self._assign(self, key, value, path=key, sent=as_sent)
                continue
            for name, part in value.items():
                self._assign(getattr(self, key, None), name, part, path=f"{key}.{name}", sent=as_sent.get(key, {}))

    def _assign(self, target: Any, name: str, value: Any, *, path: str, sent: Mapping[str, Any]) -> None:
        """Assigns a value of a script, which must be changeable; a value written back unchanged is ignored."""
        if name in sent and sent[name] == value:
            return
        if path not in self.writable:
            raise TypeError(f"{path!r} cannot be changed here; you can change {', '.join(self.writable)}")
        setattr(target, name, convert(value, self.writable[path]))

    def _own_edits(self) -> dict[str, Any]:
        return {}

    def _own_json(self) -> JsonObject:
        return {}


class LoopBegin(Context):
    """beforeLoopBegin: `message` is the user's message before it is recorded. It may be assigned."""

    writable = {**Context.writable, "message": str | dict}

    def __init__(self, loop: LoopView, message: Message) -> None:
        super().__init__(loop)
        self._before = message
        self._message = message

    @property
    def message(self) -> Message:
        return self._message

    @message.setter
    def message(self, value: Message | Mapping[str, Any] | str) -> None:
        self._message = plain_message({"role": "user", "content": value} if isinstance(value, str) else value)

    def _own_edits(self) -> dict[str, Any]:
        return {"message": None if self._message == self._before else self._message}

    def _own_json(self) -> JsonObject:
        return {"message": self._message}


class PromptParts(Protocol):
    """The parts of a prompt that a strategy file composes: slots, history, budget and the current input."""

    input: Message
    slots: Any
    history: Any
    budget: Any


class ContextBuild(Context):
    """onContextBuild: `sections` is the list of sections before the conversation; change or assign it.

    If a hook fills slots, they become the prompt: `slots.add(…)` with `history.recent(n)`, `input` and
    `budget.remaining_input_tokens`, as in a strategy file.
    """

    writable = {**Context.writable, "sections": list[Section], "slots": list}

    def __init__(self, loop: LoopView, sections: Sequence[Section] = (), *, parts: PromptParts | None = None) -> None:
        super().__init__(loop)
        self._before = tuple(sections)
        self._parts = parts
        self.sections = list(sections)

    @property
    def slots(self) -> Any:
        return self._prompt_parts().slots

    @slots.setter
    def slots(self, added: Sequence[Mapping[str, Any]]) -> None:
        """Adds the slots of a script: objects with `name`, `content` and the options of `add`."""
        for slot in added:
            options = {snake(key): value for key, value in slot.items()}
            if not isinstance(options.get("name"), str):
                raise TypeError("a slot needs a name")
            try:
                self.slots.add(options.pop("name"), options.pop("content", None), **options)
            except UsageError as error:
                raise TypeError(str(error)) from error

    @property
    def history(self) -> Any:
        return self._prompt_parts().history

    @property
    def budget(self) -> Any:
        return self._prompt_parts().budget

    @property
    def input(self) -> Message:
        return self._prompt_parts().input

    def accepts(self, answer: object) -> bool:
        """Also accepts `ctx.slots.render()`, which a strategy file returns."""
        return super().accepts(answer) or (self._parts is not None and isinstance(answer, type(self.slots.render())))

    def _prompt_parts(self) -> PromptParts:
        if self._parts is None:
            raise TypeError("there is no prompt to compose here")
        return self._parts

    def _own_edits(self) -> dict[str, Any]:
        sections = convert(tuple(self.sections), tuple[Section, ...])
        return {"sections": None if sections == self._before else sections}

    def _own_json(self) -> JsonObject:
        composed: JsonObject = {}
        if self._parts is not None:
            composed = {
                "input": self.input,
                "history": self.history.all(),
                "budget": {"remaining_input_tokens": self.budget.remaining_input_tokens},
                "slots": [],
            }
        return {"sections": self.sections, **composed}


class ModelCall(Context):
    """beforeModelCall: `request` is about to be sent. Changes apply to this call only; `loop.messages` is permanent."""

    writable = {
        **Context.writable,
        "request.messages": list,
        "request.sections": list[Section],
        "request.tools": list[ToolSpec],
        "request.max_output": int,
    }

    def __init__(self, loop: LoopView, request: Request) -> None:
        super().__init__(loop)
        self.request = OutgoingRequest(request)

    def _own_edits(self) -> dict[str, Any]:
        return {"request": self.request.settle()}

    def _own_json(self) -> JsonObject:
        names = ("model", "messages", "sections", "tools", "max_output")
        return {"request": {name: getattr(self.request, name) for name in names}}


class StreamChunk(Context):
    """onStreamChunk: `chunk` is what just arrived, read-only: a TextDelta or ThinkingDelta has `text`."""

    def __init__(self, loop: LoopView, chunk: Delta) -> None:
        super().__init__(loop)
        self.chunk = chunk

    def _own_json(self) -> JsonObject:
        return {"chunk": self.chunk}


class ModelResponse(Context):
    """afterModelResponse: `response` is the model's answer, before it is recorded and before its tools run."""

    writable = {**Context.writable, "response.message": dict, "response.text": str}

    def __init__(self, loop: LoopView, reply: Reply) -> None:
        super().__init__(loop)
        self.response = IncomingResponse(reply)

    def _own_edits(self) -> dict[str, Any]:
        message = self.response.message
        return {"response": None if message == self.response.before.message else message}

    def _own_json(self) -> JsonObject:
        return {"response": _reply_json(self.response)}


class ToolStart(Context):
    """beforeToolExecution: `tool_call` (name, args) is about to run; it may be assigned, changed or denied."""

    may_deny = True

    writable = {**Context.writable, "tool_call": dict, "tool_call.name": str, "tool_call.args": dict}

    def __init__(self, loop: LoopView, tool_call: ToolCall) -> None:
        super().__init__(loop)
        self._before = tool_call
        self._call = OutgoingCall.of(tool_call)

    @property
    def tool_call(self) -> OutgoingCall:
        return self._call

    @tool_call.setter
    def tool_call(self, value: ToolCall | OutgoingCall | Mapping[str, Any]) -> None:
        self._call.assign(value)

    def _own_edits(self) -> dict[str, Any]:
        call = self._call.applied_to(self._before)
        return {"tool_call": None if call == self._before else call}

    def _own_json(self) -> JsonObject:
        return {"tool_call": self._call.applied_to(self._before)}


class ToolEnd(Context):
    """afterToolExecution: `result` before it is recorded: what a hook removes is never stored."""

    writable = {
        **Context.writable,
        "result.content": str | list[Content],
        "result.blocks": list[Content],
        "result.is_error": bool,
    }

    def __init__(self, loop: LoopView, tool_call: ToolCall, result: ToolResult) -> None:
        super().__init__(loop)
        self.tool_call = tool_call
        self.result = Outcome(result)

    def _own_edits(self) -> dict[str, Any]:
        before = self.result.before
        is_error = convert(self.result.is_error, bool)
        result = msgspec.structs.replace(before, content=self.result.blocks, is_error=is_error)
        return {"result": None if result == before else result}

    def _own_json(self) -> JsonObject:
        result = self.result
        return {
            "tool_call": self.tool_call,
            "result": {"content": result.content, "is_error": result.is_error, "blocks": result.blocks},
        }


class LoopComplete(Context):
    """afterLoopComplete: `response` is the final answer, read-only."""

    def __init__(self, loop: LoopView, reply: Reply) -> None:
        super().__init__(loop)
        self.response = reply

    def _own_json(self) -> JsonObject:
        return {"response": _reply_json(self.response)}


class CompactionStart(Context):
    """beforeCompaction: why and how the conversation is about to be compacted, read-only."""

    def __init__(self, loop: LoopView, *, strategy: str, reason: str, tokens: int) -> None:
        super().__init__(loop)
        self.strategy = strategy
        self.reason = reason
        self.tokens = tokens

    def _own_json(self) -> JsonObject:
        return {"strategy": self.strategy, "reason": self.reason, "tokens": self.tokens}


class CompactionEnd(Context):
    """afterCompaction: `checkpoint` is what was cut and what replaces it, read-only."""

    def __init__(self, loop: LoopView, checkpoint: Checkpointed) -> None:
        super().__init__(loop)
        self.checkpoint = checkpoint

    def _own_json(self) -> JsonObject:
        return {"checkpoint": self.checkpoint}


class RunError(Context):
    """onError: `error` is the exception that ends the run, read-only."""

    def __init__(self, loop: LoopView, error: BaseException) -> None:
        super().__init__(loop)
        self.error = error

    def _own_json(self) -> JsonObject:
        return {"error": {"kind": type(self.error).__name__, "text": str(self.error)}}


def _reply_json(reply: Reply | IncomingResponse) -> JsonObject:
    return {"message": reply.message, "text": reply.message.text, "usage": reply.usage, "stop": reply.stop}


class _Awaitable:
    """Lets a hook write `await ctx.stop()` as well as `ctx.stop()`."""

    def __await__(self) -> Iterator[None]:
        return iter(())
