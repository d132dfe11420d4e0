"""The slot table: every option, default, rule and ruling of the page on slots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compose.slots import Rendered, Slots
from ra.context.tokens import Estimator
from ra.core.errors import UsageError
from ra.core.messages import Message, ToolCall, result, say
from ra.core.text import reference

estimator = Estimator()
TEN = "one two three four five six"  # a message of ten tokens


def slots(budget: int = 1_000, prompt: Message | None = None) -> Slots:
    return Slots(budget, estimator, prompt=prompt)


def ten(label: str = "one", role: str = "user") -> Message:
    """A message of ten tokens."""
    message = say(role, TEN.replace("one", label, 1))
    assert estimator.message(message) == 10
    return message


HISTORY = [ten(label) for label in ("a", "b", "c", "d", "e")]


def texts(rendered: Rendered) -> list[str]:
    return [message.text for message in rendered.messages]


def sizes(rendered: Rendered) -> dict[str, int]:
    return {row.name: row.tokens for row in rendered.rows}


# --- content ---


def test_a_string_becomes_a_user_message() -> None:
    prompt = slots()
    prompt.add("memory", "remember this")
    assert prompt.render().messages == (say("user", "remember this", name="memory"),)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_role_is_that_of_a_string(role: str) -> None:
    prompt = slots()
    prompt.add("memory", "remember this", role=role)
    assert prompt.render().messages == (say(role, "remember this", name="memory"),)


def test_role_tool_is_labelled_output_that_every_provider_takes() -> None:
    prompt = slots()
    prompt.add("memory", "remember this", role="tool")
    rendered = prompt.render()
    assert rendered.messages == (say("user", "[Output of the tool memory]\nremember this", name="tool:memory"),)
    assert rendered.rows[0].role == "tool"


def test_plain_objects_are_messages() -> None:
    prompt = slots()
    prompt.add("one", {"role": "user", "content": "Hello"})
    prompt.add("many", [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}, say("user", "again")])
    assert prompt.render().messages == (say("user", "Hello"), say("assistant", "Hi"), say("user", "again"))


def test_messages_are_taken_as_they_are() -> None:
    prompt = slots()
    prompt.add("one", HISTORY[0])
    prompt.add("many", HISTORY[1:])
    assert prompt.render().messages == tuple(HISTORY)


def test_role_does_not_change_messages_and_says_so() -> None:
    prompt = slots()
    prompt.add("history", HISTORY, role="assistant")
    rendered = prompt.render()
    assert rendered.messages == tuple(HISTORY)
    assert rendered.warnings == ("Slot 'history': role='assistant' is for strings; its messages keep their own roles.",)


@pytest.mark.parametrize("nothing", [None, "", [], ()])
def test_nothing_adds_nothing(nothing: object) -> None:
    prompt = slots()
    prompt.add("nothing", nothing)
    assert prompt.render() == Rendered(())


def test_no_slots_render_to_no_messages() -> None:
    assert slots().render() == Rendered(())


def test_lone_surrogates_are_replaced() -> None:
    prompt = slots()
    prompt.add("memory", "a\ud800b")
    assert texts(prompt.render()) == ["a?b"]


# --- defaults ---


def test_defaults_change_nothing_that_fits() -> None:
    prompt = slots()
    prompt.add("system", "Be kind.", role="system")
    prompt.add("history", HISTORY)
    rendered = prompt.render()
    assert [message.text for message in rendered.messages] == ["Be kind.", *(message.text for message in HISTORY)]
    assert rendered.warnings == ()
    assert [row.cut for row in rendered.rows] == ["", ""]
    assert [(row.max, row.minimum, row.priority) for row in rendered.rows] == [(1_000, 0, 0), (1_000, 0, 0)]


# --- position ---


@pytest.mark.parametrize(
    ("positions", "order"),
    [
        ({"a": None, "b": None, "c": None}, "abc"),  # unset: the order of adding
        ({"a": 3, "b": 2, "c": 1}, "cba"),  # lower values first
        ({"a": 5, "b": 5, "c": 5}, "abc"),  # a tie: earlier add() first
        ({"a": None, "b": -1, "c": None}, "bac"),  # any integer
        ({"a": 10, "b": None, "c": None}, "bca"),  # an unset position is the number of the add() call
        ({"a": None, "b": None, "c": 1}, "abc"),  # b is at 1 too and was added earlier
    ],
)
def test_position_orders_slots(positions: dict[str, int | None], order: str) -> None:
    prompt = slots()
    for name, position in positions.items():
        prompt.add(name, name, position=position)
    assert "".join(texts(prompt.render())) == order


def test_what_adds_nothing_takes_no_place() -> None:
    prompt = slots()
    prompt.add("nothing", None)
    prompt.add("a", "a")
    prompt.add("b", "b", position=0)
    assert texts(prompt.render()) == ["a", "b"]


# --- priority ---


def test_lower_priority_is_cut_first() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, priority=1)
    prompt.add("high", HISTORY, priority=2)
    assert sizes(prompt.render()) == {"low": 0, "high": 50}


def test_negative_priorities_are_below_the_default() -> None:
    prompt = slots(60)
    prompt.add("default", HISTORY)
    prompt.add("low", HISTORY, priority=-1)
    assert sizes(prompt.render()) == {"default": 50, "low": 10}


def test_equal_priorities_are_cut_in_slot_order_and_oldest_first() -> None:
    prompt = slots(70)
    prompt.add("second", HISTORY, position=2)
    prompt.add("first", HISTORY, position=1)
    rendered = prompt.render()
    assert sizes(rendered) == {"first": 20, "second": 50}
    assert rendered.messages == (*HISTORY[3:], *HISTORY)


def test_without_priorities_system_messages_are_kept() -> None:
    prompt = slots(30)
    prompt.add("system", TEN, role="system")
    prompt.add("history", HISTORY)
    assert sizes(prompt.render()) == {"system": 10, "history": 20}


def test_without_priorities_a_system_message_in_a_list_is_kept_too() -> None:
    prompt = slots(30)
    rule = ten("rule", role="system")
    prompt.add("mixed", [HISTORY[0], rule, *HISTORY[1:]])
    assert prompt.render().messages == (rule, *HISTORY[3:])


def test_with_any_priority_system_messages_are_cut_by_theirs() -> None:
    prompt = slots(30)
    prompt.add("system", TEN, role="system")
    prompt.add("history", HISTORY, priority=1)
    assert sizes(prompt.render()) == {"system": 0, "history": 30}


def test_kept_system_messages_go_before_minimums() -> None:
    prompt = slots(30)
    prompt.add("system", TEN, role="system")
    prompt.add("history", HISTORY, min_tokens=30)
    assert sizes(prompt.render()) == {"system": 10, "history": 20}


# --- max_ratio ---


@pytest.mark.parametrize(("ratio", "left"), [(0.4, 40), (0.45, 40), (1.0, 50), (1.7, 50), (0.0, 0), (-1, 0)])
def test_max_ratio_is_of_the_whole_budget_and_clamped(ratio: float, left: int) -> None:
    prompt = slots(100)
    prompt.add("history", HISTORY, max_ratio=ratio)
    assert sizes(prompt.render()) == {"history": left}


def test_max_ratios_may_exceed_one_together_and_priority_resolves_it() -> None:
    prompt = slots(60)
    prompt.add("a", HISTORY, max_ratio=0.8, priority=1)
    prompt.add("b", HISTORY, max_ratio=0.8, priority=2)
    assert sizes(prompt.render()) == {"a": 20, "b": 40}


def test_caps_come_before_priorities() -> None:
    prompt = slots(100)
    prompt.add("important", HISTORY, max_ratio=0.2, priority=9)
    prompt.add("rest", HISTORY)
    assert sizes(prompt.render()) == {"important": 20, "rest": 50}


# --- min_ratio, min_tokens ---


def test_min_ratio_is_kept_against_a_higher_priority() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, min_ratio=0.4)
    prompt.add("high", HISTORY, priority=1)
    assert sizes(prompt.render()) == {"low": 20, "high": 30}


def test_min_tokens_is_kept_against_a_higher_priority() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, min_tokens=20)
    prompt.add("high", HISTORY, priority=1)
    assert sizes(prompt.render()) == {"low": 20, "high": 30}


@pytest.mark.parametrize(("ratio", "tokens", "left"), [(0.2, 30, 30), (0.6, 30, 30), (0.2, 10, 10), (0.4, 5, 20)])
def test_the_larger_minimum_counts(ratio: float, tokens: int, left: int) -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY[2:], min_ratio=ratio, min_tokens=tokens)
    prompt.add("high", HISTORY, priority=1)
    assert sizes(prompt.render())["low"] == left


def test_a_minimum_counts_only_up_to_the_real_size() -> None:
    prompt = slots(50)
    prompt.add("small", ten(), min_tokens=40)
    prompt.add("high", HISTORY, priority=1, min_tokens=40)
    rendered = prompt.render()
    assert sizes(rendered) == {"small": 10, "high": 40}
    assert rendered.warnings == ()


def test_min_ratio_is_clamped_to_max_ratio() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, min_ratio=0.9, max_ratio=0.2)
    prompt.add("high", HISTORY, priority=1)
    assert sizes(prompt.render()) == {"low": 10, "high": 40}


def test_a_cap_is_stronger_than_min_tokens() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, min_tokens=40, max_ratio=0.2)
    assert sizes(prompt.render()) == {"low": 10}


def test_minimums_that_exceed_the_budget_are_ignored_with_a_warning_while_caps_stay() -> None:
    prompt = slots(50)
    prompt.add("low", HISTORY, min_ratio=0.6)
    prompt.add("high", HISTORY, min_ratio=0.6, max_ratio=0.8, priority=1)
    rendered = prompt.render()
    assert sizes(rendered) == {"low": 10, "high": 40}
    assert rendered.warnings == (
        "The minimums of the slots exceed the budget of 50 tokens: the minimums are ignored, and priority decides.",
    )


def test_minimums_of_texts_that_are_too_long_to_keep_exceed_the_budget_too() -> None:
    prompt = slots(50)
    prompt.add("one", "word " * 80, min_tokens=30)
    prompt.add("two", "word " * 90, min_tokens=30)
    assert "the minimums are ignored" in prompt.render().warnings[0]


def test_a_slot_below_its_minimum_is_named_although_no_other_wants_its_room() -> None:
    prompt = slots(50)
    prompt.add("history", [say("user", "word " * 60), ten()], min_ratio=0.5)
    rendered = prompt.render()
    assert sizes(rendered) == {"history": 10}
    assert rendered.warnings == ("Slot 'history' is below its minimum: its next whole message does not fit.",)


def test_a_slot_of_small_messages_keeps_its_minimum_beside_a_more_important_one() -> None:
    def sized(tokens: int) -> Message:
        return say("user", "word" + " word" * (tokens - 5))

    prompt = slots(96)
    prompt.add("important", [sized(10) for _ in range(4)], priority=1, max_ratio=30 / 96)
    prompt.add("small", [sized(tokens) for tokens in (6, 6, 6, 27, 27)], max_ratio=67 / 96, min_tokens=50)
    assert sizes(prompt.render()) == {"important": 30, "small": 66}


# --- trim_behavior ---


def test_message_drops_the_oldest_whole_messages() -> None:
    prompt = slots(35)
    prompt.add("history", HISTORY)
    rendered = prompt.render()
    assert rendered.messages == tuple(HISTORY[2:])
    assert rendered.rows[0].cut.startswith("2 of 5 messages, 20 tokens; recall ~")


def test_message_drops_a_string_that_does_not_fit_and_says_so() -> None:
    prompt = slots(9)
    prompt.add("memory", TEN)
    rendered = prompt.render()
    assert rendered.messages == ()
    assert rendered.warnings[0].startswith("Slot 'memory' does not fit and was left out: 1 of 1 messages")


def test_char_shortens_text_and_keeps_every_message_and_role() -> None:
    messages = [say(role, " ".join(["word"] * 100)) for role in ("user", "assistant", "user")]
    prompt = slots(200)
    prompt.add("history", messages, trim_behavior="char")
    rendered = prompt.render()
    assert [message.role for message in rendered.messages] == ["user", "assistant", "user"]
    assert all(rendered.messages)
    assert rendered.messages[2] == messages[2]
    assert estimator.messages(rendered.messages) <= 200


def test_char_leaves_a_marker_that_can_be_recalled() -> None:
    text = " ".join(f"word{n}" for n in range(300))
    prompt = slots(100)
    prompt.add("memory", text, trim_behavior="char")
    rendered = prompt.render()
    assert f"recall {reference(text)}" in texts(rendered)[0]
    assert rendered.kept == {reference(text): text}


def test_tool_calls_are_never_torn_from_their_results() -> None:
    call = ToolCall("1", "Read", {"path": "a"})
    group = [Message("assistant", (call,)), result(call, "content")]
    for budget in range(estimator.messages([*group, HISTORY[0]])):
        for behavior in ("message", "char"):
            prompt = slots(budget)
            prompt.add("history", [*group, HISTORY[0]], trim_behavior=behavior)
            assert len(prompt.render().messages) in (0, 1, 3)


# --- the current input ---


@pytest.mark.parametrize("behavior", ["message", "char"])
def test_the_input_is_cut_last_whatever_the_priorities(behavior: str) -> None:
    prompt = slots(30, question := ten("why"))
    prompt.add("input", question, trim_behavior=behavior)
    prompt.add("system", TEN, role="system", priority=100)
    prompt.add("history", HISTORY, priority=100, min_tokens=30)
    assert sizes(prompt.render()) == {"input": 10, "system": 0, "history": 20}


def test_the_input_is_shortened_and_never_silently() -> None:
    question = say("user", " ".join(f"word{n}" for n in range(300)))
    prompt = slots(100, question)
    prompt.add("history", HISTORY)
    prompt.add("input", question)
    rendered = prompt.render()
    assert len(rendered.messages) == 1
    assert rendered.messages[0].text.startswith("word0 ")
    assert rendered.messages[0].text.endswith("word299")
    assert reference(question.text) in rendered.messages[0].text
    assert any(warning.startswith("The current input was cut: ") for warning in rendered.warnings)


def test_the_input_is_known_by_its_text_too() -> None:
    prompt = slots(30, question := ten("why"))
    prompt.add("input", question.text)
    prompt.add("history", HISTORY, priority=100)
    assert sizes(prompt.render()) == {"input": 10, "history": 20}


def test_the_input_is_known_as_a_plain_object_too() -> None:
    prompt = slots(30, question := ten("why"))
    prompt.add("input", {"role": "user", "content": question.text})
    prompt.add("history", HISTORY, priority=100)
    assert sizes(prompt.render()) == {"input": 10, "history": 20}


def test_the_input_may_stand_in_a_list() -> None:
    prompt = slots(30, question := ten("why"))
    prompt.add("talk", [*HISTORY, question])
    prompt.add("notes", HISTORY, priority=5)
    assert prompt.render().messages == (question, *HISTORY[3:])


# --- calls that are wrong ---


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"priority": "high"}, "slots.add('s'): priority is 'high'; use an integer."),
        ({"priority": True}, "slots.add('s'): priority is True; use an integer."),
        ({"priority": 1.5}, "slots.add('s'): priority is 1.5; use an integer."),
        ({"position": "first"}, "slots.add('s'): position is 'first'; use an integer or None."),
        ({"max_ratio": "half"}, "slots.add('s'): max_ratio is 'half'; use a number from 0 to 1."),
        ({"min_ratio": None}, "slots.add('s'): min_ratio is None; use a number from 0 to 1."),
        ({"max_ratio": float("nan")}, "slots.add('s'): max_ratio is nan; use a number from 0 to 1."),
        ({"min_tokens": -1}, "slots.add('s'): min_tokens is -1; use 0 or more."),
        ({"min_tokens": 1.5}, "slots.add('s'): min_tokens is 1.5; use an integer."),
        ({"role": "robot"}, "slots.add('s'): role is 'robot'; use system, user, assistant, tool."),
        ({"trim_behavior": "word"}, "slots.add('s'): trim_behavior is 'word'; use char, message."),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        slots().add("s", "text", **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("", "x", "slots.add: name is ''; use a string that is not empty."),
        (None, "x", "slots.add: name is None; use a string that is not empty."),
        (
            "s",
            5,
            "slots.add('s'): content holds a int; use a string, a Message, {role, content}, a list of them, or None "
            "(a message is a Message or {'role': …, 'content': …}, not int).",
        ),
        (
            "s",
            [say("user", "x"), {"role": "user"}],
            "slots.add('s'): content holds a dict; use a string, a Message, {role, content}, a list of them, or None "
            "(the content of a message is text or a list of blocks, not NoneType).",
        ),
    ],
)
def test_wrong_content_is_refused_in_one_sentence(name: object, content: object, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        slots().add(name, content)
    assert str(caught.value) == sentence


# --- the model's own tokens ---


def test_the_budget_is_in_the_models_tokens() -> None:
    calibrated = Estimator(1.25)
    prompt = Slots(50, calibrated)
    prompt.add("history", HISTORY)
    rendered = prompt.render()
    assert rendered.messages == tuple(HISTORY[1:])
    assert (rendered.rows[0].tokens, rendered.rows[0].size) == (50, 63)


# --- properties ---

CONTENT = st.one_of(
    st.none(),
    st.integers(0, 60).map(lambda n: "word " * n),
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.integers(0, 40)), max_size=5).map(
        lambda drawn: [say(role, "word " * n) for role, n in drawn]
    ),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(-2, 2),
        "max_ratio": st.floats(-0.5, 1.5),
        "min_ratio": st.floats(-0.5, 1.5),
        "min_tokens": st.integers(0, 80),
        "position": st.none() | st.integers(-2, 2),
        "role": st.sampled_from(["system", "user", "assistant"]),
        "trim_behavior": st.sampled_from(["char", "message"]),
    },
)


@given(st.lists(st.tuples(CONTENT, OPTIONS), max_size=5), st.integers(0, 200), st.sampled_from([1.0, 1.1, 1.65]))
@settings(max_examples=100, deadline=None)
def test_budget_and_caps_hold_and_nothing_is_cut_silently(added, budget: int, factor: float) -> None:
    calibrated = Estimator(factor)
    prompt = Slots(budget, calibrated)
    for index, (content, options) in enumerate(added):
        prompt.add(f"slot{index}", content, **options)
    rendered = prompt.render()
    assert calibrated.scaled(calibrated.messages(rendered.messages)) <= budget
    for row in rendered.rows:
        assert row.tokens <= row.max
        assert (row.tokens < row.size) == bool(row.cut)
    assert all(reference(text) == ref for ref, text in rendered.kept.items())
    assert rendered == prompt.render()


@given(st.lists(st.none() | st.integers(-3, 3), max_size=6))
def test_order_is_position_then_adding(positions: list[int | None]) -> None:
    prompt = slots(10_000)
    for index, position in enumerate(positions):
        prompt.add(f"s{index}", f"s{index}", position=position)
    places = [index if position is None else position for index, position in enumerate(positions)]
    expected = sorted(range(len(places)), key=lambda index: (places[index], index))
    assert texts(prompt.render()) == [f"s{index}" for index in expected]
