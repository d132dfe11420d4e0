"""Is a block that is too large cut to what it may cost, with the way to the rest? And what do messages weigh?"""

import pytest

from ra.context.render import clip, level, size
from ra.context.size import PICTURE, Sizes
from ra.context.tokens import Estimator, MessageList
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.core.model import Request, Section

estimator = Estimator()
LONG = " ".join(f"word{n}" for n in range(400))
SHORT = (
    Text("short"),
    Thinking("short", "seal"),
    ToolCall("1", "Read", {"path": "a.py"}),
    ToolCall("1", "Read", {}, broken="{a"),
    ToolResult("1", "Read", (Text("short"),)),
)
LARGE = {
    "text": Text(LONG),
    "an argument": ToolCall("1", "Write", {"path": "a.py", "content": LONG}),
    "an argument deep inside": ToolCall("1", "Write", {"edits": [{"new": LONG, "line": 1}], "force": True}),
    "many arguments": ToolCall("1", "Write", {f"key{n}": n for n in range(200)}),
    "many quotes": ToolCall("1", "Write", {f'"{n}"': [] for n in range(300)}),
    "arguments that are no JSON": ToolCall("1", "Write", {}, broken=LONG),
    "a result": ToolResult("1", "Read", (Text("short"), Text(LONG), Image("image/png", b"x"))),
    "a page": Document("text/plain", LONG.encode(), "a.txt"),
}


@pytest.mark.parametrize("block", SHORT)
def test_what_fits_is_left_as_it_is(block: Block) -> None:
    assert clip(block, "12", 2000, estimator) == block


@pytest.mark.parametrize("keep", [300, 60])
@pytest.mark.parametrize("kind", LARGE)
def test_what_does_not_fit_is_cut_and_names_where_the_rest_is(kind: str, keep: int) -> None:
    left = clip(LARGE[kind], "12", keep, estimator)
    assert left is not None
    assert size(LARGE[kind], estimator) > keep >= size(left, estimator)
    assert "12" in str(left) or kind == "arguments that are no JSON"


def test_where_no_word_fits_the_call_is_left_bare() -> None:
    assert clip(LARGE["many arguments"], "12", 2, estimator) == ToolCall("1", "Write", {})


def test_half_a_thought_is_none() -> None:
    assert clip(Thinking(LONG, "seal"), "12", 20, estimator) is None


def test_a_picture_that_does_not_fit_is_named() -> None:
    left = clip(Image("image/png", b"x"), "12", 100, estimator)
    assert isinstance(left, Text)
    assert "image/png" in left.text
    assert clip(Image("image/png", b"x"), "12", 100_000, estimator) == Image("image/png", b"x")


@pytest.mark.parametrize(
    ("sizes", "room", "mark"), [([], 9, 0), ([1, 2], 9, 2), ([1, 9, 9], 11, 5), ([4, 4], -1, 0), ([1, 100], 50, 49)]
)
def test_the_largest_are_cut_first(sizes: list[int], room: int, mark: int) -> None:
    assert level(sizes, room) == mark


def test_a_tape_counts_each_message_once_and_forgets_what_is_cut() -> None:
    messages = [say("user", f"message {n}") for n in range(6)]
    tape = MessageList(estimator)
    tape.extend(messages[:4])
    tape.extend([])
    assert tape.tokens(since=2) == estimator.messages(messages[2:4])
    assert tape.counted == 0  # what lies before was not asked for
    assert (tape.tokens(), tape.counted) == (estimator.messages(messages[:4]), 4)
    twin = tape.copy()
    tape.cut(9)
    tape.cut(2)
    tape.extend(messages[4:])
    assert tape.messages == (*messages[:2], *messages[4:])
    assert tape.tokens() == estimator.messages(tape.messages)
    assert (twin.messages, len(twin)) == (tuple(messages[:4]), 4)


def test_sizes_are_known_by_source_and_follow_what_was_taken_back() -> None:
    asked = Message("user", (Text("hello"), Image("image/png", b"x"), Document("application/pdf", b"x", "a.pdf")))
    thought = Message("assistant", (Thinking("hm", "s"), ToolCall("1", "Read", {})))
    read = Message("tool", (ToolResult("1", "Read", (Text("four"), Image("image/png", b"x"))),))
    sizes, section = Sizes(), Section("system", "pinned", "be brief")
    whole = Request(model="m", sections=(section,), messages=(asked, thought, read))
    expected = {"system": 8, "conversation": 5 + 2 + 6, "attachments": 2 * PICTURE, "tool:Read": 4 + PICTURE}
    assert sizes.of(whole) == expected
    assert sizes.of(whole) == expected
    assert sizes.of(Request(model="m", sections=(section,), messages=(asked,))) == {
        "system": 8, "conversation": 5, "attachments": 2 * PICTURE,
    }  # fmt: skip
