"""Gateways: Claude's cache marks and signed thinking in their forms, answers that do not stream, variables, hints."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ra.core.errors import UserError
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.core.model import Marks, Reply, Request, Section, ToolSpec, Usage
from ra.core.value import JsonObject, encode
from ra.providers import account, connect
from ra.providers.dialects import dialect
from ra.providers.errors import failure
from ra.providers.retry import Retries
from ra.providers.settings import ProviderSettings
from tests.providers.transports.raw import RawServer

MARK = {"cache_control": {"type": "ephemeral"}}
CALL = ToolCall("c1", "Read", {"path": "a"})
PIXEL = Image("image/png", b"x")


def request(model: str, *messages: Message) -> Request:
    sections = (Section("system", "pinned", "Be brief."), Section("AGENTS.md", "stable", "Rules."))
    tools = (ToolSpec("Read", "Read.", {"type": "object", "properties": {}}),)
    marks = Marks(tools=True, sections=(1,), messages=(len(messages) - 1,))
    return Request(model, sections, messages, tools, marks=marks)


def talk(model: str) -> Request:
    result = Message("tool", (ToolResult("c1", "Read", (Text("print(1)"),)),))
    return request(model, say("user", "Hi"), Message("assistant", (CALL,), model=model), result)


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4.5", "claude-sonnet-4-6", "bedrock/eu.anthropic.claude-x"])
def test_chat_completions_carry_marks_for_claude(model: str) -> None:
    body = connect.body("openai-chat", talk(model))
    assert body["messages"] == [
        {
            "role": "system",
            "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Rules."} | MARK],
        },
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "print(1)"} | MARK]},
    ]


def test_responses_carry_marks_for_claude() -> None:
    body = connect.body("openai", talk("claude-sonnet-4-6"))
    assert "instructions" not in body
    assert body["input"] == [
        {
            "type": "message",
            "role": "system",
            "content": [{"type": "input_text", "text": "Be brief."}, {"type": "input_text", "text": "Rules."} | MARK],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": '{"path":"a"}'},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "print(1)"} | MARK],
        },
    ]


@pytest.mark.parametrize("provider", ["openai", "openai-chat"])
def test_other_models_get_no_marks(provider: str) -> None:
    assert "cache_control" not in str(connect.body(provider, talk("gpt-5.2")))


def test_models_of_other_vendors_are_not_told_to_think_less_in_openais_words() -> None:
    asked = {
        model: connect.body("openai", talk(model)).get("reasoning")
        for model in ("gpt-5.2", "azure/gpt-5.2", "gemini-2.5-flash", "gemini-3-flash-preview", "claude-sonnet-4-6")
    }
    assert asked == dict.fromkeys(asked) | {"gpt-5.2": {"effort": "none"}, "azure/gpt-5.2": {"effort": "none"}}


def test_models_of_other_vendors_get_no_cache_key() -> None:
    asked = {
        model: "prompt_cache_key" in connect.body("openai", structs.replace(talk(model), cache_key="s1"))
        for model in ("gpt-5.2", "my-deployment", "gemini-2.5-pro", "claude-sonnet-4-6")
    }
    assert asked == {"gpt-5.2": True, "my-deployment": True, "gemini-2.5-pro": False, "claude-sonnet-4-6": False}


@pytest.mark.parametrize("model", ["ft:gpt-4o-mini-2024-07-18:acme::x1", "GPT-5.2", "codex-mini-latest", "azure/O3"])
def test_models_of_openai_are_recognised_however_they_are_written(model: str) -> None:
    bodies = [connect.body(name, structs.replace(talk(model), cache_key="s1")) for name in ("openai", "openai-chat")]
    assert [body.get("prompt_cache_key") for body in bodies] == ["s1", "s1"]


def test_pictures_of_results_follow_all_results_for_claude_too() -> None:
    calls = (CALL, ToolCall("c2", "Read", {"path": "b"}))
    results = [Message("tool", (ToolResult(call.id, "Read", (Text("seen"), PIXEL)),)) for call in calls]
    body = connect.body("openai-chat", request("claude-x", say("user", "Hi"), Message("assistant", calls), *results))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [part["type"] for part in body["messages"][-1]["content"]] == ["image_url", "image_url"]


def replayed(*deltas: JsonObject) -> tuple[Message, JsonObject]:
    """What a stream of deltas becomes, and how it is said again."""
    reader = dialect("openai-chat").reader("claude-x")
    for delta in deltas:
        list(reader.feed({"choices": [{"index": 0, "delta": delta}]}))
    list(reader.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    message = reader.finish().message
    body = connect.body("openai-chat", Request("claude-x", (), (say("user", "Hi"), message, say("user", "And?"))))
    return message, body["messages"][1]


def test_litellms_signed_thinking_is_read_and_said_again() -> None:
    message, turn = replayed(
        {"reasoning_content": "Hm", "thinking_blocks": [{"type": "thinking", "thinking": "Hm", "signature": None}]},
        {"reasoning_content": ".", "thinking_blocks": [{"type": "thinking", "thinking": ".", "signature": None}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "seal"}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": "dark"}]},
        {"content": "Hello."},
    )
    assert [block.text for block in message.blocks if isinstance(block, Thinking)] == ["Hm."]
    assert turn["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "seal"},
        {"type": "redacted_thinking", "data": "dark"},
    ]


def test_openrouters_signed_thinking_is_read_and_said_again() -> None:
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "seal", "index": 0}]
    _, turn = replayed({"reasoning": "Hm.", "reasoning_details": details}, {"content": "Hello."})
    assert turn["reasoning_details"] == details


def test_litellms_cache_figures_are_read() -> None:
    reader = dialect("openai-chat").reader("claude-x")
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 30},
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
    }
    list(reader.feed({"choices": [], "usage": usage}))
    assert reader.usage == Usage(10, 5, 60, 30)


WHOLE: dict[str, JsonObject] = {
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "seal"},
            {"type": "text", "text": "Hello."},
            {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "openai": {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
            {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": '{"path": "a"}'},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "openai-chat": {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "content": "Hello.",
                    "tool_calls": [{"id": "c1", "function": {"name": "Read", "arguments": '{"path": "a"}'}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    },
    "google": {
        "candidates": [
            {
                "content": {"parts": [{"text": "Hello."}, {"functionCall": {"name": "Read", "args": {"path": "a"}}}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
    },
}


@pytest.mark.parametrize("provider", WHOLE)
def test_an_answer_that_does_not_stream_is_an_answer(provider: str) -> None:
    reader = dialect(provider).reader("m")
    deltas: list[Any] = list(reader.feed(WHOLE[provider]))
    reply = reader.finish()
    assert [delta.text for delta in deltas if hasattr(delta, "text")][-1] == "Hello."
    assert (reply.message.text, [call.args for call in reply.message.calls], reply.stop) == (
        "Hello.",
        [{"path": "a"}],
        "tools",
    )
    assert (reply.usage.input, reply.usage.output) == (7, 3)


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("provider", WHOLE)
def test_an_answer_that_does_not_stream_is_an_answer_over_both_transports(provider: Any, transport: Any) -> None:
    body = encode(WHOLE[provider])
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"

    async def main() -> Reply:
        async with RawServer([[head.encode() + body]]).running() as server:
            settings = ProviderSettings(base_url=server.url, api_key="k")
            once = Retries(tries=1)
            client = connect.connect(
                provider, "m", settings, {}, transport=transport, data_dir=Path("unused"), retries=once
            )
            items = [item async for item in client.stream(Request("m", (), (say("user", "Hi"),)))]
            await client.close()
            assert isinstance(items[-1], Reply)
            return items[-1]

    reply = asyncio.run(main())
    assert (reply.message.text, [call.name for call in reply.message.calls], reply.usage.input) == (
        "Hello.",
        ["Read"],
        7,
    )


# --- variables and hints ---


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("gpu", "http://gpu:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("https://ollama.example.com", "https://ollama.example.com:443/v1"),
        ("http://[::1]:1/x/", "http://[::1]:1/x/v1"),
    ],
)
def test_ollama_is_found_where_its_variable_says(host: str, url: str) -> None:
    env = {"OLLAMA_HOST": host}
    assert connect.choose(env) == "openai-chat"
    assert account.account("openai-chat", ProviderSettings(), env).base_url == url


def test_a_broken_address_of_ollama_is_a_sentence() -> None:
    with pytest.raises(UserError, match="OLLAMA_HOST is"):
        account.account("openai-chat", ProviderSettings(), {"OLLAMA_HOST": "host:many"})


def test_openrouter_is_found_by_its_key_and_openais_variables_come_first() -> None:
    env = {"OPENROUTER_API_KEY": "or-key"}
    assert connect.choose(env) == "openai-chat"
    found = account.account("openai-chat", ProviderSettings(), env)
    assert (found.base_url, found.api_key) == (account.OPENROUTER, "or-key")
    own = account.account("openai-chat", ProviderSettings(), env | {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert (own.base_url, own.api_key) == ("http://127.0.0.1:1/v1", "")
    assert connect.choose(env | {"ANTHROPIC_AUTH_TOKEN": "t"}) == "anthropic"


def test_a_404_of_responses_names_the_other_dialect() -> None:
    assert "--provider openai-chat" in str(failure(404, {}, b"", provider="openai"))
    assert "--provider openai-chat" not in str(failure(404, {}, b"", provider="openai-chat"))


def test_the_sdks_tell_of_certificates_as_we_do() -> None:
    import ssl

    from ra.providers.transports.sdk import _unreachable

    wrong = ssl.SSLCertVerificationError(1, "certificate verify failed")
    wrong.verify_message = "self-signed certificate"
    error = OSError("connect failed")
    error.__cause__ = wrong
    outer = OSError("Connection error.")
    outer.__context__ = error
    assert "SSL_CERT_FILE" in str(_unreachable(outer))


@pytest.mark.parametrize("provider", ["openai", "openai-chat"])
def test_claude_is_not_asked_to_think_on_where_the_gateway_dropped_its_thinking(provider: str) -> None:
    import msgspec

    from ra.core.model import Effort, ModelInfo

    info, low = ModelInfo("claude-x", thinking="effort"), Effort("low", 1024)
    loop = msgspec.structs.replace(talk("claude-x"), effort=low)
    begun = msgspec.structs.replace(loop, messages=loop.messages[:1])
    key = "reasoning" if provider == "openai" else "reasoning_effort"
    assert key not in dialect(provider).body(loop, info)
    assert key in dialect(provider).body(begun, info)
