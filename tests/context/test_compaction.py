"""Zones, truncate, and what a compaction leaves as it was."""

import pytest

from ra.context.compaction.cut import split
from ra.context.recall import recall, written
from ra.context.report import parts
from ra.core.facts import Checkpointed, Edited, EntrySet, Noticed
from ra.core.messages import say
from ra.core.model import Section
from tests.context.sessions import (
    PROMPT,
    Recorded,
    answers,
    asks,
    assemble,
    call_of,
    engine,
    paired,
    run,
    started,
    step,
    text_of,
)


def words(count: int, word: str = "word") -> str:
    return f"{word} " * count


def test_zones_are_whole_groups_and_leave_out_what_is_pinned():
    one = engine()
    log = started(one)
    a, b = call_of("a"), call_of("b")
    log.say(asks(a, b), answers(b, words(50)), answers(a, words(50)))
    log.say(say("user", "Second."), say("assistant", "Yes."), say("user", "Third."), *step(9, words(60)))
    zones = split(one.view, 60)
    assert [group.item.message.text for group in zones.compactable] == ["", "Second.", "Yes."]
    assert [len(group.items) for group in zones.compactable] == [3, 1, 1]
    assert [group.item.message.text for group in zones.recent] == ["Step 9."]


def test_at_least_the_last_group_is_recent_however_large():
    one = engine()
    log = started(one)
    log.say(*step(1, words(10)), *step(2, words(3000)))
    assert [group.item.message.text for group in split(one.view, 0).recent] == ["Step 2."]


def test_a_call_that_still_runs_is_not_hidden():
    one = engine()
    log = started(one)
    log.say(*step(1, "x"), asks(call_of("open")), *step(2, "y"))
    assert [group.item.message.text for group in split(one.view, 0).compactable] == ["Step 1."]


def test_truncate_hides_the_fewest_groups_from_the_back():
    one = engine(8000)
    log = started(one)
    for number in range(1, 15):
        log.say(*step(number, words(500, f"w{number}")))
    before = one.request()
    assembly = assemble(one)
    (fact,) = assembly.facts
    assert fact.strategy == "truncate"
    shown = [message.text for message in assembly.request.messages if message.role == "assistant"]
    hidden = fact.hidden
    assert len(hidden) == 1
    assert shown[0] == "Step 1."
    assert shown[-1] == "Step 14."
    assert fact.after <= 6000 < fact.after + one.estimator.text(words(500, "w1")) + 30
    gap = next(index for index, message in enumerate(assembly.request.messages) if message.name == "compacted")
    assert assembly.request.messages[:gap] == before.messages[:gap]
    assert assembly.request.sections == before.sections


def test_the_marker_says_how_much_is_hidden_and_how_to_get_it_back():
    one = engine(8000)
    log = started(one)
    for number in range(1, 15):
        log.say(*step(number, words(500)))
    (fact,) = assemble(one).facts
    (start, end) = fact.hidden[0]
    groups = (end - start) // 2 + 1
    assert fact.marker.startswith(f"[Compacted: {2 * groups} messages, about ")
    assert f'recall("#{start}-{end + 1}")' in fact.marker


def test_compaction_again_and_again_keeps_one_marker_and_the_early_messages():
    one = engine(8000)
    log = started(one)
    requests = list(run(one, log, 120, words=150))
    facts = log.facts(Checkpointed)
    assert len(facts) > 5
    last = requests[-1]
    assert sum(message.name == "compacted" for message in last.messages) <= 2
    early = [part.body for part in parts(requests[5])]
    assert [part.body for part in parts(last)][: len(early)] == early


def test_messages_that_a_hook_assigned_are_compacted_like_others():
    one = engine(8000)
    log = started(one)
    messages = [message for number in range(1, 25) for message in step(number, words(400, f"w{number}"))]
    log.record(Edited("hook", (say("user", "Edited prompt."), *messages)))
    assembly = assemble(one)
    log.record(*assembly.facts)
    assert assembly.tokens is not None
    assert assembly.tokens <= 6000
    assert assembly.request.messages[0].text == "Edited prompt."
    assert paired(assembly.request.messages)
    assert one.request() == assembly.request


def test_entries_survive_and_move_into_the_pinned_part():
    one = engine(4000)
    log = started(one)
    log.record(EntrySet("zone", "The user lives in UTC+8.", "Zone"))
    requests = list(run(one, log, 80))
    assert all("The user lives in UTC+8." in text_of(request) for request in requests)
    assert requests[-1].sections[-1].name == "entries"


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_ten_planted_facts_are_visible_or_recallable_at_the_end(strategy):
    one = engine(8000, strategy=strategy)
    log = started(one)
    planted = {7 + 29 * n: f"FACT-{n}: the port of service {n} is {40_000 + n}." for n in range(10)}
    *_, last = run(one, log, 300, output=lambda n: words(80) + planted.get(n, "") + words(20))
    visible = text_of(last)
    assert PROMPT in visible
    assert "recall(" in visible
    for fact in planted.values():
        (place,) = [event.at for event in log.written if fact in written(event.fact)]
        assert fact in visible or fact in recall(f"#{place}", Recorded(log))


def test_the_context_of_the_current_prompt_stays_with_it():
    """The environment of the run is not lost in its own tool loop; that of an earlier run goes."""
    one = engine(4000, strategy="digest")
    log = started(one)
    log.record(Noticed(Section("env", "volatile", "branch: old")))
    list(run(one, log, 5))
    log.say(say("user", "Go on."))
    log.record(Noticed(Section("env", "volatile", "branch: new")))
    *_, last = run(one, log, 60)
    assert "branch: new" in text_of(last)
    assert "branch: old" not in text_of(last)


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_rules_of_a_subdirectory_stay_where_they_entered(strategy):
    """Moved into the system part they would break the cached prefix of everything."""
    one = engine(4000, strategy=strategy)
    log = started(one)
    list(run(one, log, 4))
    log.record(Noticed(Section("lib/AGENTS.md", "stable", "Use tabs.")))
    requests = list(run(one, log, 60))
    assert len(log.facts(Checkpointed)) > 2
    assert {request.sections for request in requests} == {requests[0].sections}
    assert all(any(message.text == "Use tabs." for message in request.messages) for request in requests)


def test_rules_that_were_replaced_are_hidden():
    one = engine(4000, strategy="digest")
    log = started(one)
    log.record(Noticed(Section("lib/AGENTS.md", "stable", "Use tabs.")))
    list(run(one, log, 4))
    log.record(Noticed(Section("lib/AGENTS.md", "stable", "Use blanks.")))
    *_, last = run(one, log, 60)
    assert "Use blanks." in text_of(last)
    assert "Use tabs." not in text_of(last)
