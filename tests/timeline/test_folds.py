"""Do the folds say what follows from what happened?"""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import (
    Configured,
    Cut,
    Edited,
    Entry,
    EntryRemoved,
    EntrySet,
    Fact,
    Interrupted,
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Message, Text, ToolCall, ToolResult, result, say
from ra.core.model import Section, Usage
from ra.timeline.folds import (
    INTERRUPTED,
    Share,
    Spend,
    entries,
    last_time,
    model,
    repair,
    spend,
    title,
    turns,
)
from tests.strategies import assistant_messages, messages, spent, timelines, tool_messages, user_messages


def numbered(*facts: Fact) -> list[TimelineEvent]:
    return [TimelineEvent(at, float(at), fact) for at, fact in enumerate(facts, 1)]


def call(id: str, name: str = "Bash") -> ToolCall:
    return ToolCall(id, name, {"command": "ls"})


def asks(*calls: ToolCall) -> Said:
    return Said(Message("assistant", calls))


def gave_up(call: ToolCall) -> Said:
    return Said(result(call, INTERRUPTED, is_error=True))


TALK = st.one_of(user_messages, assistant_messages, tool_messages).map(Said)


@settings(max_examples=100, deadline=None)
@given(events=timelines(TALK | st.builds(Cut, messages, st.just("cut")), max_size=10))
def test_repair_pairs_every_call_exactly_once(events: list[TimelineEvent]) -> None:
    repaired = [event.fact for event in events] + list(repair(events))
    assert repair(numbered(*repaired)) == ()
    balance: Counter[str] = Counter()
    for fact in repaired:
        if isinstance(fact, Said):
            for block in fact.message.blocks:
                if isinstance(block, ToolCall):
                    balance[block.id] += 1
                elif isinstance(block, ToolResult):
                    balance[block.call_id] = max(0, balance[block.call_id] - 1)
    assert not +balance


def test_resume_gives_a_dangling_call_a_result() -> None:
    first, second, third = call("1"), call("2", "Read"), call("1")
    events = numbered(
        asks(first, second), Said(result(first, "done")), Said(result(second, "done")), asks(third, second)
    )
    assert repair(events) == (gave_up(third), gave_up(second))
    assert repair(events[:2]) == (gave_up(second),)
    assert repair(events[:3]) == ()


def test_calls_of_a_cut_message_never_count() -> None:
    assert repair(numbered(Cut(Message("assistant", (call("1"),)), "stalled"), Interrupted("ctrl-c"))) == ()


@pytest.mark.parametrize(
    "replaced", [Edited("hook", (say("user", "new"),)), Configured("p", "m", "planner", base=(say("user", "new"),))]
)
def test_calls_that_were_replaced_need_no_result(replaced: Fact) -> None:
    assert repair(numbered(asks(call("1")), replaced)) == ()
    assert repair(numbered(replaced, asks(call("1")))) == (gave_up(call("1")),)
    assert repair(numbered(asks(call("1")), Configured("p", "m", "timeline"))) == (gave_up(call("1")),)


def test_live_entries_are_those_set_last_and_not_removed() -> None:
    events = numbered(
        EntrySet("a", "1"),
        EntrySet("b", "2", "B", {"k": "v"}),
        EntrySet("a", "3"),
        EntryRemoved("x"),
        EntrySet("c", "4"),
    )
    live = {"b": Entry("b", "B", "2", 2, {"k": "v"}), "a": Entry("a", "", "3", 3), "c": Entry("c", "", "4", 5)}
    assert entries(events) == live
    assert list(entries(events)) == ["b", "a", "c"]
    assert entries([TimelineEvent(6, 6.0, EntryRemoved("b"))], live) == {"a": live["a"], "c": live["c"]}


@settings(max_examples=60, deadline=None)
@given(events=timelines(), data=st.data())
def test_a_fold_can_go_on_from_where_it_ended(events: list[TimelineEvent], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    old, new = events[:cut], events[cut:]
    assert entries(new, entries(old)) == entries(events)
    assert spend(new, spend(old)) == spend(events)
    assert turns(new, turns(old)) == turns(events)
    assert last_time(new, last_time(old)) == last_time(events)


@settings(max_examples=60, deadline=None)
@given(events=timelines(spent | TALK))
def test_every_division_of_a_bill_adds_up_to_it(events: list[TimelineEvent]) -> None:
    whole = spend(events)
    for shares in (whole.by_model, whole.by_purpose, whole.by_day, whole.by_tool, whole.by_source):
        assert sum((share.usage for share in shares.values()), Usage()) == whole.usage
        assert abs(sum(share.dollars for share in shares.values()) - whole.dollars) < Decimal("1e-20")
    assert sum(share.calls for share in whole.by_model.values()) == whole.calls


def test_a_bill_is_divided_by_model_purpose_day_tool_and_source() -> None:
    usage = Usage(input=100, output=20, cache_read=1000, cache_write=0)
    facts = (
        asks(call("1", "Read"), call("2", "Grep")),
        Spent("opus", usage, "0.30", parts={"system": 400, "timeline": 700}),
        Said(say("assistant", "done")),
        Spent("opus", Usage(output=10), ""),
        Spent("haiku", Usage(input=10), "0.01", purpose="planner"),
    )
    events = [TimelineEvent(at, 86_400.0 * at, fact) for at, fact in enumerate(facts, 1)]
    half = Share(1, Usage(input=50, output=10, cache_read=500), Decimal("0.15"))
    planner = Share(1, Usage(input=10), Decimal("0.01"))
    found = spend(events)
    by_source = found.by_source
    assert found == Spend(
        calls=3,
        priced=2,
        usage=Usage(input=110, output=30, cache_read=1000),
        dollars=Decimal("0.31"),
        by_model={
            "opus": Share(2, Usage(input=100, output=30, cache_read=1000), Decimal("0.30")),
            "haiku": planner,
        },
        by_purpose={
            "turn": Share(2, Usage(input=100, output=30, cache_read=1000), Decimal("0.30")),
            "planner": planner,
        },
        by_source=by_source,
        by_tool={
            "Read": half,
            "Grep": half,
            "answer": Share(1, Usage(output=10)),
            "planner": planner,
        },
        by_day={
            "1970-01-03": Share(1, usage, Decimal("0.30")),
            "1970-01-05": Share(1, Usage(output=10)),
            "1970-01-06": planner,
        },
    )
    # 1 000 of 1 100 tokens came from the cache: all of the system part, and the head of the timeline.
    assert {name: share.usage for name, share in by_source.items()} == {
        "system": Usage(cache_read=400),
        "timeline": Usage(cache_read=600, input=100),
        "answer": Usage(output=30),
        "request": Usage(input=10),
    }
    assert by_source["system"].dollars == Decimal("0.30") * 4_000 / 30_000


def test_a_title_is_the_first_line_that_the_user_typed() -> None:
    named = Said(say("user", "context", name="environment"))
    assert (
        title(numbered(named, Said(say("user", "  ")), Said(say("user", " fix  the\ttest\nplease")))) == "fix the test"
    )
    assert title(numbered(Said(say("user", "word " * 30)))) == "word " * 11 + "word…"
    assert title(numbered(Said(Message("user", (Text("a"), Text("b")))))) == "a"
    assert title([]) == ""


def test_turns_count_prompts_since_the_last_rotation() -> None:
    facts = (
        Said(say("user", "a")),
        Noticed(Section("env", "volatile", "x")),
        Said(say("user", "context", name="env")),
        Said(say("assistant", "b")),
        Said(say("user", "c")),
    )
    assert turns(numbered(*facts)) == 2
    assert turns(numbered(*facts, Rotated("stale", "", 1), Said(say("user", "d")))) == 1


def test_the_model_is_the_one_that_spoke_last() -> None:
    facts = (Spent("big", Usage()), Spent("small", Usage(), purpose="planner"))
    assert (model(numbered(*facts)), model([])) == ("big", "")
    assert model(numbered(*facts, Configured("p", "next", "timeline"))) == "next"


def test_the_last_time_is_that_of_the_last_event() -> None:
    assert (last_time(numbered(Interrupted("a"), Interrupted("b"))), last_time([])) == (2.0, None)
