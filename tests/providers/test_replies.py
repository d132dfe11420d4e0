"""Does our reader understand what a provider streams, in every dialect?"""

import pytest

from ra.core.errors import BadStream
from ra.core.messages import Message
from ra.core.model import Reply, Usage
from ra.providers.dialects import dialect as dialect_of
from ra.providers.wire import Reader
from ra.testing import Call, LoopbackServer, Step
from tests.providers.asking import heard, post, read, said
from tests.providers.cases import BY_NAME, CASES, DIALECTS, Case, Raises


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reply(case: Case, dialect: str) -> None:
    request = case.request(dialect)
    expected = case.outcome(dialect)
    with LoopbackServer(dialect, [case.step], chunk=7) as server:
        events = post(server, dialect, request, dialect_of(dialect).body(request, case.info))
        if isinstance(expected, Raises):
            with pytest.raises(expected.kind) as caught:
                read(dialect, request, events)
            if isinstance(caught.value, BadStream) and expected.text is not None:
                assert caught.value.partial is not None
                assert caught.value.partial.text == expected.text
        else:
            deltas, reply = read(dialect, request, events)
            assert reply == expected
            assert heard(deltas) == said(reply)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_at_any_event_keeps_what_was_said_and_never_gives_a_runnable_call(dialect: str) -> None:
    case = BY_NAME["thinking"]
    request = case.request(dialect)
    with LoopbackServer(dialect, [case.step]) as server:
        events = list(post(server, dialect, request, dialect_of(dialect).body(request, case.info)))
    expected = case.outcome(dialect)
    assert isinstance(expected, Reply)
    cuts = 0
    for end in range(len(events)):
        reader = dialect_of(dialect).reader(request.model)
        text, _, names = heard([delta for event in events[:end] for delta in reader.feed(event)])
        said_so_far = partial_of(reader)
        if said_so_far == expected.message:
            continue
        cuts += 1
        assert said_so_far.text == text
        assert [call.name for call in said_so_far.calls] == names
        assert all(call.broken or call in expected.message.calls for call in said_so_far.calls)
    assert cuts >= 4


def partial_of(reader: Reader) -> Message:
    try:
        return reader.finish().message
    except BadStream as error:
        return error.partial or Message("assistant", ())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_without_an_id_gets_one(dialect: str) -> None:
    case = BY_NAME["text"]
    request = case.request(dialect)
    with LoopbackServer(dialect, [Step(calls=(Call("LS"), Call("LS")), usage=Usage(1, 1))]) as server:
        _, reply = read(dialect, request, post(server, dialect, request, dialect_of(dialect).body(request, case.info)))
    first, second = (call.id for call in reply.message.calls)
    assert first
    assert second
    assert first != second
