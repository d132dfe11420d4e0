"""Do the full examples of the pages on slots and composition work, translated to Python?"""

import asyncio

import pytest

from ra.context.compose.custom import StrategyContext, build, system_part
from ra.context.compose.slots import Rendered
from ra.context.compose.sources import Source, compose
from ra.context.items import timeline_messages
from ra.context.tokens import Estimator
from ra.core.errors import HookFailed, UsageError
from ra.core.facts import Entry, Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say
from ra.core.model import Section

estimator = Estimator()
QUESTION = say("user", "and now?")
HISTORY = [say("user" if n % 2 == 0 else "assistant", f"message {n} of the history") for n in range(40)]


def context(remaining: int = 10_000, history: list[Message] = HISTORY) -> StrategyContext:
    live = Entry("tone", "Tone", "be short", 3)
    return StrategyContext(
        input=QUESTION, history=history, remaining_input_tokens=remaining, estimator=estimator, entries=[live]
    )


async def on_context_build(ctx):
    ctx.slots.add("system", "You are a helpful assistant.", role="system", priority=100)
    ctx.slots.add("history", ctx.history.recent(10), trim_behavior="message", max_ratio=0.5)
    ctx.slots.add("input", ctx.input)
    return ctx.slots.render()


def test_the_example_of_the_slots_page() -> None:
    rendered = asyncio.run(build(on_context_build, context()))
    assert rendered is not None
    assert rendered.messages == (
        say("system", "You are a helpful assistant.", name="system"),
        *HISTORY[-10:],
        QUESTION,
    )
    assert rendered.warnings == ()


def test_the_example_of_the_slots_page_in_a_small_budget() -> None:
    rendered = asyncio.run(build(on_context_build, context(60)))
    assert rendered is not None
    assert rendered.messages == (
        say("system", "You are a helpful assistant.", name="system"),
        *HISTORY[-3:],
        QUESTION,
    )
    assert [(row.name, row.tokens, row.max) for row in rendered.rows] == [
        ("system", 10, 60),
        ("history", 30, 30),
        ("input", 7, 60),
    ]


def test_the_context_offers_budget_history_input_and_entries() -> None:
    ctx = context(1_234)
    assert ctx.budget.remaining_input_tokens == 1_234
    assert ctx.history.all() == HISTORY
    assert ctx.input == QUESTION
    assert [entry.content for entry in ctx.entries] == ["be short"]


CALL = ToolCall("1", "Read", {})
GROUP = [Message("assistant", (Text("look"), CALL)), result(CALL, "content")]


@pytest.mark.parametrize(
    ("history", "count", "recent"),
    [
        (HISTORY, 0, []),
        (HISTORY, 3, HISTORY[-3:]),
        (HISTORY, 99, HISTORY),
        ([HISTORY[0], *GROUP, HISTORY[1]], 2, [HISTORY[1]]),  # the group would be torn
        ([HISTORY[0], *GROUP, HISTORY[1]], 3, [*GROUP, HISTORY[1]]),
        ([HISTORY[0], *GROUP], 1, GROUP),  # the newest group is whole
    ],
)
def test_recent_history_is_whole_groups(history: list[Message], count: int, recent: list[Message]) -> None:
    assert context(history=history).history.recent(count) == recent


@pytest.mark.parametrize("count", [-1, 1.5, "10", True, None])
def test_a_wrong_count_is_refused(count: object) -> None:
    with pytest.raises(UsageError, match=r"history.recent: count is .*; use 0 or a positive integer"):
        context().history.recent(count)


def test_none_leaves_it_to_the_default() -> None:
    assert asyncio.run(build(lambda ctx: None, context())) is None


def test_a_strategy_may_be_a_plain_function_that_returns_messages() -> None:
    assert asyncio.run(build(lambda ctx: [ctx.input], context())) == Rendered((QUESTION,))


def test_another_answer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"on_context_build returned a str; return ctx.slots.render\(\)"):
        asyncio.run(build(lambda ctx: "text", context()))


def test_a_strategy_that_fails_says_how() -> None:
    with pytest.raises(HookFailed, match="on_context_build raised ZeroDivisionError: division by zero"):
        asyncio.run(build(lambda ctx: 1 / 0, context()))


def test_a_wrong_call_in_a_strategy_stays_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="role is 'robot'"):
        asyncio.run(build(lambda ctx: ctx.slots.add("x", "y", role="robot"), context()))


def test_opening_system_messages_are_the_system_part() -> None:
    late = say("system", "late")
    assert system_part([say("system", "a", name="rules"), say("system", "b"), QUESTION, late]) == (
        (Section("rules", "stable", "a"), Section("system", "stable", "b")),
        (QUESTION, late),
    )


# --- the Horton example of the page on composition: its use of use_context ---


def test_the_example_of_the_composition_page() -> None:
    events = [TimelineEvent(at, 0.0, Said(message)) for at, message in enumerate([*HISTORY, QUESTION], 1)]

    def render_compressed_toc() -> str:
        return "# Contents\n- usage\n- slots"

    async def render_retrieved_docs() -> str:
        return "Found: slots have positions."

    composition = asyncio.run(
        compose(
            18_000,
            {
                "docs_toc": Source(render_compressed_toc, max=3_000, cache="stable"),
                "retrieved_docs": Source(render_retrieved_docs, max=6_000, cache="volatile"),
                "conversation": Source(lambda: timeline_messages(events), max=9_000, cache="volatile"),
            },
            estimator,
            prompt=QUESTION,
        )
    )
    assert composition.sections == (Section("docs_toc", "stable", "# Contents\n- usage\n- slots", max=3_000),)
    assert composition.messages == (
        *HISTORY,
        say("system", "Found: slots have positions.", name="retrieved_docs"),
        QUESTION,
    )
    assert composition.warnings == ()
