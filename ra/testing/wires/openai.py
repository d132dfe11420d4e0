"""The provider's side of OpenAI's Responses API."""

from collections.abc import Iterator
from typing import Any

from ra.core.model import Usage
from ra.core.value import JsonObject
from ra.providers.script import Step
from ra.testing.wires import openai_chat
from ra.testing.wires.wire import SEAL, call_id, fault_of, frame, pieces, raw_arguments, require, seal

BASE = "/v1"
BAD_KEY = openai_chat.BAD_KEY
CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}

key = openai_chat.key
refusal = openai_chat.refusal


def is_call(path: str) -> bool:
    return path == "/v1/responses"


def turns(body: JsonObject) -> int:
    """Counts answers: runs of adjacent items from the model."""
    from_model = [_is_answer(item) for item in body.get("input", []) if isinstance(item, dict)]
    return sum(now and not before for before, now in zip([False, *from_model], from_model, strict=False))


def _is_answer(item: JsonObject) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")


def overflow(sent: int, window: int) -> tuple[JsonObject, str]:
    words = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return {"code": "context_length_exceeded", "param": "input"}, words


def error_frame(status: int, message: str) -> bytes:
    code = CODES.get(status, "server_error")
    return frame({"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}, "error")


def frames(step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
    stream = Events()
    output: list[JsonObject] = []
    response: JsonObject = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    started = response | {"status": "in_progress", "output": []}
    yield stream.event("response.created", response=started)
    yield stream.event("response.in_progress", response=started)
    for index, (item, events) in enumerate(_items(step, number)):
        at = {"item_id": item["id"], "output_index": index}
        yield stream.event("response.output_item.added", output_index=index, item=_opened(item))
        for kind, fields in events:
            yield stream.event(kind, **at, **fields)
        yield stream.event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    ended: JsonObject = {"status": "completed", "output": output, "usage": _usage(usage, step)}
    if step.ends == "length" or (step.ends == "refused" and not step.text):
        reason = "max_output_tokens" if step.ends == "length" else "content_filter"
        ended |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        yield stream.event("response.incomplete", response=response | ended)
    else:
        yield stream.event("response.completed", response=response | ended)


class Events:
    """Numbers the events of a stream."""

    def __init__(self) -> None:
        self._next = 0

    def event(self, kind: str, **fields: Any) -> bytes:
        self._next += 1
        return frame({"type": kind, **fields, "sequence_number": self._next - 1}, kind)


def _opened(item: JsonObject) -> JsonObject:
    """An item before it has any content."""
    empty: JsonObject = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    visible = {key: value for key, value in item.items() if key != "encrypted_content"}
    return {key: empty.get(key, value) for key, value in visible.items()}


Fields = dict[str, Any]


def _items(step: Step, number: int) -> Iterator[tuple[JsonObject, list[tuple[str, Fields]]]]:
    if step.redacted:
        yield {"id": f"rs_{number}_0", "type": "reasoning", "summary": [], "encrypted_content": step.redacted}, []
    if step.thinking:
        yield _reasoning(step, number)
    if step.text or not step.calls:
        yield _message(step, number)
    for i, call in enumerate(step.calls, start=1):
        arguments = raw_arguments(call.args, call.raw)
        item = {
            "id": f"fc_{number}_{i}",
            "type": "function_call",
            "status": "incomplete" if step.ends == "length" and i == len(step.calls) else "completed",
            "call_id": call_id(call.id, number, i, "call"),
            "name": call.name,
            "arguments": arguments,
        }
        kind = "response.function_call_arguments"
        events: list[tuple[str, Fields]] = [(f"{kind}.delta", {"delta": piece}) for piece in pieces(arguments)]
        yield item, [*events, (f"{kind}.done", {"arguments": arguments, "name": call.name})]


def _reasoning(step: Step, number: int) -> tuple[JsonObject, list[tuple[str, Fields]]]:
    part = {"type": "summary_text", "text": step.thinking}
    signature = step.signature or seal(step.thinking)
    item = {"id": f"rs_{number}", "type": "reasoning", "summary": [part], "encrypted_content": signature}
    at = {"summary_index": 0}
    kind = "response.reasoning_summary"
    return item, [
        (f"{kind}_part.added", at | {"part": part | {"text": ""}}),
        *((f"{kind}_text.delta", at | {"delta": piece}) for piece in pieces(step.thinking)),
        (f"{kind}_text.done", at | {"text": step.thinking}),
        (f"{kind}_part.done", at | {"part": part}),
    ]


def _message(step: Step, number: int) -> tuple[JsonObject, list[tuple[str, Fields]]]:
    refused = step.ends == "refused" and bool(step.text)
    name, kind = ("refusal", "response.refusal") if refused else ("text", "response.output_text")
    part: JsonObject = {"type": "refusal" if refused else "output_text", name: step.text}
    part |= {} if refused else {"annotations": []}
    item = {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    at = {"content_index": 0}
    extra: Fields = {} if refused else {"logprobs": []}
    return item, [
        ("response.content_part.added", at | {"part": part | {name: ""}}),
        *((f"{kind}.delta", at | {"delta": piece} | extra) for piece in pieces(step.text)),
        (f"{kind}.done", at | {name: step.text} | extra),
        ("response.content_part.done", at | {"part": part}),
    ]


def _usage(usage: Usage, step: Step) -> JsonObject:
    total_input = usage.total_input
    return {
        "input_tokens": total_input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.output // 2 if step.thinking else 0},
        "total_tokens": total_input + usage.output,
    }


def fault(body: JsonObject, *, model: str) -> str:
    return fault_of(lambda: _check(body))


def _check(body: JsonObject) -> None:
    require(isinstance(body.get("model"), str), "Missing required parameter: 'model'.")
    limit = body.get("max_output_tokens", 16)
    low = "integer below minimum value. Expected a value >= 16"
    require(limit >= 16, f"Invalid 'max_output_tokens': {low}, but got {limit} instead.")
    items = body.get("input")
    require(items, "Missing required parameter: 'input'.")
    if isinstance(items, str):
        return
    called: list[str] = []
    answered: list[str] = []
    for i, item in enumerate(body["input"]):
        match item.get("type", "message"):
            case "message":
                _check_message(i, item)
            case "reasoning":
                _check_reasoning(item, following=body["input"][i + 1 : i + 2])
            case "function_call":
                require(isinstance(item["arguments"], str), f"Invalid type for 'input[{i}].arguments'.")
                called.append(item["call_id"])
            case "function_call_output":
                id = item["call_id"]
                require(id in called, f"No tool call found for function call output with call_id {id}.")
                require(id not in answered, f"Duplicate function call output for call_id {id}.")
                answered.append(id)
            case other:
                require(False, f"Invalid value: '{other}'. (input[{i}].type)")
    missing = [id for id in called if id not in answered]
    require(not missing, f"No tool output found for function call {', '.join(missing)}.")


def _check_message(i: int, item: JsonObject) -> None:
    roles = ("user", "assistant", "system", "developer")
    require(item["role"] in roles, f"Invalid value: '{item['role']}'. (input[{i}].role)")
    if isinstance(item["content"], str):
        return
    from_model = item["role"] == "assistant"
    allowed = ("output_text", "refusal") if from_model else ("input_text", "input_image", "input_file")
    require(item["content"], f"Invalid 'input[{i}].content': empty array.")
    for part in item["content"]:
        words = f"Invalid value: '{part['type']}'. Supported values are: {allowed}. (input[{i}].content)"
        require(part["type"] in allowed, words)


def _check_reasoning(item: JsonObject, following: list[JsonObject]) -> None:
    id, signature = item["id"], item.get("encrypted_content")
    refusal = "Items are not persisted when `store` is set to false."
    require(signature, f"Item with id '{id}' not found. {refusal}")
    thinking = "".join(part["text"] for part in item["summary"])
    broken = f"The encrypted content for item {id} could not be verified."
    require(not str(signature).startswith(SEAL) or signature == seal(thinking), broken)
    words = f"Item '{id}' of type 'reasoning' was provided without its required following item."
    require(following and _is_answer(following[0]), words)
