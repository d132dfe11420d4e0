"""Every fault of a server, over every dialect: what the reader sees, what is recorded, how long it takes."""

import asyncio
import random
import time
from contextlib import aclosing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ra.core.errors import AuthFailed, BadStream, Overflowed, ProviderError, QuotaExceeded, Unavailable
from ra.core.events import Broken, Retrying, Sent, TextDelta
from ra.core.messages import say
from ra.core.model import Reply, Request, ToolSpec
from ra.providers.connect import connect
from ra.providers.errors import UnexplainedRefusal
from ra.providers.retry import Retries
from ra.providers.script import Call, Fault, Step
from ra.providers.settings import ProviderSettings
from ra.testing.server import LoopbackServer
from tests.providers.cases import DIALECTS

WORDS = "The quick brown fox jumps over the lazy dog, again and again, until the very end of it."
STEP = Step(text=WORDS, thinking="Foxes.", signature="c2ln")
REQUEST = Request("m", (), (say("user", "Tell me."),), tools=(ToolSpec("Read", "reads", {"type": "object"}),))


def ask(
    dialect: Any, server: LoopbackServer, *, timeout: float = 5, instant: bool = True, transport: Any = "http"
) -> list[Any]:
    """What one call shows, without Sent; an error that comes out is the last item."""

    async def no_sleep(_: float) -> None:
        pass

    async def main() -> list[Any]:
        settings = ProviderSettings(base_url=server.url, api_key="k", timeout=timeout)
        retries = Retries(sleep=no_sleep) if instant else Retries()
        provider = connect(dialect, "m", settings, {}, transport=transport, data_dir=Path("unused"), retries=retries)
        seen: list[Any] = []
        try:
            async for item in provider.stream(REQUEST):
                seen.append(item)  # noqa: PERF401 - what had come before a failure is wanted too
        except ProviderError as error:
            seen.append(error)
        await provider.close()
        return [item for item in seen if not isinstance(item, Sent)]

    return asyncio.run(main())


def shown(items: list[Any]) -> str:
    """The text that a reader is left with."""
    text = ""
    for item in items:
        if isinstance(item, TextDelta):
            text += item.text
        elif isinstance(item, Retrying) and item.restart:
            text = ""
    return text


def kinds(items: list[Any]) -> list[type]:
    return [type(item) for item in items if isinstance(item, Broken | Retrying | Reply | ProviderError)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_refusal_is_tried_again(dialect: Any, status: int) -> None:
    with LoopbackServer(dialect, [STEP], faults=[Fault("status", status=status)] * 4) as server:
        seen = ask(dialect, server)
    assert kinds(seen) == [Retrying] * 4 + [Reply]
    assert (shown(seen), len(server.requests)) == (WORDS, 5)
    assert len({str(body) for body in server.bodies}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sixth_try_is_not_made(dialect: Any) -> None:
    with LoopbackServer(dialect, [STEP], faults=[Fault("status", status=529)] * 9) as server:
        seen = ask(dialect, server)
    assert kinds(seen) == [Retrying] * 4 + [Unavailable]
    assert len(server.requests) == 5


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", status=400, message="bad"), UnexplainedRefusal),
        (Fault("status", status=401, message="bad key"), AuthFailed),
        (Fault("status", status=402, message="pay"), QuotaExceeded),
        (Fault("status", status=429, message="You exceeded your current quota, check your billing"), QuotaExceeded),
        (Fault("status", status=404, message="no such model"), ProviderError),
    ],
)
def test_a_lasting_refusal_is_not_tried_again(dialect: Any, fault: Fault, error: type) -> None:
    with LoopbackServer(dialect, [STEP], faults=[fault] * 2) as server:
        assert kinds(ask(dialect, server)) == [error]
    assert len(server.requests) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_size_that_was_taken_is_known_also_to_a_caller_that_stops_at_the_reply(dialect: Any) -> None:
    def fault(number: int, _body: Any) -> Fault | None:
        return Fault("status", status=400, message="Bad Request") if number else None

    large = msgspec.structs.replace(REQUEST, messages=(say("user", "word " * 6000),))

    async def main(url: str) -> None:
        provider = connect(dialect, "m", ProviderSettings(base_url=url, api_key="k"), {}, data_dir=Path("unused"))
        async with aclosing(provider.stream(large)) as answer:
            while not isinstance(await anext(answer), Reply):
                pass
        with pytest.raises(UnexplainedRefusal):
            async for _ in provider.stream(large):
                pass
        await provider.close()

    with LoopbackServer(dialect, [STEP], faults=fault) as server:
        asyncio.run(main(server.url))
    assert len(server.requests) == 2


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_overflow_names_the_window(dialect: Any, transport: str) -> None:
    with LoopbackServer(dialect, [STEP], window=10) as server:
        (error,) = ask(dialect, server, transport=transport)
    told = None if dialect == "openai" else 10  # Responses says only that it was too much
    assert (type(error), error.limit) == (Overflowed, told)


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_key_is_told(dialect: Any, transport: str) -> None:
    with LoopbackServer(dialect, [STEP], api_key="another") as server:
        assert kinds(ask(dialect, server, transport=transport)) == [AuthFailed]


@pytest.mark.parametrize(
    ("fault", "asked_s"),
    [
        (Fault("status", status=429, retry_after="1"), 1.0),
        (Fault("status", status=429, retry_after_ms="300"), 0.3),
        (Fault("status", status=503, retry_after="0.25"), 0.25),
    ],
)
def test_retry_after_is_kept_within_a_fifth(fault: Fault, asked_s: float) -> None:
    with LoopbackServer("anthropic", [STEP], faults=[fault]) as server:
        seen = ask("anthropic", server, instant=False)
    first, second = (request.at for request in server.requests)
    assert kinds(seen) == [Retrying, Reply]
    assert asked_s <= second - first <= asked_s * 1.2 + 0.1


