"""Does what is exported come back as it was, and can a person read it?"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import (
    Checkpointed,
    Configured,
    Cut,
    Edited,
    EntryRemoved,
    EntrySet,
    Failed,
    Interrupted,
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, result, say
from ra.core.model import Section, Usage
from ra.timeline.export import export_lines, export_markdown
from ra.timeline.importers import Transcript, read
from tests.strategies import text, timelines


@settings(max_examples=60, deadline=None)
@given(events=timelines(), texts=st.lists(text, max_size=2), data=st.data())
def test_what_is_exported_is_read_back_the_same(
    events: list[TimelineEvent], texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("export") / "x.jsonl"
    path.write_bytes(b"".join(export_lines("s1", "/p", events, texts)))
    (found,) = read(path)
    assert found == Transcript("s1", events, [], "ra-timeline", found.model, "/p", texts)


def test_a_lost_line_is_told_and_positions_stay_whole(tmp_path: Path) -> None:
    events = [TimelineEvent(at, 1.0, Said(say("user", f"word {at}"))) for at in (1, 2, 3)]
    exported = list(export_lines("s1", "/p", events))
    (tmp_path / "x.jsonl").write_bytes(b"".join([*exported[:2], exported[2][:20] + b"\n", b'{"at": 9}\n', exported[3]]))
    (found,) = read(tmp_path / "x.jsonl")
    assert [(event.at, event.fact) for event in found.events] == [(1, events[0].fact), (2, events[2].fact)]
    assert [note.split(":")[0] for note in found.skipped] == ["line 3", "line 4"]


def test_a_newer_export_is_read_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"format":"ra-timeline","version":9,"session":"s"}\n')
    assert read(tmp_path / "x.jsonl")[0].skipped == [
        "line 1: written by a newer version of ra; unknown parts are left out"
    ]


def test_markdown_for_people() -> None:
    call = ToolCall("1", "Bash", {"command": "ls"})
    facts = (
        Said(say("user", "list the files")),
        Said(Message("assistant", (Thinking("hm"), call))),
        Spent("m", Usage(1), "0.25"),
        Said(Message("tool", (ToolResult("1", "Bash", (Text("```\na"), Image("image/png", b"12"))),))),
        Cut(say("assistant", "there"), "stalled"),
        EntrySet("k", "remember\nthis"),
        Checkpointed("digest", "threshold", summary="sum"),
        Failed("provider", "529"),
        EntryRemoved("k"),
        Noticed(Section("clock", "volatile", "noon")),
        Rotated("a new day", "so far", 3),
        Edited("a hook", ()),
        Interrupted("stop"),
        Configured("scripted", "m2", "timeline"),
        Said(result(call, "no", is_error=True)),
    )
    events = [TimelineEvent(at, 0.0, fact) for at, fact in enumerate(facts, 1)]
    assert "".join(export_markdown("s1", events)) == (
        "# list the files\n\n"
        "Session s1, 1970-01-01 00:00 UTC, 1 model calls, $0.2500.\n\n"
        "## User\n\nlist the files\n\n"
        "## Assistant\n\n<details><summary>Thinking</summary>\n\n> hm\n\n</details>\n\n"
        '**Bash**\n\n```json\n{"command":"ls"}\n```\n\n'
        "## Tool\n\n**Bash**\n\n````\n```\na\n[image/png, 2 bytes]\n````\n\n"
        "## Assistant\n\nthere\n\n*Broken off: stalled*\n\n"
        "*Entry k set:*\n\n> remember\n> this\n\n"
        "*Compacted (digest, threshold).*\n\n> sum\n\n"
        "*Failed (provider): 529*\n\n"
        "*Entry k removed.*\n\n"
        "*Context clock:*\n\n> noon\n\n"
        "*A new segment (a new day).*\n\n> so far\n\n"
        "*The conversation was edited by a hook.*\n\n"
        "*Interrupted: stop*\n\n"
        "*Model: m2*\n\n"
        "## Tool\n\n**Bash** failed\n\n```\nno\n```\n\n"
    )
    assert "".join(export_markdown("s1", [])) == "# s1\n\n"
