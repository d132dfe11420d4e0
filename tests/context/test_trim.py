"""Is what is left within its limit, whole where it must be, and is the rest readable?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.tokens import Estimator
from ra.context.trim import ByGroup, ByText, Trim, Trimmed, groups, shorten, transcript
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, result, say
from ra.core.text import reference

estimator = Estimator()


def words(count: int, start: int = 0) -> str:
    return " ".join(f"word{n}" for n in range(start, start + count))


def step(number: int, output: str = "fine") -> tuple[Message, Message]:
    call = ToolCall(f"call{number}", "Read", {"path": f"file{number}.py"})
    return Message("assistant", (Text(f"step {number}"), call)), result(call, output)


CONVERSATION = (say("user", "do it"), *step(1), *step(2), say("assistant", "done"))


def test_a_group_is_an_assistant_message_with_its_results() -> None:
    first, second = ToolCall("a", "Read", {}), ToolCall("b", "Read", {})
    both = Message("assistant", (first, second))
    answers = (result(first, "1"), result(second, "2"))
    stray = result(ToolCall("x", "Read", {}), "?")
    question = say("user", "and?")
    assert groups((both, *answers, stray, question)) == [(both, *answers), (stray,), (question,)]


def test_a_reference_is_the_hash_of_the_whole_text() -> None:
    assert reference("hello") == "~2cf24dba5fb0"


@pytest.mark.parametrize("where", ["head", "tail", "both"])
def test_shortened_text_tells_how_to_read_the_whole(where: str) -> None:
    text = words(500)
    short = shorten(text, 100, where, estimator)
    ref = reference(text)
    assert f"recall {ref} reads the whole text, {estimator.text(text)} tokens" in short.text
    assert short.kept == {ref: text}
    assert ref in short.cut
    assert short.text.startswith("word0 ") == (where != "tail")
    assert short.text.endswith("word499") == (where != "head")


def test_text_that_fits_is_not_touched() -> None:
    assert shorten("hello", 1, "head", estimator) == shorten("hello", 99, "both", estimator)
    assert shorten("hello", 1, "head", estimator).cut == ""


def test_the_shortest_mark_of_a_cut_is_one_token() -> None:
    assert shorten("hello world", 1, "both", estimator).text == "…"


def test_newest_groups_are_kept_whole() -> None:
    messages = (say("user", words(30)), *step(1), *step(2))
    last = estimator.messages(messages[3:])
    left = ByGroup(messages, estimator).take(last + 5)
    assert (left.messages, left.indexes, left.tokens) == (messages[3:], (3, 4), last)
    assert left.cut == f"3 of 5 messages, {estimator.messages(messages[:3])} tokens; recall {next(iter(left.kept))}"


def test_a_named_list_has_a_marker_where_it_was_cut() -> None:
    messages = tuple(say("user", words(20, start=n)) for n in range(20))
    left = ByGroup(messages, estimator, name="history").take(200)
    ref = reference(transcript(messages))
    total = estimator.messages(messages)
    marker = say(
        "user", f"[… earlier messages are cut: recall {ref} reads all 20 messages, {total} tokens …]", name="history"
    )
    assert left.messages[0] == marker
    assert left.messages[1:] == messages[-len(left.messages) + 1 :]
    assert left.indexes[0] == left.indexes[1]
    assert left.kept == {ref: transcript(messages)}


def test_a_newest_group_that_is_too_large_is_shortened_when_one_must_stay() -> None:
    messages = (say("user", "first"), *step(1, output=words(900)))
    left = ByGroup(messages, estimator, name="history", at_least_one=True).take(200)
    assert [message.role for message in left.messages] == ["user", "assistant", "tool"]
    output = left.messages[-1].blocks[0]
    assert isinstance(output, ToolResult)
    assert isinstance(output.content[0], Text)
    assert output.content[0].text.startswith("word0 ")
    assert output.content[0].text.endswith("word899")
    assert left.tokens <= 200


def test_texts_are_shortened_oldest_first_and_every_message_stays() -> None:
    messages = (say("user", words(50)), say("assistant", words(50)), say("user", words(50)))
    size = estimator.messages(messages)
    left = ByText(messages, estimator).take(size - 60)
    assert [message.role for message in left.messages] == ["user", "assistant", "user"]
    assert left.messages[1:] == messages[1:]
    assert left.messages[0] != messages[0]


def test_what_the_user_typed_outlives_the_files_that_came_with_it() -> None:
    files = tuple(Text(f"file {n} " * 400) for n in range(5))
    left = ByText([Message("user", (Text("Compare these files, and say which one is the best."), *files))], estimator)
    assert left.take(300).messages[0].blocks[0] == Text("Compare these files, and say which one is the best.")


def test_calls_thoughts_and_pictures_are_never_shortened() -> None:
    call = ToolCall("1", "Write", {"content": words(40)})
    message = Message("assistant", (Thinking(words(40), "seal"), Text(words(200)), call, Image("image/png", b"x")))
    left = ByText((message,), estimator).take(estimator.message(message) - 100)
    assert [block for block in left.messages[0].blocks if not isinstance(block, Text)] == [
        block for block in message.blocks if not isinstance(block, Text)
    ]


def test_the_oldest_groups_go_when_not_even_bare_frames_fit() -> None:
    left = ByText(CONVERSATION, estimator).take(10)
    assert left.messages == CONVERSATION[-1:]
    assert reference(transcript(CONVERSATION[:-1])) in left.kept


def test_a_transcript_holds_every_word() -> None:
    assert transcript((say("user", "do it"), *step(1))) == (
        'user: do it\n\nassistant: step 1\nRead {"path":"file1.py"}\n\ntool: fine'
    )
    assert transcript((Message("user", (Text("see"), Image("image/png", b"12"))),)) == "user: see\n[image/png, 2 bytes]"


TEXTS = st.text(alphabet=st.sampled_from("ab 吾é😀\n"), max_size=60) | st.integers(0, 120).map(words)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(["user", "assistant", "tools"])):
            case "tools":
                calls = [ToolCall(f"{number}-{n}", "Read", {"n": n}) for n in range(draw(st.integers(1, 3)))]
                messages.append(Message("assistant", (Text(draw(TEXTS)), *calls)))
                messages += [result(call, draw(TEXTS)) for call in calls]
            case role:
                messages.append(say(role, draw(TEXTS)))
    return tuple(messages)


TRIMS = st.sampled_from(["group", "marked", "one", "text", "head"])


def trim_of(kind: str, messages: tuple[Message, ...]) -> Trim:
    match kind:
        case "group":
            return ByGroup(messages, estimator)
        case "marked":
            return ByGroup(messages, estimator, name="history")
        case "one":
            return ByGroup(messages, estimator, name="history", at_least_one=True)
        case "text":
            return ByText(messages, estimator)
        case _:
            return ByText(messages, estimator, where="head")


def paired(messages: tuple[Message, ...]) -> bool:
    calls = [call.id for message in messages for call in message.calls]
    results = [block.call_id for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    return calls == results


@given(conversations(), st.integers(-1, 300), TRIMS)
@settings(max_examples=100, deadline=None)
def test_what_is_left_fits_is_counted_and_paired(messages: tuple[Message, ...], limit: int, kind: str) -> None:
    trim = trim_of(kind, messages)
    left = trim.take(limit)
    assert left.tokens == estimator.messages(left.messages) == trim.fit(limit)
    assert left.tokens <= max(0, limit)
    assert paired(left.messages)
    assert len(left.messages) == len(left.indexes)


@given(conversations(), st.integers(0, 300), TRIMS)
@settings(max_examples=100, deadline=None)
def test_nothing_is_cut_without_a_word(messages: tuple[Message, ...], limit: int, kind: str) -> None:
    left = trim_of(kind, messages).take(limit)
    if left.messages == messages:
        assert left == Trimmed(messages, tuple(range(len(messages))), estimator.messages(messages))
    else:
        assert left.kept
        assert all(ref in left.cut and ref == reference(text) for ref, text in left.kept.items())


@given(conversations(), st.integers(0, 300))
@settings(max_examples=100, deadline=None)
def test_whole_groups_are_a_suffix_and_as_many_as_fit(messages: tuple[Message, ...], limit: int) -> None:
    left = ByGroup(messages, estimator).take(limit)
    assert left.messages == messages[len(messages) - len(left.messages) :]
    before = groups(messages[: len(messages) - len(left.messages)])
    assert not before or left.tokens + estimator.messages(before[-1]) > limit


@given(conversations(), st.integers(0, 300))
@settings(max_examples=100, deadline=None)
def test_shortening_changes_neither_roles_nor_structure(messages: tuple[Message, ...], limit: int) -> None:
    left = ByText(messages, estimator).take(limit)
    originals = [messages[index] for index in left.indexes]
    assert [message.role for message in left.messages] == [message.role for message in originals]
    assert [[type(block) for block in message.blocks] for message in left.messages] == [
        [type(block) for block in message.blocks] for message in originals
    ]
    assert [message.calls for message in left.messages] == [message.calls for message in originals]


@given(conversations(), st.integers(0, 300), TRIMS)
@settings(max_examples=60, deadline=None)
def test_trimming_is_deterministic(messages: tuple[Message, ...], limit: int, kind: str) -> None:
    assert trim_of(kind, messages).take(limit) == trim_of(kind, messages).take(limit)
