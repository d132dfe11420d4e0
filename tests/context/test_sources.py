"""Do sources share a budget as the rules say: checks, order, cuts, fair shares, times, failures?"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compose.sources import Composition, Source, check, compose, from_settings
from ra.context.fit import FitRow
from ra.context.items import TimestampedMessage
from ra.context.settings import ContextSettings, SourceSettings
from ra.context.tokens import Estimator
from ra.context.trim import transcript
from ra.core.errors import ConfigError, UsageError
from ra.core.messages import Message, Text, ToolCall, ToolResult, result, say
from ra.core.model import Section
from ra.core.text import reference

estimator = Estimator()
LONG = " ".join(f"word{n}" for n in range(500))


def composed(source_budget: float, prompt: Message | None = None, /, **sources: Source) -> Composition:
    return asyncio.run(compose(source_budget, sources, estimator, prompt=prompt))


def timed(*pairs: tuple[float | None, str]) -> list[TimestampedMessage]:
    return [TimestampedMessage(say("user", text), at) for at, text in pairs]


def texts(composition: Composition) -> list[str]:
    return [message.text for message in composition.messages]


def ten(label: str) -> Message:
    """A message of ten tokens."""
    message = say("user", f"{label} two three four five six")
    assert estimator.message(message) == 10
    return message


TALK = [ten(label) for label in "abcdefghijklmnopqrst"]


# --- registration ---

DOCS = Source("docs", max=10, cache="stable")


@pytest.mark.parametrize(
    ("budget", "sources", "sentence"),
    [
        (0, {"a": DOCS}, "use_context: source_budget is 0; use a positive, finite number of tokens."),
        (-1, {}, "use_context: source_budget is -1; use a positive, finite number of tokens."),
        (
            float("inf"),
            {"a": DOCS},
            "use_context: source_budget is inf; use a positive, finite number of tokens.",
        ),
        (None, {"a": DOCS}, "use_context: source_budget is None; use a positive, finite number of tokens."),
        (True, {"a": DOCS}, "use_context: source_budget is True; use a positive, finite number of tokens."),
        (100, {}, "use_context: sources is {}; name at least one source."),
        (100, None, "use_context: sources is None; name at least one source."),
        (100, {"a": "text"}, "use_context: sources.a is a str; use Source(content, max=…, cache=…)."),
        (
            100,
            {"a": Source("x", max=-1, cache="hot")},
            "use_context: sources.a: cache is 'hot'; use pinned, stable, slow-changing, volatile.",
        ),
        (
            100,
            {"a": Source("x", max=-1), "b": Source("x", cache="hot")},
            "use_context: sources.b: cache is 'hot'; use pinned, stable, slow-changing, volatile.",
        ),
        (100, {"a": Source("x", max=0)}, "use_context: sources.a: max is 0; use a positive, finite number of tokens."),
        (
            100,
            {"a": Source("x", max=float("nan"))},
            "use_context: sources.a: max is nan; use a positive, finite number of tokens.",
        ),
        (
            100,
            {"a": Source("x", cache="pinned")},
            "use_context: sources.a: max is missing; only volatile sources may leave it out.",
        ),
        (
            100,
            {"a": Source("x", max=60, cache="pinned"), "b": Source("x", max=41, cache="stable")},
            "use_context: source_budget is 100, but the sources that are not volatile may use 101; "
            "lower their max or raise it.",
        ),
        (
            1_000_000,
            {"a": Source("x", max=1_234_567.5, cache="pinned")},
            "use_context: source_budget is 1000000, but the sources that are not volatile may use 1234567.5; "
            "lower their max or raise it.",
        ),
        (100, {"a": Source(5)}, "use_context: sources.a: content is a int; use a string or a function."),
        (100, {"a": Source("x", role="tool")}, "use_context: sources.a: role is 'tool'; use system, user, assistant."),
        (100, {"a": Source("x", trim="end")}, "use_context: sources.a: trim is 'end'; use head, tail, middle."),
        (100, {"a": Source("x", priority="1")}, "use_context: sources.a: priority is '1'; use an integer."),
        (100, {"a": Source("x", position=1.5)}, "use_context: sources.a: position is 1.5; use an integer."),
    ],
)
def test_what_cannot_be_composed_is_refused_in_one_sentence(budget: object, sources: object, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(budget, sources)
    assert str(caught.value) == sentence


def test_maximums_that_equal_the_budget_are_fine() -> None:
    check(100, {"a": Source("x", max=60, cache="pinned"), "b": Source("x", max=40, cache="stable"), "c": Source("x")})


# --- order and roles ---


def test_sources_stand_by_tier_then_position_then_declaration() -> None:
    composition = composed(
        1_000,
        late=Source("late"),
        slow=Source("slow", max=9, cache="slow-changing"),
        stable2=Source("stable2", max=9, cache="stable", position=1),
        stable1=Source("stable1", max=9, cache="stable", position=0),
        pinned=Source("pinned", max=9, cache="pinned"),
        early=Source("early", position=-1),
    )
    assert [section.name for section in composition.sections] == ["pinned", "stable1", "stable2", "slow"]
    assert [message.name for message in composition.messages] == ["early", "late"]


def test_text_is_a_system_section_or_where_it_is_volatile_a_system_message() -> None:
    composition = composed(1_000, docs=Source("the docs", max=50, cache="stable"), found=Source("hits"))
    assert composition.sections == (Section("docs", "stable", "the docs", max=50),)
    assert composition.messages == (say("system", "hits", name="found"),)


def test_an_explicit_role_wins() -> None:
    composition = composed(
        1_000, docs=Source("the docs", max=50, cache="stable", role="user"), found=Source("hits", role="assistant")
    )
    assert composition.sections == ()
    assert composition.messages == (say("user", "the docs", name="docs"), say("assistant", "hits", name="found"))


def test_text_after_messages_stays_in_order() -> None:
    composition = composed(
        1_000,
        examples=Source(lambda: [say("user", "2+2"), say("assistant", "4")], max=50, cache="pinned"),
        docs=Source("the docs", max=50, cache="stable"),
    )
    assert composition.messages == (
        say("user", "2+2"),
        say("assistant", "4"),
        say("system", "the docs", name="docs"),
    )


# --- content ---


def test_content_is_a_text_a_function_or_an_async_function_and_called_once() -> None:
    calls: list[str] = []

    def sync() -> str:
        calls.append("sync")
        return "from a function"

    async def later() -> str:
        calls.append("later")
        await asyncio.sleep(0)
        return "from an async function"

    composition = composed(1_000, a=Source("plain"), b=Source(sync), c=Source(later))
    assert texts(composition) == ["plain", "from a function", "from an async function"]
    assert calls == ["sync", "later"]


def test_empty_text_adds_nothing() -> None:
    composition = composed(1_000, a=Source("", max=5, cache="stable"), b=Source(list))
    assert (composition.sections, composition.messages) == ((), ())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: None, "TypeError: it returned a NoneType; return a string or a list of messages"),
        (lambda: [{}], "TypeError: a message is a Message or {'role': …, 'content': …}, not dict"),
    ],
)
def test_a_failing_source_is_a_stable_line_and_a_warning(content, reason: str) -> None:
    composition = composed(1_000, docs=Source(content, max=50, cache="stable"), talk=Source(lambda: TALK[:1]))
    assert composition.sections == (Section("docs", "stable", "[The source docs could not be read.]", max=50),)
    assert composition.messages == (TALK[0],)
    assert composition.warnings == (f"Source 'docs' could not be read: {reason}",)


def test_cancelling_a_run_is_no_failure_of_a_source() -> None:
    async def cancelled() -> str:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        composed(1_000, docs=Source(cancelled))


def test_lone_surrogates_are_replaced() -> None:
    assert texts(composed(1_000, a=Source("a\ud800b"))) == ["a?b"]


# --- limits ---


@pytest.mark.parametrize(
    ("trim", "starts", "ends"), [("head", True, False), ("tail", False, True), ("middle", True, True)]
)
def test_text_over_its_max_is_cut_with_a_marker_that_can_be_recalled(trim: str, starts: bool, ends: bool) -> None:
    composition = composed(1_000, docs=Source(LONG, max=100, cache="stable", trim=trim))
    section = composition.sections[0]
    assert estimator.section(section) <= 100
    assert section.content.startswith("word0 ") == starts
    assert section.content.endswith("word499") == ends
    assert f"recall {reference(LONG)}" in section.content
    assert reference(LONG) in section.cut
    assert composition.kept == {reference(LONG): LONG}


def test_a_cut_is_the_same_in_every_run() -> None:
    first, second = (composed(1_000, docs=Source(LONG, max=100, cache="stable")) for _ in range(2))
    assert first == second


def test_messages_over_their_max_keep_the_newest_behind_a_marker() -> None:
    composition = composed(1_000, talk=Source(lambda: TALK, max=100))
    marker, *left = composition.messages
    assert left == TALK[-len(left) :]
    assert f"recall {reference(transcript(TALK))} reads all 20 messages, 200 tokens" in marker.text
    assert 90 <= estimator.messages(composition.messages) <= 100
    assert composition.kept == {reference(transcript(TALK)): transcript(TALK)}


@pytest.mark.parametrize("room", range(10, 100, 3))
def test_a_cut_conversation_begins_with_what_was_asked(room: int) -> None:
    asked, answers = TALK[:10], [say("assistant", f"answer {label} with six words here") for label in "abcdefghij"]
    talk = [message for pair in zip(asked, answers, strict=True) for message in pair] + [TALK[10]]
    *_, newest = messages = composed(1_000, talk=Source(lambda: talk, max=room)).messages
    roles = [message.role for message in messages if not message.text.startswith("[…")]
    assert newest.text.startswith("k")
    assert roles in ([*["user", "assistant"] * (len(roles) // 2), "user"], ["assistant", "user"])


def test_of_a_turn_that_is_too_long_to_stay_whole_the_newest_groups_stay_before_the_input() -> None:
    talk = [say("user", "look"), *(say("assistant", f"step {n} of many") for n in range(50)), say("user", "and now?")]
    _marker, *left = composed(1_000, talk=Source(lambda: talk, max=100)).messages
    assert left == talk[-len(left) :]
    assert len(left) > 5


def test_rows_say_what_became_of_each_source() -> None:
    composition = composed(1_000, docs=Source("the docs", max=50, cache="stable"), talk=Source(lambda: TALK[:2]))
    assert composition.rows == (
        FitRow("docs", "system", 6, 6, 50, tier="stable"),
        FitRow("talk", "user", 20, 20, 20, tier="volatile"),
    )


def test_limits_are_in_the_models_tokens() -> None:
    calibrated = Estimator(1.25)
    sources = {"talk": Source(lambda: TALK, max=125)}
    composition = asyncio.run(compose(1_000, sources, calibrated))
    assert calibrated.scaled(calibrated.messages(composition.messages)) <= 125
    assert composition.rows[0].tokens <= composition.rows[0].max


def test_a_small_change_of_the_factor_does_not_move_a_cut() -> None:
    sources = {"docs": Source(LONG, max=100, cache="stable")}
    first, second = (asyncio.run(compose(1_000, sources, Estimator(factor))) for factor in (1.212, 1.238))
    assert first.sections == second.sections


# --- volatile sources ---


def shares(composition: Composition) -> dict[str, int]:
    return {row.name: row.tokens for row in composition.rows}


def test_volatile_sources_share_what_the_others_really_use() -> None:
    composition = composed(106, docs=Source("the docs", max=90, cache="stable"), talk=Source(lambda: TALK[:10]))
    assert shares(composition) == {"docs": 6, "talk": 100}


def test_each_volatile_source_gets_its_fair_share_first() -> None:
    composition = composed(160, a=Source(lambda: TALK), b=Source(lambda: TALK))
    assert all(60 <= tokens <= 80 for tokens in shares(composition).values())


def test_what_one_source_leaves_goes_to_the_rest() -> None:
    composition = composed(160, small=Source(lambda: TALK[:2]), large=Source(lambda: TALK))
    assert shares(composition)["small"] == 20
    assert 130 <= shares(composition)["large"] <= 140


def test_a_volatile_source_never_exceeds_its_max() -> None:
    composition = composed(10_000, a=Source(lambda: TALK, max=70), b=Source(LONG, max=70))
    assert all(tokens <= 70 for tokens in shares(composition).values())


def test_messages_with_times_are_merged_by_time() -> None:
    composition = composed(
        1_000,
        one=Source(lambda: timed((1, "a"), (4, "d"))),
        two=Source(lambda: timed((2, "b"), (3, "c"), (4, "e"))),
    )
    assert texts(composition) == ["a", "b", "c", "d", "e"]


def test_sources_are_merged_by_the_clock_and_what_has_no_time_stands_right_before_the_input() -> None:
    question = say("user", "q")
    composition = composed(
        1_000,
        question,
        one=Source(lambda: timed((None, "a1"), (5, "a2"), (3, "a3"), (None, "a4"), (9, "a5"))),
        two=Source(lambda: timed((4, "b1"), (6, "b2"))),
        three=Source(lambda: [say("user", "c")]),
        four=Source("d"),
        five=Source(lambda: [{"role": "user", "content": "e", "at": 7}, TimestampedMessage(question, 8)]),
    )
    assert texts(composition) == ["b1", "a1", "a2", "a3", "a4", "b2", "e", "a5", "c", "d", "q"]


def test_merging_never_tears_a_call_from_its_result() -> None:
    call = ToolCall("1", "Read", {})
    asked, answer = Message("assistant", (call,)), result(call, "content")
    composition = composed(
        1_000,
        talk=Source(lambda: [TimestampedMessage(asked, 1), TimestampedMessage(answer, 3)]),
        other=Source(lambda: timed((2, "meanwhile"))),
    )
    assert composition.messages == (asked, answer, say("user", "meanwhile"))


# --- the current input ---


def test_the_input_goes_before_fair_shares() -> None:
    question = say("user", " ".join(["why"] * 80))
    composition = composed(130, question, found=Source(LONG), talk=Source(lambda: [*TALK, question]))
    assert composition.messages[-1] is question
    assert composition.warnings == ()


def test_an_input_larger_than_its_source_is_shortened_and_never_silently() -> None:
    question = say("user", LONG)
    composition = composed(1_000, question, talk=Source(lambda: [*TALK, question], max=200))
    last = composition.messages[-1].text
    assert last.startswith("word0 ")
    assert last.endswith("word499")
    assert reference(LONG) in last
    assert composition.warnings[0].startswith("The current input was cut in source 'talk': ")


# --- from YAML ---


def settings_of(source_budget: float | None = 1_000, **sources: Mapping[str, object]) -> ContextSettings:
    return msgspec.convert({"sourceBudget": source_budget, "sources": sources}, ContextSettings)


class Named:
    """Content that says what it was asked for."""

    def file(self, path: str) -> str:
        return f"content of {path}"

    async def command(self, command: str) -> str:
        return f"output of {command}"

    def python(self, place: str) -> Callable[[], str]:
        return lambda: f"function {place}"

    def timeline(self) -> list[Message]:
        return [say("user", "said")]


def built(configured: ContextSettings) -> dict[str, Source]:
    return from_settings(configured, Named())


def test_every_kind_of_source_can_be_configured() -> None:
    sources = built(
        settings_of(
            a={"file": "a.md", "max": 50, "cache": "pinned"},
            b={"command": "date", "role": "user"},
            c={"text": "c", "trim": "tail", "priority": 2, "position": 4},
            d={"timeline": True},
            e={"python": "e.py:docs"},
        )
    )
    composition = asyncio.run(compose(1_000, sources, estimator))
    assert composition.sections == (Section("a", "pinned", "content of a.md", max=50),)
    assert texts(composition) == ["output of date", "said", "function e.py:docs", "c"]
    assert sources["c"] == Source("c", trim="tail", priority=2, position=4)


def test_no_sources_are_no_composition() -> None:
    assert built(settings_of(None)) == {}


@pytest.mark.parametrize(
    ("configured", "sentence"),
    [
        (
            settings_of(a={}),
            "agent.context.sources.a has none; set exactly one of file, command, text, timeline, python.",
        ),
        (
            settings_of(a={"file": "a", "timeline": True}),
            "agent.context.sources.a has file, timeline; set exactly one of file, command, text, timeline, python.",
        ),
        (
            settings_of(None, a={"text": "a"}),
            "agent.context.sources needs agent.context.sourceBudget: the tokens that they share.",
        ),
        (
            settings_of(-5, a={"text": "a"}),
            "agent.context.sourceBudget is -5; use a positive, finite number of tokens.",
        ),
        (settings_of(5), "agent.context.sources is {}; name at least one source."),
        (
            settings_of(a={"text": "a", "cache": "stable"}),
            "agent.context.sources.a: max is missing; only volatile sources may leave it out.",
        ),
        (
            settings_of(a={"text": "a", "cache": "stable", "max": 2000}),
            "agent.context.sourceBudget is 1000, but the sources that are not volatile may use 2000; "
            "lower their max or raise it.",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_key(configured: ContextSettings, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(configured)
    assert str(caught.value) == sentence


def test_a_configured_source_has_the_defaults_of_one_in_python() -> None:
    assert built(settings_of(a={"text": "a"})) == {"a": Source("a")}
    assert SourceSettings().cache == Source("").cache


# --- properties ---


@st.composite
def conversation(draw: st.DrawFn, prefix: str) -> list[TimestampedMessage]:
    items: list[TimestampedMessage] = []
    for number in range(draw(st.integers(0, 5))):
        at = draw(st.none() | st.integers(0, 9))
        label = f"{prefix}{number} " + "word " * draw(st.integers(0, 30))
        if draw(st.booleans()):
            items.append(TimestampedMessage(say("user", label), at))
        else:
            call = ToolCall(f"{prefix}{number}", "Read", {})
            later = draw(st.none() | st.integers(0, 9))
            items += [
                TimestampedMessage(Message("assistant", (Text(label), call)), at),
                TimestampedMessage(result(call, label), later),
            ]
    return items


@st.composite
def registered(draw: st.DrawFn) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for number in range(draw(st.integers(1, 4))):
        name = f"s{number}"
        content = draw(st.integers(0, 100).map(lambda n: "word " * n) | conversation(f"{name}-"))
        options = {
            "cache": draw(st.sampled_from(["pinned", "stable", "slow-changing", "volatile", "volatile"])),
            "max": draw(st.integers(1, 120)),
            "trim": draw(st.sampled_from(["head", "tail", "middle"])),
            "priority": draw(st.integers(-1, 1)),
            "position": draw(st.none() | st.integers(0, 2)),
        }
        sources[name] = Source((lambda items: lambda: items)(content), **options)
    return sources


@given(registered(), st.integers(1, 500), st.sampled_from([1.0, 1.3]))
@settings(max_examples=100, deadline=None)
def test_budget_and_maximums_hold_calls_are_paired_and_cuts_are_told(sources, extra: int, factor: float) -> None:
    calibrated = Estimator(factor)
    budget = extra + sum(source.max for source in sources.values() if source.cache != "volatile")
    composition = asyncio.run(compose(budget, sources, calibrated))
    plain = sum(map(calibrated.section, composition.sections)) + calibrated.messages(composition.messages)
    assert calibrated.scaled(plain) <= budget
    assert plain == pytest.approx(sum(row.tokens for row in composition.rows) / factor, abs=len(sources))
    for row in composition.rows:
        assert row.tokens <= row.max
        assert (row.tokens < row.size) <= bool(row.cut)
    calls = [call.id for message in composition.messages for call in message.calls]
    answers = [block.call_id for m in composition.messages for block in m.blocks if isinstance(block, ToolResult)]
    assert calls == answers
    assert all(reference(text) == ref for ref, text in composition.kept.items())


@given(st.lists(conversation("a"), min_size=2, max_size=2))
@settings(max_examples=60, deadline=None)
def test_merging_keeps_the_order_of_each_source(conversations) -> None:
    one = conversations[0]
    two = [TimestampedMessage(say("user", f"b{n}"), item.at) for n, item in enumerate(conversations[1])]
    composition = composed(100_000, one=Source(lambda: one), two=Source(lambda: two))
    merged = list(composition.messages)
    for items in (one, two):
        own = [item.message for item in items]
        assert [message for message in merged if any(message is item for item in own)] == own
