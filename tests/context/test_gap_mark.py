from ra.context.cacheplan import marks
from ra.context.projection import COMPACTED
from ra.core.messages import Message, say
from ra.core.model import Marks, Request, Section, ToolSpec

SYSTEM = Section("system", "pinned", "You are careful.")
TOOL = ToolSpec("Read", "Reads.", {})


def talk(count: int) -> list[Message]:
    return [say("assistant" if index % 2 else "user", f"message {index}") for index in range(count)]


def test_what_is_unchanged_before_a_gap_has_a_mark_of_its_own():
    messages = talk(41)
    messages.insert(10, say("user", "[gap]", name=COMPACTED))
    request = Request("m", (SYSTEM,), tuple(messages), (TOOL,))
    assert marks(request) == Marks(tools=False, sections=(0,), messages=(9, 39, 41))


def test_without_a_gap_the_tools_keep_theirs():
    request = Request("m", (SYSTEM,), tuple(talk(41)), (TOOL,))
    assert marks(request) == Marks(tools=True, sections=(0,), messages=(38, 40))


def test_without_a_system_part_the_tools_keep_theirs_beside_a_gap():
    messages = talk(5)
    messages.insert(1, say("user", "[gap]", name=COMPACTED))
    assert marks(Request("m", (), tuple(messages), (TOOL,))) == Marks(tools=True, messages=(0, 3, 5))
