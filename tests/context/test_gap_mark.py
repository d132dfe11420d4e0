from ra.context.engine import cache_marks as marks
from ra.context.render import COMPACTED
from ra.core.facts import Checkpointed
from ra.core.messages import Message, say
from ra.core.model import Marks, Request, Section, ToolSpec
from tests.context.sessions import engine, run, started, step

SYSTEM = Section("system", "pinned", "You are careful.")
TOOL = ToolSpec("Read", "Reads.", {})


def talk(count: int) -> list[Message]:
    return [say("assistant" if index % 2 else "user", f"message {index}") for index in range(count)]


def test_after_a_cut_its_marker_has_a_mark():
    messages = talk(41)
    messages.insert(10, say("user", "[gap]", name=COMPACTED))
    request = Request("m", (SYSTEM,), tuple(messages), (TOOL,))
    assert marks(request, cut=True, gap=10) == Marks(tools=True, sections=(0,), messages=(10, 41))
    assert marks(request) == Marks(tools=True, sections=(0,), messages=(39, 41))


def test_a_cut_without_a_gap_leaves_the_last_message_alone():
    request = Request("m", (SYSTEM,), tuple(talk(41)), (TOOL,))
    assert marks(request, cut=True) == Marks(tools=True, sections=(0,), messages=(40,))


def test_with_an_older_gap_there_is_a_mark_on_both_and_none_on_the_tools():
    messages = talk(41)
    messages.insert(10, say("user", "[old]", name=COMPACTED))
    messages.insert(30, say("user", "[new]", name=COMPACTED))
    request = Request("m", (SYSTEM,), tuple(messages), (TOOL,))
    assert marks(request, cut=True, gap=30) == Marks(tools=False, sections=(0,), messages=(10, 30, 42))


def test_the_mark_is_on_the_marker_of_the_last_cut_wherever_that_is():
    one = engine(60_000)
    log = started(one)
    log.say(*(message for number in range(9) for message in step(number, f"result {number}")))
    # Steps stand at 3 and 4, 5 and 6, …; the second cut is before the first.
    log.record(Checkpointed("truncate", "", hidden=((15, 18),), marker="[one]"))
    log.record(Checkpointed("truncate", "", hidden=((5, 8),), marker="[two]"))
    request = one.request()
    assert [message.text for message in request.messages if message.name == COMPACTED] == ["[two]", "[one]"]
    assert request.messages[request.marks.messages[0]].text == "[two]"


def test_only_the_first_request_after_a_compaction_has_its_mark_on_the_marker():
    one = engine(4000)
    log = started(one)
    before = 0
    for request in run(one, log, 40):
        names = [message.name for message in request.messages]
        cut = len(log.facts(Checkpointed)) > before
        before = len(log.facts(Checkpointed))
        if COMPACTED in names:
            assert (request.marks.messages[0] == names.index(COMPACTED)) == cut
    assert before > 1
