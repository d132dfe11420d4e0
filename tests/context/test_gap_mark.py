from ra.context.cacheplan import marks
from ra.context.projection import COMPACTED
from ra.core.facts import Checkpointed
from ra.core.messages import Message, say
from ra.core.model import Marks, Request, Section, ToolSpec
from tests.context.sessions import engine, run, started

SYSTEM = Section("system", "pinned", "You are careful.")
TOOL = ToolSpec("Read", "Reads.", {})


def talk(count: int) -> list[Message]:
    return [say("assistant" if index % 2 else "user", f"message {index}") for index in range(count)]


def test_after_a_cut_the_newest_marker_has_a_mark():
    messages = talk(41)
    messages.insert(10, say("user", "[gap]", name=COMPACTED))
    request = Request("m", (SYSTEM,), tuple(messages), (TOOL,))
    assert marks(request, cut=True) == Marks(tools=True, sections=(0,), messages=(10, 41))
    assert marks(request) == Marks(tools=True, sections=(0,), messages=(39, 41))


def test_of_several_markers_the_newest_is_marked():
    messages = talk(41)
    messages[10:10] = [say("user", "[one]", name=COMPACTED), say("user", "[two]", name=COMPACTED)]
    request = Request("m", (SYSTEM,), tuple(messages), (TOOL,))
    assert marks(request, cut=True) == Marks(tools=True, sections=(0,), messages=(11, 42))


def test_a_cut_without_a_gap_leaves_the_last_message_alone():
    request = Request("m", (SYSTEM,), tuple(talk(41)), (TOOL,))
    assert marks(request, cut=True) == Marks(tools=True, sections=(0,), messages=(40,))


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
