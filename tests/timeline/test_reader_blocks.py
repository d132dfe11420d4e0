"""Is every kind of block and entry that transcripts hold read as what it is, and the unknown told?"""

import base64
from pathlib import Path
from typing import Any

import pytest

from ra.core.facts import Failed, Interrupted, Said
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.timeline.importers import read
from ra.timeline.importers.blocks import block_of, blocks_of, contents_of
from ra.timeline.importers.lines import Skips, elements
from ra.timeline.importers.transcript import moment, provider_of
from tests.timeline.test_readers import at, codex_item, codex_line, pi_message, written

HI = base64.b64encode(b"hi").decode()


@pytest.mark.parametrize(
    ("raw", "block"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": ""}, None),
        ({"type": "refusal", "refusal": "no"}, Text("no")),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, Thinking("hm", "s")),
        ({"type": "redacted_thinking", "data": "sealed"}, Thinking("", "sealed")),
        ({"type": "image", "source": {"media_type": "image/gif", "data": HI}}, Image("image/gif", b"hi")),
        ({"type": "image", "data": HI}, Image("image/png", b"hi")),
        ({"type": "image", "data": "a"}, None),
        ({"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{HI}"}}, Image("image/webp", b"hi")),
        ({"type": "input_image", "image_url": "https://a.example/b.png"}, Text("[image: https://a.example/b.png]")),
        ({"type": "input_image"}, None),
        (
            {"type": "document", "title": "t", "source": {"media_type": "application/pdf", "data": HI}},
            Document("application/pdf", b"hi", "t"),
        ),
        ({"type": "document", "source": {"type": "url"}}, None),
        ({"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}}, ToolCall("1", "n", {"a": 1})),
        ({"type": "toolCall", "id": "1", "name": "n", "arguments": '{"a": 1}'}, ToolCall("1", "n", {"a": 1})),
        ({"type": "toolCall", "id": "1", "name": "n", "arguments": "{a"}, ToolCall("1", "n", {}, broken="{a")),
        ({"type": "tool_result", "tool_use_id": "1", "content": "x"}, ToolResult("1", "", (Text("x"),))),
        ({"type": "novelty"}, None),
        ({}, None),
    ],
)
def test_blocks(raw: dict[str, Any], block: Block | None) -> None:
    assert block_of(raw) == block
    assert blocks_of([raw, "plain"]) == [*([block] if block else []), Text("plain")]


def test_the_result_of_a_tool_that_is_no_list_of_blocks_is_kept_as_json() -> None:
    assert contents_of([{"answer": 42}]) == (Text('[{"answer":42}]'),)
    assert contents_of([]) == ()


def test_what_else_a_codex_rollout_holds(tmp_path: Path) -> None:
    path = written(
        tmp_path / "rollout-1.jsonl",
        codex_line(1, "session_meta", id="x", cwd="/p", timestamp=at(1)),
        codex_item(2, "reasoning", summary=[]),
        codex_item(3, "local_shell_call", call_id="c1", action={"command": ["ls"]}),
        codex_item(4, "web_search_call"),
        {"timestamp": at(5), "type": "response_item", "payload": {}},
        codex_line(6, "event_msg", type="stream_error", message="gone"),
        codex_line(7, "event_msg", type="turn_aborted"),
        {"timestamp": at(8), "type": "novelty"},
        {"timestamp": at(9), "type": 7},
    )
    (found,) = read(path)
    assert [event.fact for event in found.events] == [
        Said(Message("assistant", (ToolCall("c1", "shell", {"command": ["ls"]}),))),
        Failed("provider", "gone"),
        Interrupted("aborted"),
    ]
    assert found.skipped == [
        "line 5: an item without a type",
        "line 8: unknown entry 'novelty'",
        "line 9: no entry of a rollout",
    ]


def test_what_else_a_pi_session_holds(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        {"type": "session", "id": "x", "timestamp": at(1), "cwd": "/p"},
        {"type": "branch_summary", "timestamp": at(2), "summary": "the other branch"},
        {"type": "custom_message", "timestamp": at(3), "customType": "note", "content": "mind"},
        pi_message(4, "bashExecution", None, command="ls", output="a", excludeFromContext=True),
        pi_message(5, "hookMessage", "from a hook"),
        pi_message(6, "compactionSummary", None, summary="so far"),
        pi_message(7, "novelty", "x"),
    )
    (found,) = read(path)
    assert [event.fact for event in found.events] == [
        Said(say("user", "the other branch", name="branch summary")),
        Said(say("user", "mind", name="note")),
        Said(say("user", "from a hook", name="extension")),
        Said(say("user", "so far", name="summary")),
    ]
    assert found.skipped == ["line 7: unknown role 'novelty'"]


def test_what_is_neither_event_nor_text_of_ours_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", {"format": "ra-timeline", "version": 1, "session": "s"}, {"other": 1})
    assert read(path)[0].skipped == ["line 2: neither an event nor a kept text"]


@pytest.mark.parametrize(
    ("document", "found", "told"),
    [
        ('{"a": NaN}', [{"a": None}], []),
        ('[{"a": 1}, {"b": 1', [{"a": 1}], ["element 2: broken; nothing can be read from there on"]),
        ('[{"a": 1}, {"b": 1}] and more', [{"a": 1}, {"b": 1}], []),
        ('{"a": 1', [], ["line 1: not JSON, or cut off"]),
        ('words [{"a": 1}', [], ["line 1: not JSON, or cut off"]),
    ],
)
def test_a_damaged_list_gives_what_stands_before_the_damage(
    tmp_path: Path, document: str, found: list[Any], told: list[str]
) -> None:
    path, skips = tmp_path / "a.json", Skips()
    path.write_text(document)
    assert [value for _, value in elements(path, skips)] == found
    assert skips.notes == told


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1970-01-01T00:00:09+00:00", 9.0),
        ("yesterday", None),
        (True, None),
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000_000, 1_700_000_000.0),
        (float("nan"), None),
        (-1, None),
        (None, None),
    ],
)
def test_moments(value: object, seconds: float | None) -> None:
    assert moment(value) == seconds


def test_whose_model_it_is() -> None:
    names = ("vendor/Claude-x", "o3", "gemini-9", "other")
    assert [provider_of(name) for name in names] == ["anthropic", "openai", "google", ""]
