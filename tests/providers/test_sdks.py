"""Do the vendors' own clients read our loopback servers as we do? Content, usage and stop, for every case."""

import base64
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types
from openai.lib.streaming.chat import ChatCompletionStreamState

from ra.core.messages import Text, Thinking, ToolCall
from ra.core.model import Reply, Request, Stop, Usage
from ra.core.value import JsonObject
from ra.providers.dialects import dialect as dialect_of
from ra.testing import LoopbackServer
from tests.providers.cases import CASES, DIALECTS, Case, Raises

SDK_ERRORS = (anthropic.APIError, openai.APIError, genai_errors.APIError, httpx2.HTTPError)

Said = tuple[list[tuple[Any, ...]], Usage, Stop]
"""What can be compared: blocks in order, usage, stop."""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_sdk_reads_the_same(case: Case, dialect: str) -> None:
    request = case.request(dialect)
    body = dialect_of(dialect).body(request, case.info)
    expected = case.outcome(dialect)
    with LoopbackServer(dialect, [case.step], chunk=11) as server:
        ask = ASK[dialect]
        if isinstance(expected, Raises) and expected.text is None:
            with pytest.raises(SDK_ERRORS):
                ask(server.url, request, body)
        elif isinstance(expected, Reply):
            broken = {call.id for call in expected.message.calls if call.broken}
            assert without_broken(ask(server.url, request, body), broken) == comparable(expected)
        else:  # what we raise, Google's client gives as an empty answer
            assert ask(server.url, request, body)[0] == []


def without_broken(said: Said, ids: set[str]) -> Said:
    """The clients make what they can of arguments that are no JSON; we keep them apart and never run them."""
    blocks, *rest = said
    return [(*block[:3], {}, block[4]) if block[1] in ids else block for block in blocks], *rest


def comparable(reply: Reply) -> Said:
    found: list[tuple[Any, ...]] = []
    for block in reply.message.blocks:
        match block:
            case Text():
                found.append(("text", block.text, block.signature))
            case Thinking():
                found.append(("thinking", block.text, block.signature))
            case ToolCall():
                found.append(("call", block.id, block.name, block.args, block.signature))
    return found, reply.usage, reply.stop


def ask_anthropic(url: str, request: Request, body: JsonObject) -> Said:
    client = anthropic.Anthropic(base_url=url, api_key="key", max_retries=0)
    with client.messages.stream(**{key: value for key, value in body.items() if key != "stream"}) as stream:
        message = stream.get_final_message()
    found: list[tuple[Any, ...]] = []
    for block in message.content:
        match block.type:
            case "text" if block.text:
                found.append(("text", block.text, ""))
            case "thinking":
                found.append(("thinking", block.thinking, block.signature))
            case "redacted_thinking":
                found.append(("thinking", "", block.data))
            case "tool_use":
                found.append(("call", block.id, block.name, block.input, ""))
    told = message.usage
    usage = Usage(
        told.input_tokens,
        told.output_tokens,
        told.cache_read_input_tokens or 0,
        told.cache_creation_input_tokens or 0,
    )
    stops: dict[str | None, Stop] = {
        "end_turn": "end",
        "tool_use": "tools",
        "max_tokens": "length",
        "refusal": "refused",
    }
    return found, usage, stops[message.stop_reason]


def ask_responses(url: str, request: Request, body: JsonObject) -> Said:
    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
    response: Any = None
    for event in client.responses.create(**body):
        if event.type == "error":
            raise openai.APIError(event.message, request=None, body=None)
        if event.type in ("response.completed", "response.incomplete"):
            response = event.response
    found: list[tuple[Any, ...]] = []
    refused = False
    for item in response.output:
        match item.type:
            case "message":
                refused = refused or any(part.type == "refusal" for part in item.content)
                words = "".join(part.refusal if part.type == "refusal" else part.text for part in item.content)
                found += [("text", words, "")] if words else []
            case "reasoning":
                found.append(("thinking", "".join(part.text for part in item.summary), item.encrypted_content))
            case "function_call":
                found.append(("call", item.call_id, item.name, parsed(item.arguments), ""))
    told = response.usage
    details = told.input_tokens_details
    read, written = details.cached_tokens, details.cache_write_tokens
    usage = Usage(told.input_tokens - read - written, told.output_tokens, read, written)
    if response.status == "incomplete":
        stop: Stop = "length" if response.incomplete_details.reason == "max_output_tokens" else "refused"
    else:
        stop = "refused" if refused else "tools" if any(kind == "call" for kind, *_ in found) else "end"
    return found, usage, stop


