"""What do the readers make of servers that are sloppy, odd or hostile?"""

# What goes over a wire is compared line by line, as it is.
# ruff: noqa: E501
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import BadStream, ProviderError, Unavailable
from ra.core.events import TextDelta
from ra.core.messages import Message, Text, Thinking, ToolCall
from ra.core.model import Reply, Usage
from ra.core.value import JsonObject, encode
from ra.providers.dialects import dialect as dialect_of
from ra.testing.wires import wire
from tests.providers.cases import CASES, DIALECTS, MODEL, b64, request


def read(dialect: str, *events: JsonObject) -> Reply:
    reader = dialect_of(dialect).reader(MODEL)
    for event in events:
        list(reader.feed(event))
    return reader.finish()


def chat(*deltas: JsonObject, reason: str | None = "stop", **more: Any) -> list[JsonObject]:
    choices = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return [*choices, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}]


def calls(*fragments: JsonObject) -> JsonObject:
    return {"tool_calls": list(fragments)}


def said(reply: Reply) -> list[tuple[str, JsonObject, str]]:
    return [(call.name, call.args, call.broken) for call in reply.message.calls]


class TestChat:
    def test_missing_usage_is_zero(self) -> None:
        assert read("openai-chat", *chat({"content": "Hi"})) == Reply(
            Message("assistant", (Text("Hi"),), model=MODEL), Usage(), "end"
        )

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
    def test_thinking_is_kept_under_the_name_it_came_by(self, key: str) -> None:
        reply = read("openai-chat", *chat({key: "Hm"}, {key: "m."}, {"content": "Yes"}))
        assert reply.message.blocks == (Thinking("Hmm.", "", key), Text("Yes"))

    def test_thinking_under_both_names_is_read_once(self) -> None:
        reply = read("openai-chat", *chat({"reasoning": "Hm", "reasoning_content": "Hm"}, {"content": "Yes"}))
        assert reply.message.blocks == (Thinking("Hm", "", "reasoning_content"), Text("Yes"))

    def test_openrouters_sealed_reasoning_goes_back_as_it_came(self) -> None:
        first = {"type": "reasoning.text", "index": 0, "text": "Let ", "format": "anthropic-claude-v1"}
        then = {"type": "reasoning.text", "index": 0, "text": "me see.", "signature": "sig"}
        events = chat(
            {"reasoning": "Let ", "reasoning_details": [first]}, {"reasoning_details": [then], "content": "OK"}
        )
        thought = read("openai-chat", *events).message.blocks[0]
        assert isinstance(thought, Thinking)
        asked = request(Message("user", (Text("?"),)), Message("assistant", (thought, Text("OK")), model=MODEL))
        body = dialect_of("openai-chat").body(asked("openai-chat"), CASES[0].info)
        assert body["messages"][2]["reasoning_details"] == [first | then | {"text": "Let me see."}]

    def test_arguments_may_be_an_object(self) -> None:
        reply = read("openai-chat", *chat(calls({"function": {"name": "LS", "arguments": {"path": "."}}})))
        assert said(reply) == [("LS", {"path": "."}, "")]
        assert reply.message.calls[0].id.startswith("ra_")
        assert reply.stop == "tools"

    def test_calls_that_are_all_counted_zero_stay_apart(self) -> None:
        one = {"index": 0, "id": "a", "function": {"name": "LS", "arguments": "{}"}}
        two = {"index": 0, "id": "b", "function": {"name": "Read", "arguments": '{"path":"x"}'}}
        assert said(read("openai-chat", *chat(calls(one), calls(two)))) == [("LS", {}, ""), ("Read", {"path": "x"}, "")]

    def test_calls_without_index_or_id_stay_apart(self) -> None:
        one = {"function": {"name": "LS", "arguments": "{}"}}
        two = {"function": {"name": "Read", "arguments": '{"path":"x"}'}}
        assert said(read("openai-chat", *chat(calls(one, two)))) == [("LS", {}, ""), ("Read", {"path": "x"}, "")]

    def test_a_name_that_is_repeated_in_every_fragment_is_one_call(self) -> None:
        parts = [{"index": 0, "id": "a", "function": {"name": "LS", "arguments": text}} for text in ("{", "}")]
        assert said(read("openai-chat", *chat(*(calls(part) for part in parts)))) == [("LS", {}, "")]

    def test_interleaved_calls(self) -> None:
        deltas = [
            calls({"index": 0, "id": "a", "function": {"name": "A", "arguments": '{"x"'}}),
            calls({"index": 1, "id": "b", "function": {"name": "B", "arguments": '{"y"'}}),
            calls({"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": ":2}"}}),
        ]
        assert said(read("openai-chat", *chat(*deltas))) == [("A", {"x": 1}, ""), ("B", {"y": 2}, "")]

    def test_mistrals_parts(self) -> None:
        thought = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}
        reply = read("openai-chat", *chat(thought, {"content": [{"type": "text", "text": "Yes"}]}))
        assert reply.message.blocks == (Thinking("Hm"), Text("Yes"))

    @pytest.mark.parametrize(
        ("told", "usage"),
        [
            ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(6, 2, 4)),
            ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(6, 2, 4)),
            ({"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 40}, Usage(3, 2, 40)),
            ({"prompt_tokens": 10, "completion_tokens": None, "prompt_tokens_details": None}, Usage(10)),
            (
                {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 3}},
                Usage(5, 5),
            ),
            (
                {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 3}},
                Usage(5, 5),
            ),
        ],
    )  # fmt: skip
    def test_usage_is_disjoint(self, told: JsonObject, usage: Usage) -> None:
        assert read("openai-chat", *chat({"content": "x"}, usage=told)).usage == usage

    def test_an_answer_without_arguments_that_was_cut_is_no_call_to_run(self) -> None:
        events = chat(calls({"index": 0, "id": "a", "function": {"name": "Delete"}}), reason="length")
        reply = read("openai-chat", *events)
        assert (said(reply), reply.stop) == ([("Delete", {}, "…")], "length")


