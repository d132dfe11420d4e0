import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import AuthFailed, BadStream, Overflowed, ProviderError, QuotaExceeded, Unavailable
from ra.core.events import Broken, CallDelta, Retrying, Sent, Streamed, TextDelta, ThinkingDelta
from ra.core.messages import Message, Text
from ra.core.model import Reply, Usage
from ra.providers.retry import Retries, stream


def retrying(reason: str, wait_s: float) -> Retrying:
    """A wait before one of at most four further tries."""
    return Retrying(reason, wait_s, retries=4)


class Time:
    """A clock that only sleeping and working move."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def reply(text: str) -> Reply:
    return Reply(Message("assistant", (Text(text),) if text else ()), Usage(output=1), "end")


def cut(text: str, reason: str = "cut") -> BadStream:
    return BadStream(reason, partial=Message("assistant", (Text(text),)), usage=Usage(output=len(text)))


Script = list[Any]
"""What one attempt does: items it yields, floats that pass as seconds, an error that ends it."""


def run(*attempts: Script, time: Time | None = None, chance: float = 0.5, **limits: Any) -> list[Streamed]:
    """What a reader sees of these attempts; an error that comes out is the last item."""
    time = time or Time()
    left = list(attempts)

    async def attempt() -> AsyncGenerator[Streamed, None]:
        for item in left.pop(0):
            if isinstance(item, Exception):
                raise item
            if isinstance(item, float):
                time.now += item
            else:
                yield item

    async def main() -> list[Any]:
        seen: list[Any] = []
        retries = Retries(sleep=time.sleep, clock=lambda: time.now, chance=lambda: chance, **limits)
        try:
            async for item in stream(attempt, retries):
                seen.append(item)  # noqa: PERF401 - what had come before a failure is wanted too
        except ProviderError as error:
            seen.append(error)
        return seen

    seen = asyncio.run(main())
    assert not left or isinstance(seen[-1], ProviderError)
    return seen


DOWN = Unavailable("down", status=503)


def unheard(reason: str) -> Broken:
    """An attempt that the server took, and of whose answer nothing came."""
    return Broken(Message("assistant", ()), Usage(), reason)


def test_a_good_answer_passes_through() -> None:
    items = [ThinkingDelta("hm"), TextDelta("a"), CallDelta("Read"), TextDelta("b"), reply("ab")]
    assert run(items) == items


def test_what_may_pass_is_tried_five_times_with_growing_waits() -> None:
    time = Time()
    seen = run(*([DOWN] for _ in range(5)), time=time)
    assert seen == [retrying("down", wait) for wait in (0.5, 1.5, 4.5, 13.5)] + [DOWN]
    assert time.slept == [0.5, 1.5, 4.5, 13.5]


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 0.375), (1.0, 0.625)])
def test_waits_are_spread_by_chance(chance: float, wait: float) -> None:
    assert run([DOWN], [reply("x")], chance=chance) == [retrying("down", wait), reply("x")]


@pytest.mark.parametrize(
    "error", [AuthFailed("a"), QuotaExceeded("q"), Overflowed("o"), ProviderError("bad request", status=400)]
)
def test_what_will_not_pass_is_not_tried_again(error: ProviderError) -> None:
    assert run([TextDelta("x"), error]) == [TextDelta("x"), error]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("asked", [0.05, 1.0, 7.0, 60.0, 119.0, 120.0])
def test_a_wait_that_the_server_asks_for_is_kept_and_never_undercut(asked: float, chance: float) -> None:
    time = Time()
    seen = run([Unavailable("slow down", retry_after_s=asked)], [reply("x")], time=time, chance=chance)
    assert seen[-1] == reply("x")
    assert asked <= time.slept[0] <= asked * 1.2


def test_a_wait_of_nothing_is_our_own_wait() -> None:
    assert run([Unavailable("x", retry_after_s=0.0)], [reply("")])[0] == retrying("x", 0.5)


def test_a_wait_longer_than_the_time_left_fails_at_once_and_says_how_long() -> None:
    time = Time()
    (error,) = run([Unavailable("Slow down.", status=429, retry_after_s=600)], time=time)
    assert isinstance(error, Unavailable)
    assert str(error) == "Slow down. The server asks ra to wait 10 min, which is longer than ra waits. Try again then."
    assert (error.status, error.retry_after_s, time.slept) == (429, 600, [])


def test_no_try_starts_later_than_two_minutes_after_the_first_failure() -> None:
    time = Time()
    slow = Unavailable("no connection")
    seen = run([50.0, slow], [50.0, slow], [50.0, slow], [50.0, slow], [50.0, slow], time=time)
    assert seen == [
        retrying("no connection", 0.5),
        retrying("no connection", 1.5),
        retrying("no connection", 4.5),
        slow,
    ]


def test_time_in_which_an_answer_streamed_is_not_counted_as_waiting() -> None:
    long = [TextDelta("a"), 500.0, cut("a")]
    seen = run(long, long, [TextDelta("a"), reply("a")])
    assert seen[-1] == reply("a")


def test_a_stall_that_took_the_time_of_all_tries_is_not_waited_for_again() -> None:
    stalled = BadStream("sent nothing for 600 s")
    stalled.__cause__ = TimeoutError()
    assert run([TextDelta("a"), 600.0, stalled]) == [TextDelta("a"), unheard("sent nothing for 600 s"), stalled]
    assert run([TextDelta("a"), 20.0, stalled], [TextDelta("a"), reply("a")])[-1] == reply("a")


def test_a_stream_cut_before_any_event_is_billed_and_sent_anew() -> None:
    seen = run([Sent(), BadStream("cut")], [Sent(), reply("")])
    assert seen == [Sent(), unheard("cut"), retrying("cut", 0.5), Sent(), reply("")]


def test_a_server_that_never_answers_may_be_at_work_and_is_billed() -> None:
    silent = Unavailable("sent nothing")
    silent.__cause__ = TimeoutError()
    assert run([Sent(), silent], [Sent(), reply("")])[1] == unheard("sent nothing")


def test_what_was_refused_or_never_left_is_not_billed() -> None:
    unreachable = Unavailable("no connection within 15 s")
    unreachable.__cause__ = TimeoutError()
    seen = run([unreachable], [Sent(), DOWN], [Sent(), Unavailable("closed the connection")], [Sent(), reply("")])
    assert [type(item) for item in seen] == [Retrying, Sent, Retrying, Sent, Retrying, Sent, Reply]


def test_what_was_billed_is_handed_over_even_when_nothing_was_said() -> None:
    billed = BadStream("cut", partial=Message("assistant", ()), usage=Usage(input=7))
    assert run([billed], [reply("")])[0] == Broken(Message("assistant", ()), Usage(input=7), "cut")


def test_a_partial_answer_is_handed_over_and_its_text_is_not_said_again() -> None:
    seen = run(
        [TextDelta("Hel"), TextDelta("lo"), cut("Hello")], [TextDelta("Hell"), TextDelta("o you"), reply("Hello you")]
    )
    assert seen == [
        TextDelta("Hel"),
        TextDelta("lo"),
        Broken(Message("assistant", (Text("Hello"),)), Usage(output=5), "cut"),
        retrying("cut", 0.5),
        TextDelta(" you"),
        reply("Hello you"),
    ]


def test_an_answer_that_differs_is_said_anew_from_the_start() -> None:
    seen = run([TextDelta("Hello"), cut("Hello")], [TextDelta("Hel"), TextDelta("p!"), reply("Help!")])
    assert seen[2:] == [retrying("cut", 0.5), Retrying("cut", 0.0, restart=True), TextDelta("Help!"), reply("Help!")]


def test_an_answer_that_is_shorter_is_said_anew() -> None:
    seen = run([TextDelta("Hello"), cut("Hello")], [TextDelta("Hel"), reply("Hel")])
    assert seen[3:] == [Retrying("cut", 0.0, restart=True), TextDelta("Hel"), reply("Hel")]


def test_thinking_is_not_shown_again_while_text_is_repeated() -> None:
    seen = run([TextDelta("a"), cut("a")], [ThinkingDelta("hm"), TextDelta("a"), ThinkingDelta("more"), reply("a")])
    assert seen[3:] == [ThinkingDelta("more"), reply("a")]


def test_an_error_inside_an_answer_keeps_the_wait_that_it_named() -> None:
    wrapped = cut("a", "overloaded")
    wrapped.__cause__ = Unavailable("overloaded", retry_after_s=3.0)
    time = Time()
    run([TextDelta("a"), wrapped], [TextDelta("a"), reply("a")], time=time)
    assert 3.0 <= time.slept[0] <= 3.6


pieces = st.lists(st.text("ab", min_size=1, max_size=3), max_size=5)


@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=5))
def test_what_stands_after_the_last_restart_is_the_answer(attempts: list[list[str]]) -> None:
    """Whatever was cut where, a reader who drops what stood before a restart holds the text of the reply."""
    scripts: list[Script] = [[*map(TextDelta, parts), cut("".join(parts))] for parts in attempts[:-1]]
    final = "".join(attempts[-1])
    seen = run(*scripts, [*map(TextDelta, attempts[-1]), reply(final)])
    text = ""
    for item in seen:
        if isinstance(item, TextDelta):
            text += item.text
        elif isinstance(item, Retrying) and item.restart:
            text = ""
    assert (text, seen[-1]) == (final, reply(final))


def test_a_cancelled_call_ends_its_attempt() -> None:
    ended: list[str] = []

    async def attempt() -> AsyncGenerator[Streamed, None]:
        try:
            yield TextDelta("a")
            await asyncio.sleep(60)
        finally:
            ended.append("yes")

    async def main() -> None:
        async def consume(make: Callable[[], AsyncGenerator[Streamed, None]]) -> None:
            async for _ in stream(make, Retries()):
                pass

        task = asyncio.create_task(consume(attempt))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["yes"]