def test_retry_after_may_be_a_date() -> None:
    moment = int(time.time()) + 2
    with LoopbackServer(
        "openai", [STEP], faults=[Fault("status", status=429, retry_after=formatdate(moment, usegmt=True))]
    ) as server:
        ask("openai", server, instant=False)
        assert time.time() >= moment
    assert len(server.requests) == 2


def test_a_retry_after_beyond_patience_fails_at_once() -> None:
    with LoopbackServer("google", [STEP], faults=[Fault("status", status=503, retry_after="3600")]) as server:
        (error,) = ask("google", server, instant=False)
    assert isinstance(error, Unavailable)
    assert "asks ra to wait 60 min" in str(error)


@pytest.mark.parametrize("chunk", ["event", 3])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_anywhere_loses_and_doubles_nothing(dialect: Any, chunk: Any) -> None:
    with LoopbackServer(dialect, [STEP], chunk=chunk) as server:
        whole = ask(dialect, server)
    for at in range(0, 1600, 97):
        with LoopbackServer(dialect, [STEP], chunk=chunk, faults=[Fault("cut", after_bytes=at)]) as server:
            seen = ask(dialect, server)
        assert shown(seen) == WORDS, at
        assert seen[-1].message.text == whole[-1].message.text, at
        assert [item for item in seen if isinstance(item, Retrying) and item.restart] == [], at
        assert len(server.requests) in (1, 2)  # one when only the end of a complete answer was cut


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", [Fault("stall"), Fault("garbage"), Fault("error", status=529), Fault("cut")])
def test_what_had_come_is_handed_over_before_the_next_try(dialect: Any, fault: Fault) -> None:
    with LoopbackServer(dialect, [STEP], faults=[fault]) as server:
        seen = ask(dialect, server, timeout=0.15)
    assert kinds(seen) == [Broken, Retrying, Reply]
    broken = next(item for item in seen if isinstance(item, Broken))
    assert WORDS.startswith(broken.message.text)
    assert shown(seen) == WORDS


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "fault", [Fault("cut", after_bytes=0), Fault("stall", after_bytes=0), Fault("garbage", after_bytes=0)]
)
def test_a_stream_that_breaks_before_its_first_event_leaves_a_bill(dialect: Any, fault: Fault) -> None:
    with LoopbackServer(dialect, [STEP], faults=[fault]) as server:
        seen = ask(dialect, server, timeout=0.15)
    assert kinds(seen) == [Broken, Retrying, Reply]
    assert not seen[0].message.blocks
    assert shown(seen) == WORDS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_breaks_every_time_is_an_error_with_what_had_come(dialect: Any) -> None:
    with LoopbackServer(dialect, [STEP], faults=[Fault("cut")] * 5) as server:
        seen = ask(dialect, server)
    assert kinds(seen) == [Broken, Retrying] * 4 + [Broken, BadStream]  # each attempt was billed
    assert WORDS.startswith(seen[-1].partial.text)
    assert WORDS.startswith(shown(seen))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_second_answer_that_differs_is_said_anew(dialect: Any) -> None:
    steps = iter([Step(text=WORDS, fault=Fault("cut")), Step(text="Another way.")])
    with LoopbackServer(dialect, lambda _: next(steps)) as server:
        seen = ask(dialect, server)
    assert shown(seen) == "Another way."
    assert [item.restart for item in seen if isinstance(item, Retrying)] == [False, True]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_whose_json_was_cut_is_not_in_the_answer(dialect: Any) -> None:
    step = Step(text="I will read.", calls=(Call("Read", {"path": "x" * 400}),))
    for at in range(300, 1500, 200):
        with LoopbackServer(dialect, [step], faults=[Fault("cut", after_bytes=at)] * 5) as server:
            seen = ask(dialect, server)
        if isinstance(seen[-1], BadStream):
            partial = seen[-1].partial
            assert all(call.broken or call.args == {"path": "x" * 400} for call in (partial.calls if partial else ()))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "fault", [Fault("status", status=503), Fault("cut"), Fault("garbage"), Fault("error", status=529)]
)
def test_the_vendors_clients_meet_the_same_faults(dialect: Any, fault: Fault) -> None:
    with LoopbackServer(dialect, [STEP], faults=[fault]) as server:
        seen = ask(dialect, server, transport="sdk")
    assert kinds(seen)[-2:] == [Retrying, Reply]
    assert (shown(seen), len(server.requests)) == (WORDS, 2)


def test_turns_of_which_a_fifth_goes_wrong_all_end_well() -> None:
    chance = random.Random(7)
    menu = [
        Fault("status", status=429, retry_after_ms="1"),
        Fault("status", status=500),
        Fault("status", status=529),
        Fault("cut"),
        Fault("cut", after_bytes=0),
        Fault("garbage"),
        Fault("error", status=529),
    ]

    def fault(number: int, body: Any) -> Fault | None:
        return chance.choice(menu) if chance.random() < 0.2 else None

    async def quick(_: float) -> None:
        pass

    async def main(server: LoopbackServer) -> list[bool]:
        settings = ProviderSettings(base_url=server.url, api_key="k", timeout=1)
        provider = connect("anthropic", "m", settings, {}, data_dir=Path("unused"), retries=Retries(sleep=quick))
        outcomes = []
        for _ in range(200):
            items = [item async for item in provider.stream(REQUEST)]
            outcomes.append(shown(items) == WORDS and isinstance(items[-1], Reply))
        await provider.close()
        return outcomes

    with LoopbackServer("anthropic", lambda _: STEP, faults=fault, count=len) as server:
        assert asyncio.run(main(server)) == [True] * 200