class TestAnthropic:
    def test_hidden_thinking_that_is_not_redacted_goes_back_as_thinking(self) -> None:
        events = [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Yes"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        ]  # fmt: skip
        message = read("anthropic", *events).message
        body = dialect_of("anthropic").body(request(Message("user", (Text("?"),)), message)("anthropic"), CASES[0].info)
        assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "", "signature": "sig"}

    def test_unknown_events_and_blocks_are_ignored(self) -> None:
        events = [
            {"type": "brand_new"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "x"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "sparkle_delta"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hi"}},
            {"type": "message_stop"},
        ]
        assert read("anthropic", *events).message.blocks == (Text("Hi"),)

    @pytest.mark.parametrize(("later", "args"), [("", {"a": 1}), ('{"b":2}', {"b": 2})])
    def test_arguments_given_at_once(self, later: str, args: JsonObject) -> None:
        block = {"type": "tool_use", "id": "x", "name": "T", "input": {"a": 1}}
        events = [
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": later}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        ]
        assert said(read("anthropic", *events)) == [("T", args, "")]


class TestResponses:
    def test_phase_and_several_summaries_go_back(self) -> None:
        reasoning = {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "sealed",
            "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
        }
        content = [{"type": "output_text", "text": "Done."}]
        message = {"type": "message", "id": "m", "role": "assistant", "phase": "final_answer", "content": content}
        events = [
            {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
            {"type": "response.output_item.done", "output_index": 1, "item": message},
            {"type": "response.completed", "response": {"status": "completed"}},
        ]
        assert read("openai", *events).message.blocks == (
            Thinking("One.\n\nTwo.", "sealed", "rs_1"),
            Text("Done.", "final_answer"),
        )

    def test_a_server_that_tells_everything_at_the_end(self) -> None:
        call = {"type": "function_call", "call_id": "c", "name": "LS", "arguments": "{}"}
        event = {"type": "response.completed", "response": {"status": "completed", "output": [call]}}
        assert read("openai", event).message.calls == (ToolCall("c", "LS", {}),)

    def test_deltas_that_name_only_their_item(self) -> None:
        item = {"type": "function_call", "id": "fc_7", "call_id": "c", "name": "LS", "arguments": ""}
        events = [
            {"type": "response.output_item.added", "output_index": 3, "item": item},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_7", "delta": '{"a":1}'},
            {"type": "response.completed", "response": {"status": "completed"}},
        ]
        assert read("openai", *events).message.calls == (ToolCall("c", "LS", {"a": 1}),)


class TestGoogle:
    def test_signed_parts_are_not_merged(self) -> None:
        parts = [{"text": "A"}, {"text": "B"}, {"text": "C", "thoughtSignature": b64("s")}, {"text": "D"}]
        event = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
        assert read("google", event).message.blocks == (Text("AB"), Text("C", b64("s")), Text("D"))

    def test_thinking_counts_as_output_and_the_cache_as_its_own(self) -> None:
        counts = {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 60,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 7,
            "toolUsePromptTokenCount": 3,
        }
        event = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": counts}
        assert read("google", event).usage == Usage(43, 12, 60)

    @pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII"])
    def test_refusals(self, reason: str) -> None:
        assert read("google", {"candidates": [{"finishReason": reason}]}).stop == "refused"


def test_lone_surrogates_become_text_that_can_be_stored() -> None:
    reader = dialect_of("openai-chat").reader(MODEL)
    events = chat(
        {"content": "a\ud800b"}, calls({"index": 0, "function": {"name": "T", "arguments": '{"x":"\\udfff"}'}})
    )
    deltas = [delta for event in events for delta in reader.feed(event)]
    reply = reader.finish()
    assert deltas[0] == TextDelta("a?b")
    assert said(reply) == [("T", {"x": "?"}, "")]
    assert encode(reply)
    given = {"functionCall": {"name": "T", "args": {"x": ["\ud800"]}}}
    event = {"candidates": [{"content": {"parts": [given]}, "finishReason": "STOP"}]}
    assert said(read("google", event)) == [("T", {"x": ["?"]}, "")]


@pytest.mark.parametrize(
    "raw", ["[" * 100_000, '{"a":' * 100_000, "null", "[1]", '"x"', '{"a": NaN}', "{} {}", '{"a":1']
)
def test_arguments_that_are_no_object_never_run(raw: str) -> None:
    reply = read("openai-chat", *chat(calls({"index": 0, "id": "a", "function": {"name": "T", "arguments": raw}})))
    assert said(reply) == [("T", {}, raw)]


def test_a_raw_line_break_in_an_argument_is_forgiven() -> None:
    fragment = {"index": 0, "id": "a", "function": {"name": "T", "arguments": '{"text": "a\nb"}'}}
    assert said(read("openai-chat", *chat(calls(fragment)))) == [("T", {"text": "a\nb"}, "")]


@pytest.mark.parametrize(
    ("dialect", "event"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        ("openai", {"type": "error", "code": "server_error", "message": "x"}),
        ("openai", {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}),
        ("openai-chat", {"error": {"message": "x", "code": 502}}),
        ("google", {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}),
    ],
)
def test_after_an_error_in_the_stream_the_partial_can_still_be_had(dialect: str, event: JsonObject) -> None:
    reader = dialect_of(dialect).reader(MODEL)
    with pytest.raises(Unavailable):
        list(reader.feed(event))
    with pytest.raises(BadStream) as caught:
        reader.finish()
    assert caught.value.partial == Message("assistant", (), model=MODEL)


STREAMS = {
    dialect: [
        [
            decoded
            for frame in wire(dialect).frames(case.step, Usage(5, 5, 5, 5), {}, model=MODEL, number=1)
            for decoded in [frame.split(b"data: ", 1)[1].strip()]
            if decoded != b"[DONE]"
        ]
        for case in CASES
    ]
    for dialect in DIALECTS
}
ODD = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "x", "\ud800", [], [1], ["x"], {}, {"type": "x"}, [{}], 10**30, 1e300]
)


@settings(max_examples=100, deadline=None)
@given(st.data())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_value_of_the_wrong_type_is_a_provider_error_and_nothing_else(dialect: str, data: st.DataObject) -> None:
    events = [json.loads(raw) for raw in data.draw(st.sampled_from(STREAMS[dialect]))]
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(data.draw(st.sampled_from(events)), data)
    try:
        read(dialect, *copy.deepcopy(events))
    except ProviderError:
        return
    except Exception as error:
        raise AssertionError(events) from error


def spoil(node: Any, data: st.DataObject) -> None:
    """Put something odd in place of one value, somewhere down in an event."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
        spoil(node[key], data)
    else:
        node[key] = copy.deepcopy(data.draw(ODD))  # it may be spoilt in its turn


NO_COUNTS = ["12", -5, 1.5, True, [1], {"a": "b"}, float("inf"), float("nan")]
USAGES: dict[str, tuple[JsonObject, JsonObject]] = {
    "anthropic": ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"input_tokens": 3}),
    "openai": ({"type": "response.completed"}, {"input_tokens": 3}),
    "openai-chat": ({"choices": []}, {"prompt_tokens": 3}),
    "google": ({}, {"promptTokenCount": 3}),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("bogus", NO_COUNTS)
def test_a_figure_that_is_no_count_costs_no_answer(dialect: str, bogus: object) -> None:
    event, good = USAGES[dialect]
    key = "usageMetadata" if dialect == "google" else "usage"

    def told(usage: object) -> Usage:
        reader = dialect_of(dialect).reader(MODEL)
        holder = {"response": {"usage": usage, "status": "completed"}} if dialect == "openai" else {key: usage}
        list(reader.feed(event | holder))
        return reader.usage

    assert told(good) == Usage(3)
    assert told(dict.fromkeys(good, bogus) | {"service_tier": "standard", "other_tokens": 3}) == Usage()
    assert told("nothing") == Usage()
