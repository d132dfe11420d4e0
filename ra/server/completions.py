"""Serves OpenAI's Chat Completions on top of tasks: any OpenAI client can use an agent, whose name is the model."""

import re
import time
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ra.core.value import JsonObject, encode
from ra.server.bodies import Count
from ra.server.queue import TaskAnswer
from ra.server.task import Refusal, Task, body_object, context_of

DEFAULT = "ra"
CHANNEL = "openai"
_FIELDS = {
    "agent": "model",
    "context.chatId": "metadata.chatId",
    "context.sender": "user",
}  # as OpenAI's clients send it
_DATA = re.compile(rb"^data: (.*)$", re.MULTILINE)


class ChatMessageBody(Struct):
    role: str
    content: Annotated[
        str | list[JsonObject] | None, Meta(description="text, or parts of which those of type text are read")
    ] = None


class StreamOptions(Struct):
    include_usage: bool | None = None


class CompletionRequest(Struct):
    """Fields of OpenAI's that are not named here are accepted and have no effect: the agent's configuration rules."""

    messages: Annotated[list[ChatMessageBody], Meta(min_length=1)]
    model: Annotated[str | None, Meta(description="an agent's name; ra is the default agent")] = DEFAULT
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[Literal[1] | None, Meta(description="an agent gives one answer")] = 1
    user: Annotated[str | None, Meta(description="the sender")] = None
    metadata: Annotated[
        JsonObject | None, Meta(description="chatId: a chat whose session holds what was said before")
    ] = None


class CachedTokens(Struct):
    cached_tokens: Count


class CompletionUsage(Struct):
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: CachedTokens


class CompletionMessage(Struct):
    content: str
    role: Literal["assistant"] = "assistant"


class CompletionChoice(Struct):
    message: CompletionMessage
    index: int = 0
    finish_reason: str = "stop"


class CompletionBody(Struct):
    id: str
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    object: Literal["chat.completion"] = "chat.completion"


class CompletionErrorDetail(Struct):
    message: str
    type: str
    code: str | None = None
    param: str | None = None


class CompletionError(Struct):
    error: CompletionErrorDetail


class ModelBody(Struct):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "ra"


class ModelList(Struct):
    data: list[ModelBody]
    object: Literal["list"] = "list"


class Asked(Struct, frozen=True):
    """A request as a task, and the form of its answer."""

    task: Task
    model: str
    stream: bool
    usage: bool


def read(raw: bytes) -> Asked:
    """Raises Refusal with status 400."""
    try:
        body = msgspec.convert(body_object(raw), CompletionRequest)
    except msgspec.ValidationError as error:
        field = str(error).rpartition("`$.")[2].rstrip("`") if "`$." in str(error) else ""
        raise Refusal(400, f"{error}.", field=field) from error
    chat = (body.metadata or {}).get("chatId")
    context = context_of({"channel": CHANNEL, "chatId": chat, "sender": (body.user or "")[:256]})
    task = Task(_agent(body.model), _message(body.messages, alone=context.alone), context)
    include_usage = bool(body.stream_options and body.stream_options.include_usage)
    return Asked(task, body.model or DEFAULT, bool(body.stream), include_usage)


def _agent(model: str | None) -> str:
    return "" if model in (None, "", DEFAULT) else str(model)


def _message(messages: list[ChatMessageBody], *, alone: bool) -> str:
    """The agent's prompt: every message if the client named no chat, else the messages since the last answer."""
    texts = [(message.role, _text(message)) for message in messages]
    answers = [place for place, (role, _) in enumerate(texts) if role == "assistant"]
    if not alone and answers:
        texts = texts[answers[-1] + 1 :]
    prompts = [text for role, text in texts if text]
    if not prompts or texts[-1][0] == "assistant":
        raise Refusal(400, "The last of messages must be the user's, with text.", field="messages")
    if len(prompts) == 1:
        return prompts[0]
    *before, (_, last) = [(role, text) for role, text in texts if text]
    transcript = "\n\n".join(f"<{role}>\n{text}\n</{role}>" for role, text in before)
    return f"{last}\n\nThe conversation so far, as the client sent it:\n\n{transcript}"


