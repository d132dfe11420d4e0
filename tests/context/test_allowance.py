"""The numbers of a compaction, one by one: what its parts may have, what a refusal teaches, what a bill is worth."""

import math

import pytest

from ra.context.compaction.cut import kept_room
from ra.context.settings import CompactionSettings
from ra.context.size import Allowance, Refusals, Window, allow
from ra.core.facts import Configured, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Effort, Usage
from tests.context.sessions import CONFIGURED, assemble, engine, started, step

WORDS = "word " * 400


def filled():
    """A conversation whose parts have known sizes: fixed and pinned tokens, and the rest."""
    one = engine(8000)
    log = started(one, "Look at all of it. " * 40)
    for number in range(8):
        log.say(*step(number, WORDS))
    return one


def test_what_a_compaction_may_use_is_what_the_system_part_and_the_prompts_leave():
    view = filled().view
    total = view.tokens()
    fixed = view.fixed_tokens()
    pinned = sum(map(view.group_tokens, view.pinned()))
    assert (fixed > 50, pinned > 150) == (True, True)  # otherwise a wrong sign would not be seen
    for limit in (2400, 4000):
        goal = int(limit * 0.75)
        free = goal - fixed - pinned
        allowance = allow(view, total, settings=CompactionSettings(), limit=limit, max_output=200)
        assert allowance == Allowance(
            must_fit=True,
            limit=limit - 200,
            goal=goal,
            recent=min(int(limit * 0.20), free // 2),
            summary=min(int(limit * 0.10), free // 2),
            index=min(3000, free // 3),
            merged_index=min(3000, free // 3),
            quotes=int(limit * 0.10),
            rate=1.0,
            strategy="truncate",
        )


def test_an_economical_cut_leaves_what_it_says_and_the_last_steps_whole_or_not_at_all():
    view = filled().view
    total = view.tokens()
    fixed = view.fixed_tokens() + sum(map(view.group_tokens, view.pinned()))
    steps = sum(view.group_tokens(group) for group in view.groups[-8:])
    for recent, working in ((500, 0), (steps // 4 + 1, steps)):  # four times as much holds them, or does not
        allowance = allow(
            view, total, settings=CompactionSettings(), limit=100_000, max_output=1000, cut=(recent, 6000), stack=True
        )
        assert allowance.index == 6000
        assert allowance.merged_index == 4200
        assert allowance.recent == min(max(recent, working), (total - fixed) * 2 // 3)
        assert allowance.quotes == 4000


def test_what_an_economical_cut_may_list_is_half_of_what_the_system_part_and_the_prompts_leave():
    view = filled().view
    fixed = view.fixed_tokens() + sum(map(view.group_tokens, view.pinned()))
    for limit in (3000, 5000):  # so small that the list has less than it would like
        allowance = allow(
            view, view.tokens(), settings=CompactionSettings(), limit=limit, max_output=200, cut=(500, 6000), stack=True
        )
        assert allowance.index == (int(limit * 0.75) - fixed) // 2


def test_the_allowance_is_counted_in_the_tokens_of_the_model():
    view = filled().view
    allowance = allow(view, view.tokens() * 2, settings=CompactionSettings(), limit=6000, max_output=200)
    assert (allowance.rate, allowance.goal, allowance.limit, allowance.quotes) == (2.0, 2250, 2900, 300)


@pytest.mark.parametrize(
    ("limit", "used", "room"), [(4000, 1000, 1000), (4000, 3500, 484), (4000, 3990, 0), (100, 0, 25)]
)
def test_words_that_must_be_kept_have_a_quarter_of_the_request_or_what_is_free(limit, used, room):
    assert kept_room(limit, used) == room


def turn(number: int, total: int, *, output: int = 1, size_bytes: int | None = None) -> TimelineEvent:
    parts = {"conversation": total * 4 if size_bytes is None else size_bytes}
    return TimelineEvent(number, 0.0, Spent("script-1", Usage(input=total, output=output), parts=parts))


def test_a_refusal_without_a_limit_tries_less_each_time():
    """Nothing was taken before: three quarters, a half, and at last almost nothing of what was refused."""
    refusals = Refusals()
    guesses = [refusals.learn(Window(None, "unknown"), None, 10_000).limit for _ in range(4)]
    assert guesses == [7500, 5000, 200, 200]


def test_after_a_refusal_no_less_is_tried_than_the_mean_of_what_was_taken_and_refused():
    """Between what was taken and what was refused lies their geometric mean, if that is less than three quarters."""
    refusals = Refusals()
    refusals.apply(turn(1, 2500))
    window = Window(None, "unknown")
    assert refusals.learn(window, None, 3600) == Window(3000 - 300, "guessed")  # 0.75 × 3 600: the mean is 3 000
    assert refusals.learn(window, None, 10_000) == Window(5000, "guessed")  # √(2 500 × 10 000) = 0.5 × 10 000
    assert refusals.learn(window, None, 10_000) == Window(3000, "guessed")  # the last step: 1.2 × what was taken
    assert refusals.learn(window, None, 4000) == Window(2000, "guessed")  # at most half of it


def test_the_second_step_is_the_geometric_mean_where_that_is_more_than_a_half():
    refusals = Refusals()
    refusals.apply(turn(1, 4000))
    window = Window(None, "unknown")
    refusals.learn(window, None, 10_000)
    assert refusals.learn(window, None, 10_000) == Window(math.ceil(math.sqrt(4000 * 10_000)), "guessed")


def test_a_refused_size_that_was_not_told_is_taken_for_more_each_time():
    refusals = Refusals()
    sizes = []
    for _ in range(4):
        sizes.append(refusals.at_least(1000))
        refusals.learn(Window(1000, "learned"), 1000, 2000)
    assert sizes == [1050, 1500, 50_000, 50_000]


def test_the_largest_size_that_an_endpoint_took_is_read_from_the_bills_of_its_answers():
    """A call that was stopped before its answer began proves nothing, nor does a bill of more tokens than bytes."""
    refusals = Refusals()
    refusals.apply(TimelineEvent(1, 0.0, Configured("p", "m", "timeline", base_url="http://wide")))
    for number, event in enumerate((turn(2, 3000), turn(3, 9000, output=0), turn(4, 19_000, size_bytes=4400)), 2):
        refusals.apply(event)
        assert refusals.taken == (3000, 3000, 4400)[number - 2]
    for number, configured in enumerate(
        (
            Configured("p", "m", "digest", base_url="http://wide"),
            Configured("p", "m", "timeline", base_url="http://narrow"),
            Configured("p", "n", "timeline", base_url="http://narrow"),
            Configured("q", "n", "timeline", base_url="http://narrow"),
        )
    ):
        refusals.apply(TimelineEvent(10 * number + 10, 0.0, configured))
        assert refusals.taken == (0 if number else 4400)
        refusals.apply(turn(10 * number + 11, 3000))


def test_a_guessed_window_is_no_smaller_than_the_size_that_was_just_accepted():
    refusals = Refusals()
    guess = Window(330, "guessed")
    assert refusals.accept(guess, 1100, 1200) == Window(1200, "guessed")
    assert refusals.accept(guess, 1100, 0) == Window(1100, "guessed")  # the bill is missing
    assert refusals.accept(guess, 1100, 19_000) == Window(1100, "guessed")  # it cannot be
    assert refusals.accept(guess, None, 1200) == guess  # nothing was counted: the limit is far away
    for window in (Window(330, "learned"), Window(330, "configured"), Window(None, "unknown")):
        assert refusals.accept(window, 1100, 0) == window


def test_a_guessed_window_is_no_smaller_than_a_size_that_was_taken_before_and_is_not_contradicted():
    refusals = Refusals()
    refusals.apply(turn(1, 19_000))
    guess = refusals.learn(Window(None, "unknown"), None, 20_000)
    assert guess == Window(15_000, "guessed")
    assert refusals.accept(guess, 11_000, 11_000) == Window(19_000, "guessed")
    assert refusals.accept(guess, 11_000, 11_000) == guess  # it counts once, for that refusal
    refusals.apply(turn(2, 11_000))
    guess = refusals.learn(Window(None, "unknown"), None, 18_000)  # less than was taken: the window became smaller
    assert refusals.accept(guess, 11_000, 11_000) == guess


def test_a_bill_counts_on_while_the_configuration_is_the_same_and_not_when_it_changed():
    one = engine(100_000)
    log = started(one)
    log.say(*step(1, WORDS))
    log.record(Spent("script-1", Usage(input=5000), "", purpose="turn"))
    assert one.meter.billed == 5000
    log.record(CONFIGURED)
    assert one.meter.billed == 5000
    parts = (CONFIGURED.sections, CONFIGURED.tools)
    log.record(Configured("scripted", "script-1", "timeline", *parts, Effort("high", 4000), max_output=1000))
    assert one.meter.billed == 5000  # neither sections nor tools nor model are others
    log.record(Configured("scripted", "script-2", "timeline", *parts, max_output=1000))
    assert one.meter.billed == 0


def test_a_plan_uses_the_same_numbers_as_the_compaction():
    one = filled()
    before = one.measure(exact=True)
    allowance = one.room(before, eager=True)
    assert allowance.goal == min(6000, before // 2)
    assembly = assemble(one, force="manual")
    assert assembly.tokens <= allowance.goal
    assert say("user", "Look at all of it. " * 40) in assembly.request.messages
