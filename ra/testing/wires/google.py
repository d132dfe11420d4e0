"""The provider's side of Google's `streamGenerateContent`."""

import base64
import re
from collections.abc import Iterator, Mapping

from ra.core.model import Usage
from ra.core.value import JsonObject
from ra.providers.dialects.fields import arguments
from ra.providers.script import Call, Step
from ra.testing.wires.wire import fault_of, frame, pieces, require, seal

BASE = ""
BAD_KEY = 400, "API key not valid. Please pass a valid API key."
STATUSES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def is_call(path: str) -> bool:
    return re.fullmatch(r"/v1(alpha|beta)?/models/[^/]+:streamGenerateContent", path) is not None


def key(headers: Mapping[str, str]) -> str:
    return headers.get("x-goog-api-key", "")


def turns(body: JsonObject) -> int:
    return sum(content.get("role") == "model" for content in body.get("contents", []))


def overflow(sent: int, window: int) -> tuple[JsonObject, str]:
    return {}, f"The input token count ({sent}) exceeds the maximum number of tokens allowed ({window})."


def refusal(status: int, message: str, kind: JsonObject) -> JsonObject:
    return {"error": {"code": status, "message": message, "status": STATUSES.get(status, "UNKNOWN")} | kind}


def error_frame(status: int, message: str) -> bytes:
    return frame(refusal(status, message, {}))


def encoded_signature(step: Step) -> str:
    """The thought signature of an answer: base64, as protocol buffers encode bytes."""
    signature = step.signature or (seal(step.thinking) if step.thinking else "")
    return base64.b64encode(signature.encode()).decode()


def frames(step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
    about = {"modelVersion": model, "responseId": f"resp-{number}"}
    calls = [call for call in step.calls if call.raw is None or arguments(call.raw) is not None]
    if step.ends == "refused" and not step.text:
        yield frame(
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": _usage(usage, step)} | about
        )
        return

    def chunk(*parts: JsonObject, **ending: str) -> bytes:
        candidate: JsonObject = {"content": {"role": "model", "parts": list(parts)}, "index": 0} | ending
        counts = _usage(usage, step) if ending else {"promptTokenCount": usage.total_input}
        return frame({"candidates": [candidate], "usageMetadata": counts} | about)

    for piece in pieces(step.thinking):
        yield chunk({"text": piece, "thought": True})
    for piece in pieces(step.text):
        yield chunk({"text": piece})
    signature = {"thoughtSignature": encoded_signature(step)} if encoded_signature(step) else {}
    for i, call in enumerate(calls):
        yield chunk({"functionCall": _call(call)} | (signature if i == 0 else {}))
    reason = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(step.ends, "STOP")
    if len(calls) < len(step.calls) and reason == "STOP":
        malformed = next(call for call in step.calls if call not in calls)
        words = f"Malformed function call: {malformed.name}({malformed.raw})"
        yield chunk(finishReason="MALFORMED_FUNCTION_CALL", finishMessage=words)
    else:
        yield chunk({"text": ""} | ({} if calls else signature), finishReason=reason)


def _call(call: Call) -> JsonObject:
    args = call.args if call.raw is None else arguments(call.raw)
    return {"name": call.name, "args": args} | ({"id": call.id} if call.id else {})


def _usage(usage: Usage, step: Step) -> JsonObject:
    thoughts = usage.output // 2 if step.thinking else 0
    return {
        "promptTokenCount": usage.total_input,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output - thoughts,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": usage.total_input + usage.output,
    }


def fault(body: JsonObject, *, model: str) -> str:
    return fault_of(lambda: _check(body, model))


def _check(body: JsonObject, model: str) -> None:
    contents = body.get("contents")
    require(contents, "* GenerateContentRequest.contents: contents is not specified")
    calls_before = 0
    before = "user"
    current = _current_turn(body["contents"])
    for i, content in enumerate(body["contents"]):
        role, parts = content.get("role", "user"), content["parts"]
        require(role in ("user", "model"), "Please use a valid role: user, model.")
        require(parts, f"* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty.")
        calls = [part for part in parts if "functionCall" in part]
        results = [part for part in parts if "functionResponse" in part]
        words = "Please ensure that function call turn comes immediately after a user turn or a function response turn."
        require(not calls or (role == "model" and before == "user" and i), words)
        words = "Please ensure that function response turn comes immediately after a function call turn."
        require(not results or calls_before, words)
        words = "Please ensure that the number of function response parts is equal to the number of function call parts"
        require(len(results) == calls_before, f"{words} of the function call turn.")
        if calls and i > current and _wants_signatures(model):
            words = "Function call is missing a thought_signature in functionCall parts."
            require(calls[0].get("thoughtSignature"), f"{words} This is required for tools to work correctly.")
        calls_before, before = len(calls), role
    require(not calls_before, "Please ensure that each function call turn is followed by a function response turn.")
    budget = body.get("generationConfig", {}).get("thinkingConfig", {}).get("thinkingBudget", 0)
    require(
        budget <= body.get("generationConfig", {}).get("maxOutputTokens", budget), "The thinking budget is invalid."
    )


def _current_turn(contents: list[JsonObject]) -> int:
    """The index where the current turn began: the user's last message."""
    turns = [
        i
        for i, content in enumerate(contents)
        if content.get("role", "user") == "user" and not any("functionResponse" in part for part in content["parts"])
    ]
    return turns[-1] if turns else -1


def _wants_signatures(model: str) -> bool:
    version = re.search(r"gemini-(\d+)", model)
    return version is not None and int(version[1]) >= 3
