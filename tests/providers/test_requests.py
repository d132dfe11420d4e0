"""Would a provider take every request that a session can lead to? And do effort, names and marks follow the rules?"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.messages import Document, Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.core.model import Effort, Marks, ModelInfo, Request, Section
from ra.core.value import JsonObject, encode
from ra.providers.dialects import dialect as dialect_of
from ra.testing.wires import wire
from tests.providers.cases import DIALECTS, LS, MODEL, PDF, PNG, READ, SYSTEM, request

TEXTS = st.sampled_from(["", " ", "\n", "Hello", "你好 👋", "</context>", "x" * 100])
PLAIN = (
    st.builds(Text, TEXTS)
    | st.just(Image("image/png", PNG))
    | st.sampled_from([Document("application/pdf", PDF, "a.pdf"), Document("text/plain", b"\xff", "")])
)
THOUGHTS = st.builds(
    Thinking,
    st.sampled_from(["", "Hm."]),
    st.sampled_from(["", "c2VhbA=="]),
    st.sampled_from(["", "rs_1", "reasoning"]),
)
MODELS = st.sampled_from([MODEL, "gemini-3-pro", "other"])
THINKING = st.sampled_from(["none", "budget", "effort", "adaptive"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """What a session can hold: any text, thinking first, each call with its result in order, context in between."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(Message("user", tuple(draw(st.lists(PLAIN, max_size=3)))))
        if draw(st.booleans()):
            messages.append(say("system", draw(TEXTS), name="env"))
        calls = [
            ToolCall(
                f"call.{turn}:{i}",  # ids of other providers may hold anything
                "Read",
                {"path": "a"},
                draw(st.sampled_from(["", "{oops"])),
                draw(st.sampled_from(["", "c2VhbA=="])),
            )
            for i in range(draw(st.integers(0, 3)))
        ]
        said = [*draw(st.lists(THOUGHTS, max_size=2)), *draw(st.lists(st.builds(Text, TEXTS), max_size=2)), *calls]
        messages.append(Message("assistant", tuple(said), model=draw(MODELS)))
        for call in calls:
            content = tuple(draw(st.lists(PLAIN, max_size=2)))
            messages.append(Message("tool", (ToolResult(call.id, call.name, content, draw(st.booleans())),)))
    messages.append(say("user", "Go on."))
    return messages[draw(st.sampled_from([0, 0, 1])) :]


@settings(max_examples=100, deadline=None)
@given(st.data())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_provider_takes_every_conversation(dialect: str, data: st.DataObject) -> None:
    messages = tuple(data.draw(conversations()))
    model = data.draw(MODELS)
    effort = data.draw(st.sampled_from([Effort(), Effort("low", 1024), Effort("high", 32_000)]))
    marks = Marks(
        tools=data.draw(st.booleans()),
        sections=tuple(data.draw(st.lists(st.integers(0, 2), max_size=3))),
        messages=tuple(data.draw(st.lists(st.integers(0, len(messages) - 1), max_size=4))),
    )
    sections = (SYSTEM, Section("empty", "stable", ""), Section("notes", "stable", "Milk.", role="user"))
    info = ModelInfo(model, max_output=data.draw(st.sampled_from([4096, 64_000])), thinking=data.draw(THINKING))
    asked = Request(model, sections, messages, (READ, LS), effort, marks=marks)
    body = dialect_of(dialect).body(asked, info)
    assert wire(dialect).fault(body, model=model) == ""
    assert encode(dialect_of(dialect).body(asked, info)) == encode(body)


@settings(max_examples=100, deadline=None)
@given(conversations(), st.data())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_longer_conversation_extends_the_body(dialect: str, messages: list[Message], data: st.DataObject) -> None:
    ends = [i for i, message in enumerate(messages) if message.role == "assistant"]
    end = data.draw(st.sampled_from(ends)) if ends else len(messages)
    before, after = (spoken(dialect, request(*part)(dialect)) for part in (messages[:end], messages))
    assert after[: len(before)] == before


