"""The provider's side of Chat Completions."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ra.core.model import Stop, Usage
from ra.core.value import JsonObject
from ra.providers.script import Step
from ra.testing.wires.wire import call_id, fault_of, frame, pieces, raw_arguments, require

BASE = "/v1"
BAD_KEY = 401, "Incorrect API key provided. You can find your API key in your account settings."

STOPS: dict[Stop, str] = {"end": "stop", "tools": "tool_calls", "length": "length", "refused": "stop", "cut": "stop"}
KINDS = {401: "invalid_api_key", 429: "rate_limit_exceeded", 404: "model_not_found"}


def is_call(path: str) -> bool:
    return path == "/v1/chat/completions"


def key(headers: Mapping[str, str]) -> str:
    return headers.get("authorization", "").removeprefix("Bearer ")


def turns(body: JsonObject) -> int:
    return sum(message.get("role") == "assistant" for message in body.get("messages", []))


def overflow(sent: int, window: int) -> tuple[JsonObject, str]:
    words = f"This model's maximum context length is {window} tokens. However, your messages resulted in {sent} tokens."
    return {
        "code": "context_length_exceeded",
        "param": "messages",
    }, f"{words} Please reduce the length of the messages."


def refusal(status: int, message: str, kind: JsonObject) -> JsonObject:
    sort = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": sort, "param": None, "code": KINDS.get(status)} | kind}


def error_frame(status: int, message: str) -> bytes:
    return frame(refusal(status, message, {"code": status}))


def frames(step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
    chunk = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}

    def delta_frame(delta: JsonObject, reason: str | None = None) -> bytes:
        return frame(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield delta_frame({"role": "assistant", "content": ""})
    for piece in pieces(step.thinking):
        yield delta_frame({"reasoning_content": piece})
    for piece in pieces(step.text):
        yield delta_frame({"refusal": piece} if step.ends == "refused" else {"content": piece})
    for index, call in enumerate(step.calls):
        id = call_id(call.id, number, index + 1, "call")
        function = {"name": call.name, "arguments": ""}
        yield delta_frame({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
        for piece in pieces(raw_arguments(call.args, call.raw)):
            yield delta_frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    filtered = step.ends == "refused" and not step.text
    yield delta_frame({}, "content_filter" if filtered else STOPS[step.ends])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield frame(chunk | {"choices": [], "usage": _usage(usage)})
    yield b"data: [DONE]\n\n"


def _usage(usage: Usage) -> JsonObject:
    total_input = usage.total_input
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {
        "prompt_tokens": total_input,
        "completion_tokens": usage.output,
        "total_tokens": total_input + usage.output,
        "prompt_tokens_details": details,
    }


def fault(body: JsonObject, *, model: str) -> str:
    return fault_of(lambda: _check(body))


def _check(body: JsonObject) -> None:
    require(isinstance(body.get("model"), str), "you must provide a model parameter")
    require(body.get("messages"), "[] is too short - 'messages'")
    awaited: list[str] = []
    for i, message in enumerate(body["messages"]):
        role = message["role"]
        roles = ("system", "developer", "user", "assistant", "tool")
        require(role in roles, f"Invalid value: '{role}'. Supported values are: {roles}. (messages[{i}].role)")
        if role == "tool":
            words = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            require(message["tool_call_id"] in awaited, f"Invalid parameter: {words} (messages[{i}].role)")
            awaited.remove(message["tool_call_id"])
            require(
                isinstance(message["content"], str), f"Invalid type for 'messages[{i}].content': expected a string."
            )
            continue
        _check_answered(awaited)
        calls = message.get("tool_calls") or []
        _check_content(i, message.get("content"), optional=bool(calls))
        for call in calls:
            _check_arguments(i, call["function"]["arguments"])
        awaited = [call["id"] for call in calls]
    _check_answered(awaited)


def _check_answered(awaited: list[str]) -> None:
    need = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    missing = f"The following tool_call_ids did not have response messages: {', '.join(awaited)}"
    require(not awaited, f"{need} {missing}")


def _check_content(i: int, content: Any, *, optional: bool) -> None:
    if content is None:
        require(optional, f"Invalid value for 'content': expected a string, got null. (messages[{i}].content)")
    elif isinstance(content, list):
        require(content, f"Invalid 'messages[{i}].content': empty array.")
        for part in content:
            is_known = part["type"] in ("text", "image_url", "file", "input_audio")
            require(is_known, f"Invalid value: '{part['type']}'. (messages[{i}].content[0].type)")


def _check_arguments(i: int, arguments: str) -> None:
    """Checks that the arguments are a JSON object, which llama.cpp and vLLM parse again for their templates."""
    try:
        msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        require(False, f"messages[{i}].tool_calls: arguments are not a JSON object: {error}")