def ask_chat(url: str, request: Request, body: JsonObject) -> Said:
    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
    state: Any = ChatCompletionStreamState()
    finished: Any = None
    for chunk in client.chat.completions.create(**body):
        if chunk.choices and chunk.choices[0].finish_reason:
            finished = chunk.choices[0].finish_reason
        if not finished or not chunk.choices:  # at a stop it would refuse the answers that we look for
            state.handle_chunk(chunk)
    completion = state.current_completion_snapshot
    message = completion.choices[0].message
    found: list[tuple[Any, ...]] = []
    if thinking := getattr(message, "reasoning_content", None):
        found.append(("thinking", thinking, ""))
    if words := message.content or message.refusal:
        found.append(("text", words, ""))
    found += [
        ("call", call.id, call.function.name, parsed(call.function.arguments), "") for call in message.tool_calls or []
    ]
    told = completion.usage
    read, written = told.prompt_tokens_details.cached_tokens, told.prompt_tokens_details.cache_write_tokens
    usage = Usage(told.prompt_tokens - read - written, told.completion_tokens, read, written)
    stops: dict[str, Stop] = {"stop": "end", "tool_calls": "tools", "length": "length", "content_filter": "refused"}
    return found, usage, "refused" if message.refusal else stops[finished]


def ask_google(url: str, request: Request, body: JsonObject) -> Said:
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=url))
    config = types.GenerateContentConfig.model_validate(
        {**body["generationConfig"], **{key: body[key] for key in ("systemInstruction", "tools") if key in body}}
    )
    contents = [types.Content.model_validate(content) for content in body["contents"]]
    chunks = list(client.models.generate_content_stream(model=request.model, contents=contents, config=config))
    found: list[tuple[Any, ...]] = []
    stop: Stop = "end"
    for chunk in chunks:
        if chunk.prompt_feedback:
            stop = "refused"
        for candidate in chunk.candidates or []:
            for part in (candidate.content and candidate.content.parts) or []:
                _add_google(found, part)
            reason = candidate.finish_reason
            if reason in (types.FinishReason.MAX_TOKENS, types.FinishReason.SAFETY):
                stop = "length" if reason == types.FinishReason.MAX_TOKENS else "refused"
    told = chunks[-1].usage_metadata
    assert told is not None
    read = told.cached_content_token_count or 0
    output = (told.candidates_token_count or 0) + (told.thoughts_token_count or 0)
    if stop == "end" and any(kind == "call" for kind, *_ in found):
        stop = "tools"
    return found, Usage((told.prompt_token_count or 0) - read, output, read), stop


def _add_google(found: list[tuple[Any, ...]], part: types.Part) -> None:
    seal = base64.b64encode(part.thought_signature).decode() if part.thought_signature else ""
    if part.function_call:
        call = part.function_call
        found.append(("call", call.id, call.name, call.args or {}, seal))
        return
    kind = "thinking" if part.thought else "text"
    if found and found[-1][0] == kind and not seal and not found[-1][2]:
        found[-1] = (kind, found[-1][1] + (part.text or ""), "")
    elif part.text or seal:
        found.append((kind, part.text or "", seal))


def parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


ASK: dict[str, Callable[[str, Request, JsonObject], Said]] = {
    "anthropic": ask_anthropic,
    "openai": ask_responses,
    "openai-chat": ask_chat,
    "google": ask_google,
}