def spoken(dialect: str, asked: Request) -> list[Any]:
    """The blocks of the conversation in order, whatever message they were put into."""
    body = dialect_of(dialect).body(asked, ModelInfo(MODEL))
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    found: list[Any] = []
    for message in messages:
        content = message.get("content") or message.get("parts")
        role = message.get("role")
        if dialect == "openai-chat" and role == "user":
            parts = [{"text": content}] if isinstance(content, str) else content
            for part in parts:  # letter by letter: what is said next may join the same text
                found += [(role, letter) for letter in part["text"].replace("\n", "")] if "text" in part else [part]
        elif isinstance(content, list):
            found += [(role, encode(block)) for block in content]
        else:
            found.append(encode(message))
    return found


@pytest.mark.parametrize(("dialect", "key"), [("anthropic", "messages"), ("google", "contents")])
def test_a_conversation_that_begins_with_the_assistant_is_given_a_first_word(dialect: str, key: str) -> None:
    asked = Request(MODEL, (), (Message("assistant", (Text("Hi."),), model=MODEL), say("user", "Hello")))
    made = dialect_of(dialect).body(asked, ModelInfo(MODEL))
    assert [turn["role"] for turn in made[key]] == ["user", "assistant" if key == "messages" else "model", "user"]
    assert wire(dialect).fault(made, model=MODEL) == ""


def test_a_file_that_anthropic_cannot_read_is_named() -> None:
    asked = Request("m", (), (Message("user", (Document("application/zip", b"PK", "a.zip"),)),))
    assert dialect_of("anthropic").body(asked, ModelInfo("m"))["messages"][0]["content"] == [
        {"type": "text", "text": "[a.zip: application/zip cannot be read by this model]"}
    ]


HELLO = say("user", "Hello")


def body(dialect: str, info: ModelInfo, **changes: Any) -> JsonObject:
    return dialect_of(dialect).body(Request(info.id, (), (HELLO,), **changes), info)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("effort", "thinking"), [(Effort(), "budget"), (Effort(), "effort"), (Effort("high", 9000), "none")]
)
def test_without_effort_nothing_is_said_about_thinking(dialect: str, effort: Effort, thinking: Any) -> None:
    made = body(dialect, ModelInfo("m", thinking=thinking), effort=effort)
    assert not {"thinking", "output_config", "reasoning", "reasoning_effort"} & set(made)
    assert "thinkingConfig" not in made.get("generationConfig", {})


def test_adaptive_thinking_is_left_to_the_model() -> None:
    made = body("anthropic", ModelInfo("m", max_output=64_000, thinking="adaptive"), effort=Effort("medium", 16_000))
    assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert made["output_config"] == {"effort": "medium"}
    assert made["max_tokens"] == 24_192


@pytest.mark.parametrize(
    ("most", "wanted", "budget", "limit", "given"),
    [
        (64_000, 8192, 2048, 8192, 2048),
        (64_000, 8192, 32_000, 40_192, 32_000),
        (32_000, 8192, 32_000, 32_000, 30_976),
        (8192, 8192, 16_000, 8192, 7168),
        (1000, 1000, 16_000, 2048, 1024),
        (64_000, 8192, 10, 8192, 1024),
    ],
)
def test_the_output_limit_exceeds_the_budget_and_stays_within_the_models(
    most: int, wanted: int, budget: int, limit: int, given: int
) -> None:
    info = ModelInfo("m", max_output=most, thinking="budget")
    made = body("anthropic", info, effort=Effort("high", budget), max_output=wanted)
    assert (made["max_tokens"], made["thinking"]["budget_tokens"]) == (limit, given)