def _text(message: ChatMessageBody) -> str:
    if not isinstance(message.content, list):
        return (message.content or "").strip()
    for part in message.content:
        if part.get("type") not in ("text", "refusal"):
            kind = str(part.get("type"))[:40]
            raise Refusal(400, f"Parts of type {kind!r} are not supported; send text.", field="messages")
    return "\n".join(str(part.get("text", "")) for part in message.content).strip()


def models(agents: Iterable[str]) -> ModelList:
    return ModelList([ModelBody(name) for name in (DEFAULT, *sorted(agents))])


def model(agents: Iterable[str], name: str) -> ModelBody:
    """Raises Refusal with status 404."""
    matches = [model for model in models(agents).data if model.id == name]
    if not matches:
        raise Refusal(404, f"There is no model {name!r}; GET /v1/models lists them.", field="agent")
    return matches[0]


def completion(asked: Asked, run: str, answer: TaskAnswer) -> CompletionBody:
    """Raises Refusal if the run has no answer."""
    content, error = str(answer.body.get("content") or ""), answer.body.get("error")
    if error and not content:
        status = answer.status if answer.status >= 400 else 500
        raise Refusal(status, str(error), retry_after_s=answer.retry_after_s, ran=answer.ran)
    choice = CompletionChoice(CompletionMessage(content), finish_reason="length" if error else "stop")
    return CompletionBody(_id(run), int(time.time()), asked.model, [choice], _usage(answer.body))


def _usage(body: JsonObject) -> CompletionUsage:
    counts = {key: int(value) for key, value in (body.get("usage") or {}).items()}
    cached = counts.get("cacheReadTokens", 0)
    prompt = counts.get("inputTokens", 0) + cached + counts.get("cacheCreateTokens", 0)
    output = counts.get("outputTokens", 0)
    return CompletionUsage(prompt, output, prompt + output, CachedTokens(cached))


def error_body(refusal: Refusal) -> CompletionError:
    kind = "invalid_request_error" if refusal.status < 429 else "rate_limit_error" if refusal.status == 429 else "error"
    code = "model_not_found" if refusal.status == 404 and refusal.field == "agent" else None
    field = _FIELDS.get(refusal.field, refusal.field)
    return CompletionError(CompletionErrorDetail(str(refusal), kind, code, field or None))


async def chunks(asked: Asked, run: str, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events of a run as chunks of a completion."""
    first: JsonObject = {"role": "assistant", "content": ""}
    complete = False
    yield _chunk(asked, run, first)
    async for frame in frames:
        events = [msgspec.json.decode(data) for data in _DATA.findall(frame)]
        if not events:
            yield b": working\n\n"
        for event in events:
            match event:
                case {"type": "text", "delta": delta} if delta:
                    yield _chunk(asked, run, {"content": delta})
                case {"type": "done"}:
                    complete = True
                    if (error := event.get("error")) and not event.get("content"):
                        yield _data(error_body(Refusal(500, str(error))))
                    else:
                        yield _chunk(asked, run, {}, finish="length" if error else "stop")
                    if asked.usage:
                        yield _chunk(asked, run, None, usage=_usage(event))
    if not complete:
        yield _data(error_body(Refusal(503, "The server is stopping; the run goes on at another one.")))
    yield b"data: [DONE]\n\n"


def _chunk(
    asked: Asked,
    run: str,
    delta: JsonObject | None,
    *,
    finish: str | None = None,
    usage: CompletionUsage | UnsetType = UNSET,
) -> bytes:
    choices: list[Any] = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    body: JsonObject = {
        "id": _id(run),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": asked.model,
        "choices": choices,
    }
    return _data(body if usage is UNSET else body | {"usage": msgspec.to_builtins(usage)})


def _data(body: Any) -> bytes:
    return b"data: %b\n\n" % encode(body)


def _id(run: str) -> str:
    return f"chatcmpl-{run or 'known'}"
