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
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Message, Text, ToolCall, ToolResult, result, say
from ra.core.model import Usage
from ra.timeline.folds import INTERRUPTED, SpendTotal, entries, model, repair, spend, title
from tests.strategies import assistant_messages, messages, timelines, tool_messages, user_messages


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
    assert entries([*events, TimelineEvent(6, 6.0, EntryRemoved("b"))]) == {"a": live["a"], "c": live["c"]}


def test_what_was_spent_is_the_sum_of_all_bills_and_of_the_prices_that_are_known() -> None:
    usage = Usage(input=100, output=20, cache_read=1000)
    bills = (
        Spent("opus", usage, "0.30"),
        Spent("opus", Usage(output=10), ""),
        Spent("haiku", Usage(input=10), "0.01", purpose="planner"),
    )
    events = numbered(Said(say("user", "hi")), *bills)
    assert spend(events) == SpendTotal(3, 2, Usage(input=110, output=30, cache_read=1000), Decimal("0.31"))


def test_a_title_is_the_first_line_that_the_user_typed() -> None:
    named = Said(say("user", "context", name="environment"))
    assert (
        title(numbered(named, Said(say("user", "  ")), Said(say("user", " fix  the\ttest\nplease")))) == "fix the test"
    )
    assert title(numbered(Said(say("user", "word " * 30)))) == "word " * 11 + "word…"
    assert title(numbered(Said(Message("user", (Text("a"), Text("b")))))) == "a"
    assert title([]) == ""


def test_the_model_is_the_one_that_spoke_last() -> None:
    facts = (Spent("big", Usage()), Spent("small", Usage(), purpose="planner"))
    assert (model(numbered(*facts)), model([])) == ("big", "")
    assert model(numbered(*facts, Configured("p", "next", "timeline"))) == "next"
