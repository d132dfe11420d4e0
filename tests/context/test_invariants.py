"""The invariants of the design, over generated sessions on small windows."""

from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ra.context import render
from ra.context.recall import recall, written
from ra.context.report import parts
from ra.context.size import input_budget
from ra.context.tokens import Estimator
from ra.core.facts import Checkpointed, Configured, Edited, EntryRemoved, EntrySet, Rotated, Said, TimelineEvent
from ra.core.value import encode
from tests.context.sessions import (
    CONFIGURED,
    PROMPT,
    SYSTEM,
    Log,
    Other,
    Prompt,
    Recorded,
    Sent,
    Step,
    assemble,
    engine,
    paired,
    play,
    replayed,
    scripts,
    started,
    text_of,
)

windows = st.sampled_from([2500, 5000, 20_000])
strategies = st.sampled_from(["truncate", "digest"])
generated = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def played(script: list[Step | Prompt | Other], **how: Any) -> tuple[Log, list[Sent]]:
    one = engine(**how)
    log = started(one)
    return log, play(script, one, log)


def between(log: Log, first: int, last: int) -> list[TimelineEvent]:
    return log.written[first:last]


def rewrites(log: Log, first: int, last: int) -> bool:
    """Does a fact lie between that may change what was sent? Setting an entry anew removes the old one."""
    known = {event.fact.id for event in log.written[:first] if isinstance(event.fact, EntrySet)}
    return any(
        isinstance(event.fact, Checkpointed | Rotated | Configured | Edited | EntryRemoved)
        or (isinstance(event.fact, EntrySet) and event.fact.id in known)
        for event in between(log, first, last)
    )


@generated
@given(scripts, windows, strategies)
def test_a_request_extends_the_one_before_unless_a_fact_says_otherwise(script, limit, strategy):
    log, sent = played(script, limit=limit, strategy=strategy)
    for before, after in pairwise(sent):
        if not rewrites(log, before.sent_at, after.sent_at):
            old = [part.body for part in parts(before.assembly.request)]
            new = [part.body for part in parts(after.assembly.request)]
            assert new[: len(old)] == old


@generated
@given(scripts, windows, strategies)
def test_every_call_has_exactly_one_result_in_order(script, limit, strategy):
    _, sent = played(script, limit=limit, strategy=strategy)
    assert all(paired(one.assembly.request.messages) for one in sent)


@generated
@given(scripts, windows, strategies)
def test_every_request_fits(script, limit, strategy):
    _, sent = played(script, limit=limit, strategy=strategy)
    for one in sent:
        assert Estimator().request(one.assembly.request) <= input_budget(limit, CONFIGURED.max_output)
        assert one.assembly.request.max_output >= 1


@generated
@given(scripts, windows, strategies)
def test_the_system_prompt_and_live_entries_are_in_every_request(script, limit, strategy):
    log, sent = played(script, limit=limit, strategy=strategy)
    for one in sent:
        view = replayed(log.written[: one.sent_at], limit=limit).view
        text = text_of(one.assembly.request)
        assert SYSTEM.content in text
        assert [entry for entry in view.entries.values() if render.entry(entry) not in text] == []


@generated
@given(
    st.lists(
        st.builds(Step, st.lists(st.text(max_size=2000), min_size=1, max_size=2).map(tuple), st.integers(0, 3)),
        max_size=40,
    ),
    windows,
    strategies,
)
def test_the_first_prompt_is_in_every_request_word_for_word(script, limit, strategy):
    _, sent = played(script, limit=limit, strategy=strategy)
    assert all(one.assembly.request.messages[0].text.startswith(PROMPT) for one in sent)


@generated
@given(
    st.lists(
        st.builds(Step, st.lists(st.text(max_size=2000), min_size=1, max_size=2).map(tuple), st.integers(0, 3))
        | st.builds("Rule {}: call adapter_{} first.".format, st.integers(1, 99), st.sampled_from("abcdef")),
        max_size=30,
    ).filter(lambda script: sum(isinstance(part, str) for part in script) <= 10),
    windows,
    strategies,
)
def test_what_the_user_said_is_in_every_request_after_it(script, limit, strategy):
    """Ten short sentences are within what the smallest window has for quotes."""
    parts_of_run = [Prompt(part) if isinstance(part, str) else part for part in script]
    log, sent = played(parts_of_run, limit=limit, strategy=strategy)
    for one in sent:
        messages = [event.fact.message for event in log.written[: one.decided_at] if isinstance(event.fact, Said)]
        said = [message.text for message in messages if message.role == "user"]
        assert [text for text in said if text not in text_of(one.assembly.request)] == []


@generated
@given(scripts, windows, strategies)
def test_assembly_depends_on_nothing_but_the_facts(script, limit, strategy):
    """Neither on the clock nor on chance: the same session gives the same bytes."""
    (_, first), (_, second) = (played(script, limit=limit, strategy=strategy) for _ in range(2))
    assert [encode(one.assembly.request) for one in first] == [encode(one.assembly.request) for one in second]


@generated
@given(scripts, windows, strategies)
def test_a_replay_gives_the_requests_of_the_live_run(script, limit, strategy):
    """Also after a kill between any two events: a new engine decides as the one that was killed would have."""
    log, sent = played(script, limit=limit, strategy=strategy)
    for one in sent:
        resumed = assemble(replayed(log.written[: one.decided_at], limit=limit, strategy=strategy))
        shown = replayed(log.written[: one.sent_at], limit=limit, strategy=strategy).request()
        assert resumed == one.assembly
        assert encode(shown) == encode(one.assembly.request)


@generated
@given(scripts, strategies)
def test_everything_that_was_recorded_can_be_recalled(script, strategy):
    log, _ = played(script, limit=2500, strategy=strategy)
    for event in log.written:
        assert written(event.fact) in recall(f"#{event.at}", Recorded(log), page=10**9)
