"""Is a damaged, huge, foreign or hostile file used as far as it goes, and never a crash?"""

import json
import os
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import UserError
from ra.core.facts import Said
from ra.core.messages import say
from ra.timeline.importers import lines, read
from ra.timeline.sqlite import SqliteStore
from tests.strategies import json_objects, json_values

GOOD = json.dumps({"type": "message", "message": {"role": "user", "content": "hello"}}).encode()
HEADER = json.dumps({"type": "session", "cwd": "/p", "id": "x"}).encode()


def reading(content: bytes, name: str = "x.jsonl") -> tuple[int, list[str]]:
    """How many events a file gives, all of them sound enough to be stored, and what was skipped."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        transcripts = read(path)
        store = SqliteStore(Path(directory) / "timeline.db")
        for transcript in transcripts:
            session = store.adopt("/p", transcript.events)
            assert list(store.open(session, write=False).events()) == transcript.events
        store.close()
    return sum(len(transcript.events) for transcript in transcripts), transcripts[0].skipped


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{broken", "not JSON, or cut off"),
        (b"\xff\xfe\x00", "not JSON, or cut off"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"a":' * 501 + b"1" + b"}" * 501, "nested too deep"),  # on no stack of any Python
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested too deep"),
        (b'{"type": "novelty"}', "unknown entry 'novelty'"),
        (b'{"type": "message", "message": []}', "unknown role None"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_used(bad: bytes, reason: str) -> None:
    assert reading(b"\n".join([HEADER, GOOD, bad, bad, GOOD])) == (2, [f"lines 3-4: {reason}"])
    assert reading(b"\n".join([bad, HEADER, GOOD]))[0] == 1


def test_what_can_be_repaired_is_used(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + HEADER + b"\r\n\0\0\0" + GOOD + b"\0\0\n\n"
        b'{"type":"message","message":{"role":"user","content":"lone \\ud83d and \xff"}}\n'
        b'{"type":"message","message":{"role":"user","content":"n"},"timestamp":NaN}'
    )
    (found,) = read(path)
    assert [event.fact for event in found.events] == [
        Said(say("user", "hello")),
        Said(say("user", "lone ? and \ufffd")),
        Said(say("user", "n")),
    ]
    assert found.skipped == []


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(HEADER + b"\n" + GOOD + b"\n")
        file.write(b'{"x": "')
        for _ in range(lines.LONGEST // 2**20 + 1):
            file.write(b"y" * 2**20)
        file.write(b'"}\n' + GOOD + b"\n")
    (found,) = read(path)
    assert (len(found.events), found.skipped) == (2, ["line 3: longer than 64 MB"])


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\0" * 100, b"hello\nworld", b'{"a": 1}\n{"b": 2}', b"\x89PNG\r\n", b"7"]
)
def test_a_file_without_a_transcript_says_so(content: bytes) -> None:
    events, skipped = reading(content)
    assert events == 0
    assert len(skipped) == 1


def test_a_list_that_breaks_off_gives_what_stands_before(tmp_path: Path) -> None:
    whole = json.dumps([{"role": "user", "content": f"message {number}"} for number in range(5)])
    assert reading(whole.encode(), "x.json") == (5, [])
    assert reading(whole[:-30].encode(), "x.json") == (4, ["element 5: broken; nothing can be read from there on"])
    assert reading(b"[", "x.json")[0] == 0
    assert reading(b"[" * 100_000, "x.json")[0] == 0
    assert reading(b"{\n" * 100_000, "x.json")[0] == 0


def test_many_bad_lines_are_counted() -> None:
    content = b"\n".join([HEADER] + [b"bad", GOOD] * 100)
    events, skipped = reading(content)
    assert (events, len(skipped), skipped[0], skipped[-1]) == (100, 21, "line 2: not JSON, or cut off", "and 80 more")


# fmt: off
KINDS = st.sampled_from([
    "session", "message", "compaction", "branch_summary", "custom_message", "user", "assistant",
    "system", "summary", "session_meta", "response_item", "event_msg", "turn_context", "compacted",
    "function_call", "reasoning",
])
FIELDS = st.sampled_from([
    "message", "payload", "role", "content", "usage", "id", "parentId", "uuid", "parentUuid",
    "timestamp", "summary", "cwd", "isSidechain", "isMeta", "info", "isCompactSummary",
    "replacement_history", "firstKeptEntryId", "output", "tool_calls", "function_call", "model",
    "sessionId", "call_id", "arguments", "messages", "traj", "type", "format", "at", "time", "fact",
    "kept", "input", "cost", "total_token_usage", "num_turns",
])
# fmt: on
SHAPES = st.recursive(
    st.one_of(
        json_values, KINDS, st.sampled_from(["a", "b", "user", "assistant", "tool", "toolResult", "ra-timeline"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=5)),
    max_leaves=12,
)
ENTRIES = st.dictionaries(FIELDS, SHAPES, max_size=6).flatmap(
    lambda entry: KINDS.map(lambda kind: {**entry, "type": kind}) | st.just(entry)
)


@settings(max_examples=100, deadline=None)
@given(entries=st.lists(ENTRIES | json_objects, max_size=6))
def test_no_shape_of_an_entry_is_a_crash(entries: list[object]) -> None:
    events, _ = reading("\n".join(map(json.dumps, entries)).encode())
    assert events >= 0
    events, _ = reading(json.dumps(entries).encode(), "x.json")
    assert events >= 0


def samples() -> list[bytes]:
    usage = {"input_tokens": 1, "output_tokens": 2}
    claude = [
        {
            "type": "user",
            "uuid": "u",
            "message": {"role": "user", "content": "hi"},
            "timestamp": "2026-01-01T00:00:00Z",
        },
        {
            "type": "assistant",
            "uuid": "a",
            "parentUuid": "u",
            "message": {"id": "m", "content": [{"type": "text", "text": "ho"}], "usage": usage, "model": "claude-x"},
        },
    ]
    codex = [
        {"type": "session_meta", "payload": {"id": "x", "cwd": "/"}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}},
    ]
    return [
        b"\n".join([HEADER, GOOD, GOOD]),
        *("\n".join(map(json.dumps, entries)).encode() for entries in (claude, codex)),
        json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]).encode(),
    ]


@settings(max_examples=100, deadline=None)
@given(content=st.sampled_from(samples()), place=st.floats(0, 1), damage=st.binary(max_size=8), cut=st.booleans())
def test_damage_at_any_place_is_no_crash(content: bytes, place: float, damage: bytes, cut: bool) -> None:
    start = int(place * len(content))
    events, _ = reading(content[:start] + damage + (b"" if cut else content[start + len(damage) :]))
    assert events >= 0


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(UserError, match="it is a named pipe"):
        read(tmp_path / "pipe.jsonl")
    with pytest.raises(UserError, match="it is a folder"):
        read(tmp_path)


def test_a_huge_damaged_document_is_not_spread_out_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.write(b'[{"role": "user", "content": "hi"}')
        file.truncate(4 * lines.LONGEST)
    tracemalloc.start()
    (found,) = read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [event.fact for event in found.events] == [Said(say("user", "hi"))]
    assert found.skipped == ["element 2: broken; nothing can be read from there on"]
    assert most < 3.5 * lines.LONGEST
