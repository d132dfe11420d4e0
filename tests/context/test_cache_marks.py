from hypothesis import given, settings

from ra.context.engine import cache_marks as marks
from ra.context.report import first_difference, parts
from ra.context.tokens import Estimator
from ra.core.facts import EntrySet
from ra.core.messages import Message, say
from ra.core.model import Marks, Request, Section
from tests.context.sessions import TOOLS, answers, asks, call_of, engine, play, run, scripts, started, step

SECTIONS = tuple(Section(name, name, name) for name in ("pinned", "stable", "slow-changing", "volatile"))


def request(*messages: Message, sections=SECTIONS[:1], tools=TOOLS) -> Request:
    return Request("m", sections, messages, tools)


def test_marks_stand_on_the_tools_the_system_part_and_the_last_turns():
    loop = request(say("user", "Go"), *step(1, "one"), *step(2, "two"))
    assert marks(loop) == Marks(tools=True, sections=(0,), messages=(2, 4))


def test_the_first_request_has_room_for_a_tier_edge():
    assert marks(request(say("user", "Go"), sections=SECTIONS)) == Marks(True, (1, 2), (0,))
    assert marks(request(say("user", "Go"), sections=SECTIONS, tools=())) == Marks(False, (0, 1, 2), (0,))


def test_no_mark_stands_on_a_volatile_section():
    assert marks(request(say("user", "Go"), sections=SECTIONS[3:])).sections == ()


def test_the_second_mark_stands_where_the_request_before_ended_however_many_calls_a_turn_has():
    """The look-back of a cache is 20 blocks; thirty calls at once are more than sixty."""
    calls = [call_of(n) for n in range(30)]
    before = request(say("user", "Go"), *step(1, "one"))
    after = request(*before.messages, asks(*calls), *(answers(call, "x") for call in calls))
    assert marks(after).messages == (len(before.messages) - 1, len(after.messages) - 1)
    assert marks(before).messages[-1] == marks(after).messages[0]


@settings(deadline=None, max_examples=30)
@given(scripts)
def test_there_are_two_to_four_marks_in_every_request(script):
    one = engine(20_000)
    log = started(one)
    for sent in play(script, one, log):
        found = sent.assembly.request.marks
        assert 2 <= found.tools + len(found.sections) + len(found.messages) <= 4
        assert all(index < len(sent.assembly.request.messages) for index in found.messages)


def test_an_extended_request_has_no_difference():
    one = engine(100_000)
    log = started(one)
    first, *_, last = run(one, log, 5)
    assert first_difference(first, last, Estimator()) is None


def test_the_first_byte_that_differs_is_named_with_its_source_and_its_price():
    estimator = Estimator(2.0)
    old = request(say("user", "Go"), *step(1, "one"), *step(2, "two"))
    new = request(say("user", "Go"), *step(1, "0ne"), *step(2, "two"), say("user", "More"))
    found = first_difference(old, new, estimator)
    assert found is not None
    assert found.source == "tool:Read"
    serialised = [b"".join(part.body for part in parts(one)) for one in (old, new)]
    assert serialised[0][: found.byte] == serialised[1][: found.byte]
    assert serialised[0][found.byte] != serialised[1][found.byte]
    assert found.old != found.new
    assert found.rebilled == 2 * estimator.messages(old.messages[2:])


def test_a_changed_system_prompt_rebills_everything_behind_it():
    old = request(say("user", "Go"))
    new = request(say("user", "Go"), sections=(Section("pinned", "pinned", "pinned, at 12:01"),))
    found = first_difference(old, new, Estimator())
    assert found is not None
    assert found.source == "pinned"
    assert found.rebilled == Estimator().section(SECTIONS[0]) + Estimator().messages(old.messages)


def test_an_entry_that_is_replaced_shows_as_the_difference():
    one = engine(100_000)
    log = started(one)
    log.record(EntrySet("a", "old words"))
    log.say(*step(1, "one"))
    before = one.request()
    log.record(EntrySet("a", "new words"))
    found = first_difference(before, one.request(), Estimator())
    assert found is not None
    assert found.source == "entries"
