import asyncio
import time

import pytest

from ra.context.compaction.must_keep import MustKeep, put_back
from ra.core.errors import ConfigError
from ra.core.facts import Checkpointed, Clip
from tests.context.sessions import assemble, engine, run, started, step, text_of


def words(count: int, word: str = "word") -> str:
    return f"{word} " * count


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_what_must_be_kept_is_in_every_request_after_any_number_of_compactions(strategy):
    one = engine(8000, strategy=strategy, must_keep=[r"TICKET-\d+", "the red button"])
    log = started(one)
    said = {5: "see TICKET-17", 40: "never press the red button", 90: "TICKET-99 is open"}
    requests = list(run(one, log, 200, output=lambda n: words(60) + said.get(n, "") + words(60)))
    assert len(log.facts(Checkpointed)) > 3
    for kept, since in (("TICKET-17", 6), ("the red button", 41), ("TICKET-99", 91)):
        assert all(kept in text_of(request) for request in requests[since:])


def test_what_is_still_visible_is_not_repeated():
    one = engine(8000, must_keep=["Find the bug"])
    log = started(one)
    list(run(one, log, 80))
    assert "Kept word for word" not in log.facts(Checkpointed)[-1].marker


def test_what_a_clip_cut_is_put_back_too():
    one = engine(4000, must_keep=[r"CODE-\d+"])
    log = started(one)
    log.say(*step(1, f"{words(9000)} CODE-4711 {words(9000)}"))
    assembly = assemble(one)
    assert "CODE-4711" in text_of(assembly.request)
    assert assembly.tokens is not None
    assert assembly.tokens <= 3600


@pytest.mark.parametrize("old_words", [300, 900, 1500])
def test_no_step_is_accounted_as_larger_than_before_when_kept_words_go_into_its_marker(old_words):
    one = engine(8000, strategy="digest", must_keep=[r"id-\d+ \w+ \w+ \w+"])
    log = started(one)
    log.say(*step(1, words(old_words)))
    log.say(*step(2, words(9000) + " ".join(f"id-{n} alpha beta gamma" for n in range(300)) + words(9000)))
    before = one.measure(exact=True)
    assembly = assemble(one)
    steps = [fact for fact in assembly.facts if isinstance(fact, Checkpointed)]
    assert len(steps) > 1
    assert [fact.before for fact in steps] == [before, *(fact.after for fact in steps[:-1])]
    assert all(fact.after <= fact.before for fact in steps)
    assert steps[-1].after == assembly.tokens


def test_a_pattern_that_would_take_for_ever_is_given_up_with_a_warning():
    one = engine(4000, must_keep=[r"(a+)+$", "the red button"])
    log = started(one)
    log.say(*step(1, "a" * 40 + "! the red button"), *(m for n in range(2, 9) for m in step(n, words(600))))
    began = time.perf_counter()
    assembly = assemble(one)
    assert time.perf_counter() - began < 60
    assert "'(a+)+$' took longer than 3 s" in assembly.warnings[0]
    assert "the red button" in text_of(assembly.request)


def test_more_than_fits_is_put_back_newest_first_and_a_warning_counts_the_rest():
    one = engine(2000, must_keep=[r"id-\d+ \w+ \w+ \w+"])
    log = started(one)
    for number in range(60):
        log.say(*step(number, " ".join(f"id-{number * 10 + n} alpha beta gamma" for n in range(10))))
    assembly = assemble(one)
    assert assembly.tokens is not None
    assert assembly.tokens <= 1800
    assert "do not fit into the window" in assembly.warnings[0]


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"agent\.context\.mustKeep: '\(' is not a valid regular expression"):
        MustKeep(["("])


def test_without_patterns_nothing_is_searched():
    one = engine()
    assert asyncio.run(MustKeep([]).lost(one.view, one.view)) == ([], [])


def test_words_are_put_into_the_gap_that_is_there_in_the_end():
    """A compaction in several steps replaces the marker of its first gap, or shortens it."""
    first = Checkpointed("digest", "", hidden=((3, 4),), marker="[one]")
    last = Checkpointed("truncate", "", hidden=((3, 6),), marker="[two]")
    clip = Checkpointed("ladder", "", clips=(Clip(3, -1, 12),))
    assert put_back([first, last], "Kept:\nX-1", "")[1].marker == "[two]\nKept:\nX-1"
    assert put_back([first, clip], "Kept:\nX-1", "old")[1].summary == "old\n\nKept:\nX-1"
    assert put_back([first, last], "", "") == [first, last]


def test_what_is_put_back_never_makes_the_request_too_large():
    one = engine(1200, strategy="digest", must_keep=[r"id-\d+"])
    log = started(one)
    for number in range(1, 30):
        log.say(*step(number, " ".join(f"id-{number * 40 + n}" for n in range(40)) + words(200)))
        assembly = assemble(one)
        log.record(*assembly.facts)
        assert assembly.tokens is not None
        assert assembly.tokens <= 1080
