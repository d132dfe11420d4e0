"""Is the timeline projected into messages as the rules say: kinds, since, projections?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.items import TimelineItem, TimestampedMessage, timeline_items, timeline_messages
from ra.core.errors import UsageError
from ra.core.facts import (
    Checkpointed,
    Configured,
    Edited,
    EntryRemoved,
    EntrySet,
    Fact,
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Message, ToolCall, ToolResult, result, say
from ra.core.model import Section, Usage

CALL = ToolCall("c1", "Read", {"path": "a.py"})
ASKED = Message("assistant", (CALL,))
READ = result(CALL, "content")
HELLO, DONE, MORE = say("user", "hello"), say("assistant", "done"), say("user", "more")


def events(*facts: Fact) -> list[TimelineEvent]:
    return [TimelineEvent(at, 100.0 + at, fact) for at, fact in enumerate(facts, 1)]


SESSION = events(
    Configured("scripted", "m", "timeline"),
    Said(HELLO),
    Said(ASKED),
    Spent("m", Usage(1, 1)),
    Said(READ),
    Said(DONE),
    Said(MORE),
)


def test_items_are_what_came_in_and_what_the_agent_did() -> None:
    assert timeline_items(SESSION) == [
        TimelineItem(2, "inbox", (HELLO,), (102,)),
        TimelineItem(3, "run", (ASKED, READ, DONE), (103, 103, 106)),
        TimelineItem(7, "inbox", (MORE,), (107,)),
    ]


def test_messages_carry_their_times() -> None:
    assert timeline_messages(SESSION) == [
        TimestampedMessage(HELLO, 102),
        TimestampedMessage(ASKED, 103),
        TimestampedMessage(READ, 103),
        TimestampedMessage(DONE, 106),
        TimestampedMessage(MORE, 107),
    ]


@pytest.mark.parametrize(
    ("since", "messages"),
    [
        (None, [HELLO, ASKED, READ, DONE, MORE]),
        (0, [HELLO, ASKED, READ, DONE, MORE]),
        (2, [ASKED, READ, DONE, MORE]),  # strict: position 2 itself is not after 2
        (3, [DONE, MORE]),  # a call before it takes its result with it
        (6, [MORE]),
        (7, []),
    ],
)
def test_since_is_strict_and_tears_no_call(since: int | None, messages: list[Message]) -> None:
    assert [item.message for item in timeline_messages(SESSION, since)] == messages


def test_a_projection_decides_item_by_item() -> None:
    def projection(item: TimelineItem) -> list[Message] | None:
        match item.kind:
            case "run":
                return [say("assistant", "…")]
            case "inbox" if item.at == 7:
                return []
            case _:
                return None

    assert timeline_messages(SESSION, projection=projection) == [
        TimestampedMessage(HELLO, 102),
        TimestampedMessage(say("assistant", "…"), 103),
    ]


def test_a_projection_may_return_plain_objects() -> None:
    messages = timeline_messages(
        SESSION,
        projection=lambda item: [{"role": "assistant", "content": "…"}] if item.kind == "run" else [],
    )
    assert messages == [TimestampedMessage(say("assistant", "…"), 103)]


@pytest.mark.parametrize("wrong", ["text", [1], say("user", "x"), {}])
def test_a_projection_that_returns_something_else_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="for the inbox at 2; return a list of messages, or None for the default"):
        timeline_messages(SESSION, projection=lambda item: wrong)


@pytest.mark.parametrize("wrong", ["3", 1.5, True])
def test_a_since_that_is_no_position_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"since is .*; use a timeline position or None"):
        timeline_messages(SESSION, since=wrong)


def test_entries_stand_where_they_were_inserted_while_they_live() -> None:
    session = events(
        Said(HELLO),
        EntrySet("old", "gone text"),
        EntrySet("tone", "be short"),
        Said(DONE),
        EntryRemoved("old"),
        EntrySet("tone", "be long"),
        Said(MORE),
    )
    assert [(item.kind, item.at, item.id) for item in timeline_items(session)] == [
        ("inbox", 1, ""),
        ("run", 4, ""),
        ("context_removed", 5, "old"),
        ("context_inserted", 6, "tone"),
        ("inbox", 7, ""),
    ]
    shown = "\n".join(item.message.text for item in timeline_messages(session))
    assert "be long" in shown
    assert "be short" not in shown
    assert "gone text" not in shown


def test_an_entry_set_during_a_call_does_not_part_it_from_its_result() -> None:
    session = events(Said(HELLO), Said(ASKED), EntrySet("tone", "be short"), Said(READ), Said(DONE))
    assert [item.kind for item in timeline_items(session)] == ["inbox", "run", "context_inserted", "run"]
    assert timeline_items(session)[1].messages == (ASKED, READ)


def test_a_checkpoint_stands_in_for_what_it_hides() -> None:
    session = events(
        Said(HELLO),
        Said(ASKED),
        Said(READ),
        Said(DONE),
        Said(MORE),
        Checkpointed("truncate", "threshold", hidden=((2, 4),), marker="3 messages are hidden"),
    )
    assert [(item.kind, [m.text for m in item.messages]) for item in timeline_items(session)] == [
        ("inbox", ["hello"]),
        ("checkpoint", ["3 messages are hidden"]),
        ("inbox", ["more"]),
    ]


def test_a_rotation_is_a_checkpoint_before_what_it_keeps() -> None:
    session = events(Said(HELLO), Said(DONE), Said(MORE), Rotated("stale", "what was before", keep_from=3))
    items = timeline_items(session)
    assert [(item.kind, item.at, item.times) for item in items] == [("checkpoint", 4, (103,)), ("inbox", 3, (103,))]


def test_what_a_hook_assigned_replaces_what_was_before() -> None:
    session = events(Said(say("user", "my password is x")), Edited("redact", (say("user", "my password is ***"),)))
    assert [item.message.text for item in timeline_messages(session)] == ["my password is ***"]


def test_what_a_strategy_composed_is_no_part_of_the_timeline() -> None:
    session = events(Said(HELLO), Configured("s", "m", "x", base=(say("user", "composed"),)), Said(DONE))
    assert [item.message for item in timeline_messages(session)] == [HELLO, DONE]


def test_notices_are_sources_of_their_own() -> None:
    assert timeline_messages(events(Noticed(Section("env", "volatile", "date")))) == []


FACTS = st.sampled_from(
    [
        Said(HELLO),
        Said(DONE),
        EntrySet("a", "text"),
        EntryRemoved("a"),
        Checkpointed("truncate", "r", hidden=((2, 3),), marker="hidden"),
        Rotated("r", "before", keep_from=3),
    ]
)


@given(st.lists(FACTS | st.just("call"), max_size=10), st.none() | st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_times_never_fall_and_calls_are_paired(drawn: list[Fact | str], since: int | None) -> None:
    facts: list[Fact] = []
    for number, fact in enumerate(drawn):
        if isinstance(fact, str):
            call = ToolCall(f"c{number}", "Read", {})
            facts += [Said(Message("assistant", (call,))), Said(result(call, "content"))]
        else:
            facts.append(fact)
    messages = timeline_messages(events(*facts), since)
    times = [item.at for item in messages]
    assert times == sorted(times)
    calls = [call.id for item in messages for call in item.message.calls]
    answers = [b.call_id for item in messages for b in item.message.blocks if isinstance(b, ToolResult)]
    assert calls == answers
