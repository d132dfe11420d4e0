"""The provider's side of Anthropic's Messages API."""

import re
from collections.abc import Iterator, Mapping

from ra.core.model import Stop, Usage
from ra.core.value import JsonObject
from ra.providers.script import Step
from ra.testing.wires.wire import SEAL, call_id, fault_of, frame, pieces, raw_arguments, require, seal

BASE = ""
BAD_KEY = 401, "invalid x-api-key"

STOPS: dict[Stop, str] = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "cut": "end_turn",
}
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
THOUGHTS = ("thinking", "redacted_thinking")


def is_call(path: str) -> bool:
    return path == "/v1/messages"


def key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def turns(body: JsonObject) -> int:
    return sum(message.get("role") == "assistant" for message in body.get("messages", []))


def overflow(sent: int, window: int) -> tuple[JsonObject, str]:
    return {}, f"prompt is too long: {sent} tokens > {window} maximum"


def refusal(status: int, message: str, kind: JsonObject) -> JsonObject:
    error = {"type": KINDS.get(status, "api_error"), "message": message} | kind
    return {"type": "error", "error": error, "request_id": "req_loopback"}


def error_frame(status: int, message: str) -> bytes:
    return frame(refusal(status, message, {}), "error")


def frames(step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
    counts = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    }
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    no_stop = {"stop_reason": None, "stop_sequence": None}
    start = {"type": "message_start", "message": message | no_stop | {"usage": counts | {"output_tokens": 1}}}
    yield frame(start, "message_start")
    yield frame({"type": "ping"}, "ping")
    for index, (block, deltas) in enumerate(_blocks(step, number)):
        yield frame({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
        for delta in deltas:
            yield frame({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        yield frame({"type": "content_block_stop", "index": index}, "content_block_stop")
    end = {"stop_reason": STOPS[step.ends], "stop_sequence": None}
    yield frame({"type": "message_delta", "delta": end, "usage": {"output_tokens": usage.output}}, "message_delta")
    yield frame({"type": "message_stop"}, "message_stop")


def _blocks(step: Step, number: int) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
    if step.redacted:
        yield {"type": "redacted_thinking", "data": step.redacted}, []
    if step.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(step.thinking)]
        signed = {"type": "signature_delta", "signature": step.signature or seal(step.thinking)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if step.text or not step.calls:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(step.text)]
    for i, call in enumerate(step.calls, start=1):
        block = {"type": "tool_use", "id": call_id(call.id, number, i, "toolu"), "name": call.name, "input": {}}
        raw = ["", *pieces(raw_arguments(call.args, call.raw))]
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in raw]


def fault(body: JsonObject, *, model: str) -> str:
    return fault_of(lambda: _check(body))


def _check(body: JsonObject) -> None:
    require(isinstance(body.get("model"), str), "model: Field required")
    require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    require(body["max_tokens"] > 0, "max_tokens: Input should be greater than or equal to 1")
    messages = body.get("messages")
    require(messages, "messages: at least one message is required")
    contents = [_as_list(message["content"]) for message in body["messages"]]
    roles = [message["role"] for message in body["messages"]]
    require(roles[0] == "user", 'messages: first message must use the "user" role')
    ids: set[str] = set()
    for i, (role, content) in enumerate(zip(roles, contents, strict=True)):
        require(role in ("user", "assistant"), f"messages.{i}: role '{role}' is not supported on this model")
        require(content, f"messages.{i}: all messages must have non-empty content")
        ends = content[-1]["type"]
        require(ends not in THOUGHTS, f"messages.{i}: The final block in an assistant message cannot be `{ends}`.")
        for j, block in enumerate(content):
            _check_block(f"messages.{i}.content.{j}", block, role, ids)
    _check_pairs(roles, contents)
    _check_tools(body.get("tools", []))
    _check_marks(body)
    _check_thinking(body, contents)


def _as_list(content: str | list[JsonObject]) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_block(place: str, block: JsonObject, role: str, ids: set[str]) -> None:
    match block["type"]:
        case "text":
            require(block["text"], "messages: text content blocks must be non-empty")
            require(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
        case "thinking":
            require(role == "assistant", f"{place}: `thinking` blocks may only be in `assistant` messages")
            signature = block["signature"]
            valid = not signature.startswith(SEAL) or signature == seal(block["thinking"])
            require(signature and valid, f"{place}: Invalid `signature` in `thinking` block")
        case "redacted_thinking":
            require(block["data"], f"{place}: Invalid `data` in `redacted_thinking` block")
        case "tool_use":
            require(role == "assistant", f"{place}: `tool_use` blocks can only be in `assistant` messages")
            pattern = "^[a-zA-Z0-9_-]+$"
            require(re.match(pattern, block["id"]), f"{place}.tool_use.id: String should match pattern '{pattern}'")
            require(isinstance(block["input"], dict), f"{place}.tool_use.input: Input should be a valid dictionary")
            require(block["id"] not in ids, f"{place}: `tool_use` ids must be unique")
            ids.add(block["id"])
        case "tool_result":
            require(role == "user", f"{place}: `tool_result` blocks can only be in `user` messages")
            for inner in _as_list(block.get("content") or []):
                allowed = inner["type"] in ("text", "image", "document")
                require(allowed, f"{place}.tool_result.content: Input tag '{inner['type']}' found")
        case "image" | "document":
            require(block["source"]["data"], f"{place}.{block['type']}.source.base64.data: Field required")
        case other:
            require(False, f"{place}: Input tag '{other}' found using 'type' does not match any of the expected tags")


def _check_pairs(roles: list[str], contents: list[list[JsonObject]]) -> None:
    for i, (role, content) in enumerate(zip(roles, contents, strict=True)):
        after = contents[i + 1] if i + 1 < len(contents) else []
        before = contents[i - 1] if i else []
        if role == "assistant":
            new_calls = [block["id"] for block in content if block["type"] == "tool_use"]
            leading = [block.get("tool_use_id") for block in after[: len(new_calls)] if block["type"] == "tool_result"]
            missing = [id for id in new_calls if id not in leading]
            words = "`tool_use` ids were found without `tool_result` blocks immediately after"
            need = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            require(not missing, f"messages.{i}: {words}: {', '.join(missing)}. {need}")
        open_calls = {block["id"] for block in before if block["type"] == "tool_use"}
        seen: set[str] = set()
        for j, block in enumerate(content):
            if block["type"] != "tool_result":
                continue
            id = block["tool_use_id"]
            words = f"messages.{i}.content.{j}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
            need = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            require(id in open_calls, f"{words}. {need}")
            require(
                id not in seen, f"messages.{i}.content.{j}: each tool_use must have a single result. Found multiple"
            )
            seen.add(id)


def _check_tools(tools: list[JsonObject]) -> None:
    names = [tool["name"] for tool in tools]
    require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for i, tool in enumerate(tools):
        is_object = tool["input_schema"].get("type") == "object"
        require(is_object, f"tools.{i}.custom.input_schema.type: Field required")


def _check_marks(body: JsonObject) -> None:
    system = body.get("system", [])
    blocks = [*body.get("tools", []), *([] if isinstance(system, str) else system)]
    for message in body["messages"]:
        blocks += _as_list(message["content"])
    marked = [block for block in blocks if "cache_control" in block]
    words = f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    require(len(marked) <= 4, words)
    for block in marked:
        is_thinking = block.get("type") in THOUGHTS
        require(not is_thinking, "cache_control cannot be set for thinking blocks")
    for i, block in enumerate([] if isinstance(system, str) else system):
        require(block["text"], f"system.{i}: text content blocks must be non-empty")


def _check_thinking(body: JsonObject, contents: list[list[JsonObject]]) -> None:
    thinking = body.get("thinking", {})
    if thinking.get("type") != "enabled":
        return
    budget = thinking["budget_tokens"]
    require(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    require(body["max_tokens"] > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    require(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled.")
    in_loop = len(contents) > 1 and any(block["type"] == "tool_result" for block in contents[-1])
    first = contents[-2][0]["type"] if in_loop else "thinking"
    require(
        first in THOUGHTS,
        f"messages.{len(contents) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`."
        " When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
    )
