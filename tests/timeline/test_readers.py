"""Are the transcripts of other programs read as what they are?"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ra.core.errors import UserError
from ra.core.facts import Configured, Cut, Edited, Failed, Interrupted, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, result, say
from ra.core.model import Section, Usage
from ra.timeline.importers import Transcript, discover, read
from ra.timeline.sqlite import SqliteStore

BASE = 1_700_000_000


def at(second: int) -> str:
    return datetime.fromtimestamp(BASE + second, UTC).isoformat().replace("+00:00", "Z")


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def numbered(*facts: tuple[float, Any]) -> list[TimelineEvent]:
    return [TimelineEvent(place, BASE + time, fact) for place, (time, fact) in enumerate(facts, 1)]


def answer(*blocks: Any, model: str = "claude-x") -> Said:
    return Said(Message("assistant", blocks, model=model))


CALL = ToolCall("t1", "read", {"path": "a.py"})
CLAUDE = Configured("anthropic", "claude-x", "timeline")

# pi


def pi_usage(cost: float) -> dict[str, Any]:
    return {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": cost}}


def pi_message(second: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": at(second), "message": {"role": role, "content": content, **more}}


def test_a_pi_session_with_its_bill_its_cuts_and_its_compaction(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.py"}}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    path = written(
        tmp_path / "s.jsonl",
        {"type": "session", "id": "x", "timestamp": at(1), "cwd": "/home/p", "modelId": "claude-x"},
        pi_message(10, "user", "hello"),
        pi_message(
            12,
            "assistant",
            [thought, call],
            model="claude-x",
            usage=pi_usage(5e-05),
            stopReason="toolUse",
            timestamp=(BASE + 11) * 1000,
        ),
        pi_message(13, "toolResult", [image], toolCallId="t1", toolName="read", isError=True),
        {"type": "thinking_level_change", "timestamp": at(13), "thinkingLevel": "high"},
        pi_message(14, "assistant", [], model="claude-x", usage=pi_usage(0), stopReason="aborted", errorMessage="stop"),
        pi_message(15, "assistant", [{"type": "text", "text": "par"}], stopReason="error", errorMessage="529"),
        {"type": "compaction", "timestamp": at(16), "summary": "so far", "firstKeptEntryIndex": 3, "tokensBefore": 99},
        {"type": "message", "timestamp": at(17), "message": {"role": "bashExecution", "command": "ls", "output": "a"}},
        {"type": "novelty", "timestamp": at(18)},
    )
    usage = Usage(1, 2, 3, 4)
    assert read(path) == [
        Transcript(
            "s",
            numbered(
                (10.0, Said(say("user", "hello"))),
                (12.0, CLAUDE),
                (12.0, answer(Thinking("hm", "sig"), CALL)),
                (12.0, Spent("claude-x", usage, "0.00005", seconds=1.0)),
                (13.0, Said(Message("tool", (ToolResult("t1", "read", (Image("image/png", b"hi"),), is_error=True),)))),
                (14.0, Interrupted("stop")),
                (14.0, Spent("claude-x", usage, "0")),
                (15.0, Cut(Message("assistant", (Text("par"),), model="claude-x"), "529")),
                (16.0, Rotated("compaction at 99 tokens", "so far", 5)),
                (17.0, Said(say("user", "Ran `ls`\n```\na\n```", name="bash"))),
            ),
            ["line 10: unknown entry 'novelty'"],
            "pi",
            "claude-x",
            "/home/p",
        )
    ]


def test_a_call_of_a_broken_pi_answer_that_was_answered_had_been_made(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.py"}}
    path = written(
        tmp_path / "s.jsonl",
        pi_message(1, "assistant", [call], model="claude-x", stopReason="aborted"),
        pi_message(2, "toolResult", [{"type": "text", "text": "ok"}], toolCallId="t1"),
    )
    assert [event.fact for event in read(path)[0].events] == [CLAUDE, answer(CALL), Said(result(CALL, "ok"))]


def test_a_branch_of_a_pi_session_sets_the_conversation_back(tmp_path: Path) -> None:
    def entry(id: str, parent: str | None, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "id": id, "parentId": parent}

    path = written(
        tmp_path / "s.jsonl",
        {"type": "session", "version": 3, "id": "x", "cwd": "/p", "timestamp": at(1)},
        entry("a", None, pi_message(1, "user", "one")),
        entry("b", "a", pi_message(2, "assistant", "two", model="claude-x")),
        entry("c", "b", {"type": "compaction", "timestamp": at(3), "summary": "sum", "firstKeptEntryId": "b"}),
        entry("d", "c", pi_message(4, "user", "three")),
        entry("e", "c", pi_message(5, "user", "instead")),
        entry("f", "a", pi_message(6, "user", "anew")),
    )
    assert [event.fact for event in read(path)[0].events] == [
        Said(say("user", "one")),
        CLAUDE,
        answer(Text("two")),
        Rotated("compaction at 0 tokens", "sum", 2),
        Said(say("user", "three")),
        Edited("branch", (say("user", "sum", name="summary"), answer(Text("two")).message)),
        Said(say("user", "instead")),
        Edited("branch", (say("user", "one"),)),
        Said(say("user", "anew")),
    ]


# Claude Code


def claude_line(second: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "timestamp": at(second), "sessionId": "s", "cwd": "/p", "message": message, **more}


def claude_answer(second: int, block: dict[str, Any], output: int, id: str = "msg_1", **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "output_tokens": output,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 11,
    }
    return claude_line(second, "assistant", [block], message={"id": id, "model": "claude-x", "usage": usage}, **more)


def test_a_claude_code_answer_spread_over_lines_is_one_message_with_one_bill(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "A title", "leafUuid": "z"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        claude_line(1, "user", "Caveat: …", uuid="u0", isMeta=True),
        claude_line(2, "user", "read both", uuid="u1"),
        claude_answer(3, {"type": "thinking", "thinking": "I", "signature": "sig"}, 1, uuid="a1", parentUuid="u1"),
        claude_answer(
            4, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"p": 1}}, 1, uuid="a2", parentUuid="a1"
        ),
        claude_line(
            5, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "one"}], uuid="r1", parentUuid="a2"
        ),
        claude_answer(6, {"type": "tool_use", "id": "t2", "name": "LS", "input": {}}, 40, uuid="a3", parentUuid="a2"),
        claude_answer(6, {"type": "tool_use", "id": "t2", "name": "LS", "input": {}}, 40, uuid="a3", parentUuid="a2"),
        claude_line(
            7,
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                }
            ],
            uuid="r2",
            parentUuid="a3",
        ),
        claude_answer(8, {"type": "text", "text": "do"}, 2, id="msg_2", uuid="a4", parentUuid="r2", costUSD=0.25),
        claude_answer(8, {"type": "text", "text": "done"}, 5, id="msg_2", uuid="a5", parentUuid="r2"),
        claude_line(9, "user", "thanks", uuid="u2", parentUuid="a5"),
    )
    first, second = ToolCall("t1", "Read", {"p": 1}), ToolCall("t2", "LS", {})
    assert read(path) == [
        Transcript(
            "s",
            numbered(
                (1.0, Said(say("user", "Caveat: …", name="meta"))),
                (2.0, Said(say("user", "read both"))),
                (3.0, CLAUDE),
                (3.0, answer(Thinking("I", "sig"), first, second)),
                (3.0, Spent("claude-x", Usage(3, 40, 11, 7))),
                (5.0, Said(result(first, "one"))),
                (7.0, Said(result(second, "no", is_error=True))),
                (8.0, answer(Text("done"))),
                (8.0, Spent("claude-x", Usage(3, 5, 11, 7), "0.25")),
                (9.0, Said(say("user", "thanks"))),
            ),
            [],
            "claude-code",
            "claude-x",
            "/p",
        )
    ]


def test_what_claude_code_wrote_for_an_hour_has_its_own_price(tmp_path: Path) -> None:
    def line(second: int, output: int, hour: int, minutes: int, id: str) -> dict[str, Any]:
        made = claude_answer(second, {"type": "text", "text": "x" * output}, output, id=id, uuid=f"{id}{output}")
        kept = {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": minutes}
        made["message"]["usage"]["cache_creation"] = kept
        return made

    path = written(
        tmp_path / "s.jsonl",
        claude_line(1, "user", "hi", uuid="u1"),
        line(2, 1, 7, 0, "msg_1"),
        line(2, 9, 7, 0, "msg_1"),
        line(3, 1, 0, 7, "msg_2"),
    )
    (found,) = read(path)
    assert [event.fact for event in found.events if isinstance(event.fact, Spent)] == [
        Spent("claude-x", Usage(3, 9, 11, 7), long_lived=True),
        Spent("claude-x", Usage(3, 1, 11, 7)),
    ]


def test_sub_agents_of_claude_code_are_conversations_of_their_own(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        claude_line(1, "user", "delegate", uuid="u1"),
        claude_line(2, "user", "your task", uuid="x1", isSidechain=True, parentUuid=None),
        claude_answer(3, {"type": "text", "text": "sub"}, 1, id="m1", uuid="x2", parentUuid="x1", isSidechain=True),
        claude_line(4, "user", "named", uuid="y1", isSidechain=True, agentId="abc"),
        claude_answer(5, {"type": "text", "text": "main"}, 1, id="m2", uuid="a1", parentUuid="u1"),
    )
    assert [(t.name, [event.fact for event in t.events if isinstance(event.fact, Said)]) for t in read(path)] == [
        ("s", [Said(say("user", "delegate")), answer(Text("main"))]),
        ("s (x1)", [Said(say("user", "your task")), answer(Text("sub"))]),
        ("s (abc)", [Said(say("user", "named"))]),
    ]


def test_compactions_rewinds_and_errors_of_claude_code(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        claude_line(1, "user", "one", uuid="u1", parentUuid=None),
        claude_answer(2, {"type": "text", "text": "A"}, 1, id="m1", uuid="a1", parentUuid="u1"),
        claude_line(3, "user", "two", uuid="u2", parentUuid="a1"),
        claude_answer(4, {"type": "text", "text": "B"}, 1, id="m2", uuid="a2", parentUuid="u2"),
        claude_line(5, "user", "instead", uuid="u3", parentUuid="a1"),
        claude_line(
            6, "assistant", [{"type": "text", "text": "API Error"}], message={"model": "<synthetic>"}, uuid="e"
        ),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "c",
            "compactMetadata": {"trigger": "auto", "preTokens": 155000},
        },
        claude_line(7, "user", "the summary", uuid="s", parentUuid="c", isCompactSummary=True),
    )
    facts = [event.fact for event in read(path)[0].events if not isinstance(event.fact, Spent | Configured)]
    assert facts == [
        Said(say("user", "one")),
        answer(Text("A")),
        Said(say("user", "two")),
        answer(Text("B")),
        Edited("rewind", (say("user", "one"), Message("assistant", (Text("A"),), model="claude-x"))),
        Said(say("user", "instead")),
        Failed("provider", "API Error"),
        Rotated("auto compaction at 155000 tokens", "the summary", 11),
    ]


# Codex


def codex_line(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": kind, "payload": payload}


def codex_item(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "response_item", "payload": {"type": kind, **payload}}


def codex_tokens(second: int, last: tuple[int, int, int], total: tuple[int, int, int]) -> dict[str, Any]:
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    info = {
        "last_token_usage": dict(zip(names, last, strict=True)),
        "total_token_usage": dict(zip(names, total, strict=True)),
    }
    return codex_line(second, "event_msg", type="token_count", info=info)


def test_a_codex_rollout(tmp_path: Path) -> None:
    path = written(
        tmp_path / "rollout-1.jsonl",
        codex_line(1, "session_meta", id="x", cwd="/p", instructions="be brief", timestamp=at(1)),
        codex_item(2, "message", role="user", content=[{"type": "input_text", "text": "<environment_context>…"}]),
        codex_item(3, "message", role="user", content=[{"type": "input_text", "text": "list"}]),
        codex_line(3, "event_msg", type="user_message", message="list"),
        codex_line(3, "turn_context", model="gpt-5-codex", cwd="/p"),
        codex_item(4, "reasoning", id="r", summary=[{"type": "summary_text", "text": "so"}], encrypted_content="enc"),
        codex_item(4, "message", role="assistant", content=[{"type": "output_text", "text": "I look"}]),
        codex_item(5, "function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
        codex_tokens(5, (100, 60, 9), (100, 60, 9)),
        codex_tokens(5, (100, 60, 9), (100, 60, 9)),
        codex_line(5, "event_msg", type="token_count", info=None, rate_limits={}),
        codex_item(6, "function_call_output", call_id="c1", output="a.py"),
        codex_item(7, "custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
        codex_item(8, "custom_tool_call_output", call_id="c2", output={"content": "failed", "success": False}),
        codex_tokens(9, (0, 0, 0), (150, 100, 12)),
        codex_line(10, "compacted", message="the summary"),
        codex_line(11, "event_msg", type="turn_aborted", reason="interrupted"),
        codex_line(12, "novelty"),
    )
    listing = ToolCall("c1", "shell", {"command": ["ls"]})
    patch = ToolCall("c2", "apply_patch", {"input": "*** Begin"})
    assert read(path) == [
        Transcript(
            "rollout-1",
            numbered(
                (2.0, Said(say("user", "<environment_context>…", name="context"))),
                (3.0, Said(say("user", "list"))),
                (
                    5.0,
                    Configured(
                        "openai", "gpt-5-codex", "timeline", sections=(Section("instructions", "pinned", "be brief"),)
                    ),
                ),
                (5.0, answer(Thinking("so", "enc", "r"), Text("I look"), listing, model="gpt-5-codex")),
                (5.0, Spent("gpt-5-codex", Usage(40, 9, 60))),
                (6.0, Said(result(listing, "a.py"))),
                (7.0, answer(patch, model="gpt-5-codex")),
                (8.0, Said(result(patch, "failed", is_error=True))),
                (9.0, Spent("gpt-5-codex", Usage(10, 3, 40))),
                (10.0, Rotated("compaction", "the summary", 10)),
                (11.0, Interrupted("interrupted")),
            ),
            ["line 18: unknown entry 'novelty'"],
            "codex",
            "gpt-5-codex",
            "/p",
        )
    ]


def test_what_codex_wrote_to_the_cache_is_neither_read_nor_plain_input(tmp_path: Path) -> None:
    def tokens(second: int, whole: int, read: int, written: int) -> dict[str, Any]:
        usage = {
            "input_tokens": whole,
            "cached_input_tokens": read,
            "cache_write_input_tokens": written,
            "output_tokens": second,
        }
        return codex_line(second, "event_msg", type="token_count", info={"total_token_usage": usage})

    path = written(
        tmp_path / "rollout-1.jsonl",
        codex_line(1, "session_meta", id="x", cwd="/p"),
        codex_item(2, "message", role="assistant", content=[{"type": "output_text", "text": "one"}]),
        tokens(2, 1000, 0, 900),
        codex_item(3, "message", role="assistant", content=[{"type": "output_text", "text": "two"}]),
        tokens(3, 2200, 900, 1100),
        codex_item(4, "message", role="assistant", content=[{"type": "output_text", "text": "absurd"}]),
        tokens(4, 2210, 950, 9000),
    )
    (found,) = read(path)
    bills = [event.fact.usage for event in found.events if isinstance(event.fact, Spent)]
    assert bills == [Usage(100, 2, 0, 900), Usage(100, 1, 900, 200), Usage(0, 1, 10, 0)]


def test_an_old_codex_rollout_without_envelopes(tmp_path: Path) -> None:
    path = written(
        tmp_path / "rollout-0.jsonl",
        {"id": "x", "timestamp": at(50), "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "not json", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output": "x"}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ho"}]},
    )
    broken = ToolCall("c", "shell", {}, broken="not json")
    assert read(path)[0].events == numbered(
        (50.0, Said(say("user", "hi"))),
        (50.0, answer(broken, model="")),
        (50.0, Said(result(broken, '{"output": "x"}'))),
        (50.0, answer(Text("ho"), model="")),
    )


def test_what_codex_put_in_place_of_the_history_is_kept(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept words"}]}]
    path = written(
        tmp_path / "rollout.jsonl",
        codex_item(1, "message", role="user", content="one"),
        codex_item(2, "message", role="user", content="two"),
        codex_line(3, "event_msg", type="thread_rolled_back", num_turns=1),
        codex_line(4, "compacted", message="", replacement_history=history),
    )
    assert [event.fact for event in read(path)[0].events[2:]] == [
        Edited("roll back", (say("user", "one"),)),
        Rotated("compaction", "user: kept words", 4),
    ]


# Lists of messages

TALK = [
    {"role": "system", "content": "policy"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"q": 1}'}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    },
    {"role": "tool", "tool_call_id": "c1", "name": "get", "content": "found"},
    {"role": "assistant", "content": "", "function_call": {"name": "put", "arguments": "{}"}},
    {"role": "function", "name": "put", "content": "stored"},
    {"role": "assistant", "content": "done"},
]


def spoken(model: str) -> list[Any]:
    get, put = ToolCall("c1", "get", {"q": 1}), ToolCall("call_5", "put", {})
    return [
        Said(Message("user", (Text("look"), Text("[image: http://x/y]")))),
        Configured("openai" if model else "", model, "timeline", sections=(Section("system", "pinned", "policy"),)),
        answer(get, model=model),
        Spent(model, Usage(6, 2, 4)),
        Said(result(get, "found")),
        answer(put, model=model),
        Said(result(put, "stored")),
        answer(Text("done"), model=model),
    ]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("x.json", json.dumps(TALK)),
        ("x.json", json.dumps({"messages": TALK}, indent=2)),
        ("x.json", json.dumps([{"traj": TALK, "task_id": 4}])),
        ("x.json", json.dumps([TALK])),
        ("x.jsonl", json.dumps({"messages": TALK}) + "\n"),
        ("x.jsonl", "".join(json.dumps(message) + "\n" for message in TALK)),
    ],
)
def test_a_list_of_messages_in_any_wrapping(tmp_path: Path, name: str, document: str) -> None:
    (tmp_path / name).write_text(document)
    (found,) = read(tmp_path / name)
    assert [event.fact for event in found.events] == spoken("")
    assert (found.name, found.skipped) == ("x", [])


def test_many_conversations_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "tau.json").write_text(
        json.dumps(
            [
                {"task_id": 3, "trial": 0, "model": "gpt-4o", "traj": TALK},
                7,
                {"messages": [*TALK[:2], {"role": "referee", "content": "?"}]},
            ]
        )
    )
    first, second = read(tmp_path / "tau.json")
    assert (first.name, first.model, [event.fact for event in first.events]) == ("tau#3.0", "gpt-4o", spoken("gpt-4o"))
    assert (second.name, len(second.events)) == ("tau#3", 1)
    assert first.skipped == [
        "element 2: neither a message nor a conversation",
        "message 3: unknown role 'referee' in tau#3",
    ]


def test_messages_in_the_dialect_of_anthropic(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]},
    ]
    (tmp_path / "x.json").write_text(json.dumps(talk))
    assert [event.fact for event in read(tmp_path / "x.json")[0].events] == [
        Said(say("user", "go")),
        answer(CALL, model=""),
        Said(result(CALL, "text")),
    ]


# Finding them


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5}, Usage(100, 5)),
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}},
            Usage(10, 0, 60, 30),
        ),
        ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}}, Usage(40, 5, 60)),
        (
            {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 7},
            Usage(3, 5, 60, 7),
        ),
    ],
)
def test_a_bill_in_a_list_of_messages_in_any_dialect(tmp_path: Path, usage: dict[str, Any], expected: Usage) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps([{"role": "assistant", "content": "x", "model": "m", "usage": usage}]))
    (found,) = read(path)
    assert [event.fact for event in found.events if isinstance(event.fact, Spent)] == [Spent("m", expected)]


def test_a_directory_is_searched_for_transcripts(tmp_path: Path) -> None:
    deep = tmp_path / "projects" / "p"
    deep.mkdir(parents=True)
    claude = written(deep / "b.jsonl", claude_line(1, "user", "hi", uuid="u"))
    written(deep / "other.jsonl", {"level": "info", "msg": "a log"})
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    listed = tmp_path / "a.json"
    listed.write_text(json.dumps(TALK))
    assert discover(tmp_path) == [listed, claude]
    assert discover(claude) == [claude]


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "none.jsonl")


def test_a_store_is_read_session_by_session(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "timeline.db", clock=lambda: 5.0)
    timeline = store.create("/p")
    events = list(timeline.append(Said(say("user", "hi"))))
    timeline.keep("kept")
    assert read(store.path) == [Transcript(timeline.session, events, [], "ra-timeline", project="/p", texts=["kept"])]
