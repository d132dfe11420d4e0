"""Answers without a model: with the steps of a script, in the way of a real provider."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

from ra.core.errors import BadStream, ProviderError, Unavailable
from ra.core.events import CallDelta, Delta, Sent, Streamed, TextDelta, ThinkingDelta
from ra.core.messages import Block, Message, Text, Thinking, ToolCall
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.core.value import encode
from ra.providers.dialects.draft import UNSEEN
from ra.providers.dialects.fields import arguments
from ra.providers.errors import failure
from ra.providers.script import Fault, Script, Step

PIECE = 12
"""Characters per delta: about three tokens, as models stream them."""


class ScriptedProvider:
    """A provider whose answers come from a script. `requests` lists all requests in order.

    If `info` has a window, a larger request is refused, as by a real provider.
    """

    name = "scripted"

    def __init__(
        self, script: Script[Request] | Iterable[Step] | Callable[[Request], Step], *, info: ModelInfo | None = None
    ) -> None:
        self._script = script if isinstance(script, Script) else Script(script)
        self._window = info.window if info else None
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        self.requests.append(request)
        if self._window and (sent := _tokens(request)) > self._window:
            raise failure(400, {}, f"prompt is too long: {sent} tokens > {self._window} maximum")
        step = self._script.step(request, turn=sum(m.role == "assistant" for m in request.messages))
        self._script.done()
        reply = reply_of(step, request, number=len(self.requests))
        yield Sent()
        await asyncio.sleep(step.delay_s)
        if step.fault and step.fault.kind == "status":
            raise _refusal(step.fault)
        deltas = list(_deltas(reply.message))
        for delta in deltas[: len(deltas) // 2] if step.fault else deltas:
            yield delta
            await asyncio.sleep(step.pace_s)
        if step.fault:
            raise await _broken(step.fault, reply)
        yield reply

    async def close(self) -> None:
        pass


def reply_of(step: Step, request: Request, *, number: int) -> Reply:
    """The Reply for a step."""
    content: list[Block] = []
    if step.redacted:
        content.append(Thinking("", step.redacted))
    if step.thinking:
        content.append(Thinking(step.thinking, step.signature))
    if step.text:
        content.append(Text(step.text))
    for i, call in enumerate(step.calls, start=1):
        id = call.id or f"call_{number}_{i}"
        args = call.args if call.raw is None else arguments(call.raw)
        broken = "" if args is not None else call.raw or UNSEEN
        content.append(ToolCall(id, call.name, args or {}, broken))
    message = Message("assistant", tuple(content), model=request.model)
    usage = step.usage or Usage(_tokens(request), _tokens(message))
    return Reply(message, usage, step.ends)


def _tokens(value: Request | Message) -> int:
    return max(1, len(encode(value)) // 4)


def _deltas(message: Message) -> Iterator[Delta]:
    for block in message.blocks:
        match block:
            case Text():
                yield from (TextDelta(block.text[i : i + PIECE]) for i in range(0, len(block.text), PIECE))
            case Thinking():
                yield from (ThinkingDelta(block.text[i : i + PIECE]) for i in range(0, len(block.text), PIECE))
            case ToolCall():
                yield CallDelta(block.name)


def _refusal(fault: Fault) -> ProviderError:
    headers = {"retry-after": fault.retry_after, "retry-after-ms": fault.retry_after_ms}
    return failure(fault.status, headers, {"error": {"message": fault.message or "scripted fault"}})


async def _broken(fault: Fault, reply: Reply) -> ProviderError:
    """The error of an answer that breaks off, after half of its text."""
    if fault.kind == "error":
        return _refusal(fault)
    if fault.kind == "stall":
        await asyncio.sleep(fault.seconds)
        return Unavailable("The provider fell silent. Try again later.")
    said = tuple(Text(block.text[: len(block.text) // 2]) for block in reply.message.blocks if isinstance(block, Text))
    partial = Message("assistant", tuple(block for block in said if block.text), model=reply.message.model)
    why = "The answer broke off before its end." if fault.kind == "cut" else "The answer could not be read."
    return BadStream(why, partial=partial, usage=Usage(reply.usage.input))