def test_gemini_models_with_levels_get_a_level() -> None:
    made = body("google", ModelInfo("gemini-3-pro", thinking="effort"), effort=Effort("high", 24_576))
    assert made["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "HIGH"}


@pytest.mark.parametrize(
    ("model", "own"),
    [
        ("gpt-5.6", True),
        ("openai/gpt-4.1", True),
        ("o3-mini", True),
        ("gpt-oss-20b", False),
        ("openai/gpt-oss-120b", False),
        ("llama3.2", False),
        ("olmo-2", False),
        ("qwen3", False),
    ],
)
def test_openais_own_models_get_its_newer_names(model: str, own: bool) -> None:
    asked = Request(model, (), (HELLO, say("system", "Now.", name="env")), cache_key="k")
    made = dialect_of("openai-chat").body(asked, ModelInfo(model))
    assert ("max_completion_tokens" in made, "max_tokens" in made) == (own, not own)
    assert ("prompt_cache_key" in made) == own
    assert [message["role"] for message in made["messages"]] == (["user", "system"] if own else ["user"])


def test_no_more_than_four_marks_and_the_deepest_are_kept() -> None:
    said = [say("user" if i % 2 == 0 else "assistant", f"{i}") for i in range(9)]
    marks = Marks(tools=True, sections=(0,), messages=(2, 4, 6, 8))
    made = dialect_of("anthropic").body(Request("m", (SYSTEM,), tuple(said), (READ,), marks=marks), ModelInfo("m"))
    marked = [i for i, message in enumerate(made["messages"]) if "cache_control" in message["content"][-1]]
    assert marked == [2, 4, 6, 8]
    assert "cache_control" not in made["system"][0]


def test_a_key_stands_in_the_header_that_the_provider_reads_and_none_without_a_key() -> None:
    assert {name: dialect_of(name).headers("k") for name in DIALECTS} == {
        "anthropic": {"anthropic-version": "2023-06-01", "x-api-key": "k"},
        "openai": {"authorization": "Bearer k"},
        "openai-chat": {"authorization": "Bearer k"},
        "google": {"x-goog-api-key": "k"},
    }
    assert all("k" not in dialect_of(name).headers("").values() for name in DIALECTS)
    assert {name: dialect_of(name).path(Request("models/m", (), ())) for name in DIALECTS} == {
        "anthropic": "/v1/messages",
        "openai": "/v1/responses",
        "openai-chat": "/v1/chat/completions",
        "google": "/v1beta/models/m:streamGenerateContent?alt=sse",
    }


@pytest.mark.parametrize(
    ("dialect", "model", "thinking", "told"),
    [
        ("openai", "gpt-5.2", "effort", {"reasoning": {"effort": "none"}}),
        ("openai", "gpt-5-mini-2025-08-07", "effort", {"reasoning": {"effort": "minimal"}}),
        ("openai", "gpt-6-sol", "effort", {"reasoning": {"effort": "none"}}),
        ("openai", "o3", "effort", {}),
        ("openai", "gpt-5-pro", "effort", {}),
        ("openai", "gpt-4.1", "none", {}),
        ("openai-chat", "gpt-5.1", "effort", {"reasoning_effort": "none"}),
        ("openai-chat", "qwen3-32b", "none", {}),
        ("google", "gemini-2.5-flash", "budget", {"thinkingConfig": {"thinkingBudget": 0}}),
        ("google", "gemini-3-flash", "effort", {"thinkingConfig": {"thinkingLevel": "MINIMAL"}}),
        ("google", "gemini-2.5-pro", "budget", {}),
    ],
)
def test_off_asks_for_no_thinking_in_the_providers_own_way(
    dialect: str, model: str, thinking: Any, told: JsonObject
) -> None:
    asked = Request(model, (), (say("user", "Hi"),))
    body = dialect_of(dialect).body(asked, ModelInfo(model, thinking=thinking))
    body |= body.get("generationConfig", {})
    keys = ("reasoning", "reasoning_effort", "thinkingConfig")
    assert {key: body[key] for key in keys if key in body} == told
