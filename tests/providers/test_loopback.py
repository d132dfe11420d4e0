"""Does a loopback server behave like the provider that it stands in for, good and bad?"""

import http.client
import threading
import time
from urllib.parse import urlsplit

import pytest

from ra.core.errors import AuthFailed, BadStream, Overflowed, ProviderError, Unavailable
from ra.core.messages import Message, Text, say
from ra.core.model import Reply, Request, Section, Usage
from ra.core.value import JsonObject
from ra.providers.dialects import dialect as dialect_of
from ra.testing import Call, Fault, LoopbackServer, Script, Step
from tests.providers.asking import post, read
from tests.providers.cases import BY_NAME, CASES, DIALECTS, assistant

INFO = CASES[0].info
HELLO = BY_NAME["text"].request("")


def ask(server: LoopbackServer, dialect: str, request: Request = HELLO) -> Reply:
    return read(dialect, request, post(server, dialect, request, dialect_of(dialect).body(request, INFO)))[1]


def send(server: LoopbackServer, dialect: str, body: JsonObject) -> Reply:
    return read(dialect, HELLO, post(server, dialect, HELLO, body))[1]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("chunk", ["event", "byte", 3, 1000])
def test_the_same_stream_however_it_is_cut(dialect: str, chunk: int) -> None:
    with LoopbackServer(dialect, [Step(text="Grüße 👋", usage=Usage(1, 2))], chunk=chunk) as server:
        assert ask(server, dialect).message.text == "Grüße 👋"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requests_are_recorded(dialect: str) -> None:
    before = time.monotonic()
    with LoopbackServer(dialect, [Step(text="Hi")]) as server:
        ask(server, dialect)
        (received,) = server.requests
    assert received.body == dialect_of(dialect).body(HELLO, INFO)
    assert received.headers["content-type"] == "application/json"
    assert before < received.at < time.monotonic()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_beyond_the_window_is_refused_in_the_providers_words(dialect: str) -> None:
    long = Request("m", (Section("system", "pinned", "word " * 500),), (say("user", "Hi"),))
    with LoopbackServer(dialect, [Step(text="Hi")], window=300) as server:
        with pytest.raises(Overflowed) as caught:
            ask(server, dialect, long)
        assert ask(server, dialect).message.text == "Hi"
    assert caught.value.limit == (None if dialect == "openai" else 300)  # Responses names no number


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_key_is_refused(dialect: str) -> None:
    with LoopbackServer(dialect, [Step(text="Hi")], api_key="other") as server, pytest.raises(AuthFailed):
        ask(server, dialect)
    with LoopbackServer(dialect, [Step(text="Hi")], api_key="key") as server:
        assert ask(server, dialect).message.text == "Hi"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_without_its_result_is_refused(dialect: str) -> None:
    call = BY_NAME["tool-error"].request("").messages[1]
    with LoopbackServer(dialect, [Step(text="Hi")]) as server:
        with pytest.raises(ProviderError, match=r"tool|function"):
            ask(server, dialect, Request("m", (), (say("user", "Go."), call, say("user", "Well?"))))
        with pytest.raises(ProviderError, match=r"tool|function"):
            ask(server, dialect, Request("m", (), (say("user", "Go."), BY_NAME["tool-error"].request("").messages[2])))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"messages": []}, "at least one message is required"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 'first message must use the "user" role'),
        ({"messages": [{"role": "user", "content": " "}]}, "must contain non-whitespace text"),
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "greater than or equal to 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9000}}, "must be greater than `thinking.budget_tokens`"),
        ({"messages": 5}, "Invalid request"),
    ],
)
def test_anthropics_rules(change: JsonObject, words: str) -> None:
    body = dialect_of("anthropic").body(HELLO, INFO) | change
    with LoopbackServer("anthropic", [Step(text="Hi")]) as server, pytest.raises(ProviderError) as caught:
        send(server, "anthropic", body)
    assert words in str(caught.value)


def test_thinking_that_was_tampered_with_is_refused() -> None:
    with LoopbackServer("anthropic", [Step(thinking="Hm.", text="Yes."), Step(text="Fine."), Step(text="!")]) as server:
        said = ask(server, "anthropic").message
        again = Request(HELLO.model, (), (*HELLO.messages, said, say("user", "Sure?")))
        assert ask(server, "anthropic", again).message.text == "Fine."
        body = dialect_of("anthropic").body(again, INFO)
        body["messages"][1]["content"][0]["thinking"] = "Hmm."
        with pytest.raises(ProviderError, match="Invalid `signature`"):
            send(server, "anthropic", body)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("status", status=529), Unavailable),
        (Fault("status", status=503, retry_after="2"), Unavailable),
        (Fault("status", status=502, message="<html><title>Bad Gateway</title></html>"), Unavailable),
        (Fault("cut", after_bytes=0), BadStream),
        (Fault("cut", after_bytes=150), BadStream),
        (Fault("error", status=500), Unavailable),
        (Fault("stall", seconds=0.05), BadStream),
    ],
    ids=lambda value: str(getattr(value, "kind", "")),
)
def test_a_fault_is_seen_once_and_does_not_use_up_a_step(dialect: str, fault: Fault, kind: type[ProviderError]) -> None:
    with LoopbackServer(dialect, [Step(text="Hello, here I am.")], faults=[fault]) as server:
        with pytest.raises(kind):
            ask(server, dialect)
        assert ask(server, dialect).message.text == "Hello, here I am."


def test_garbage_is_no_json() -> None:
    with LoopbackServer("anthropic", [Step(text="Hello")], faults={0: Fault("garbage")}) as server:
        with pytest.raises(ValueError, match=r"utf-8|JSON|delimiter|string"):
            ask(server, "anthropic")
        assert ask(server, "anthropic").message.text == "Hello"


def test_faults_and_steps_may_be_functions() -> None:
    def faults(number: int, body: JsonObject) -> Fault | None:
        return Fault("status", status=500) if number == 0 else None

    with LoopbackServer("anthropic", lambda body: Step(text=f"{len(body['messages'])}"), faults=faults) as server:
        with pytest.raises(Unavailable):
            ask(server, "anthropic")
        assert ask(server, "anthropic").message.text == "1"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_script_by_turn_goes_on_where_the_conversation_is(dialect: str) -> None:
    script: Script[JsonObject] = Script([Step(text="One"), Step(text="Two")], by="turn")
    later = Request("m", (), (say("user", "a"), assistant(Text("One")), say("user", "b")))
    with LoopbackServer(dialect, script) as server:
        assert ask(server, dialect, later).message.text == "Two"
        assert ask(server, dialect).message.text == "One"


def test_a_script_that_ended_is_told() -> None:
    with LoopbackServer("anthropic", [Step(text="One")]) as server:
        ask(server, "anthropic")
        with pytest.raises(ProviderError, match="has 1 steps, and a model call asked for number 2"):
            ask(server, "anthropic")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cache_can_be_plugged_in(dialect: str) -> None:
    with LoopbackServer(dialect, [Step(text="Hi")], cache=lambda body: (7, 2), count=lambda text: 100) as server:
        usage = ask(server, dialect).usage
    assert usage == (Usage(93, 100, 7) if dialect == "google" else Usage(91, 100, 7, 2))


def test_a_large_body_is_taken_and_a_larger_one_refused() -> None:
    def body(megabytes: int) -> JsonObject:
        text = "x" * (megabytes * 1024 * 1024)
        return dialect_of("anthropic").body(Request("m", (), (say("user", text),)), INFO)

    with LoopbackServer("anthropic", [Step(text="Hi")], count=len) as server:
        assert send(server, "anthropic", body(49)).message.text == "Hi"
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.putrequest("POST", "/v1/messages")
        connection.putheader("content-length", str(60 * 1024 * 1024))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()


def test_many_clients_at_once() -> None:
    with LoopbackServer("openai-chat", lambda body: Step(text=body["messages"][-1]["content"])) as server:
        found: dict[int, str] = {}

        def one(i: int) -> None:
            request = Request("m", (), (say("user", f"client {i}"),))
            found[i] = ask(server, "openai-chat", request).message.text

        threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {i: f"client {i}" for i in range(20)}


def test_closing_ends_a_stalled_answer() -> None:
    server = LoopbackServer("anthropic", [Step(text="Hello", fault=Fault("stall"))]).start()
    failed: list[BaseException] = []

    def one() -> None:
        try:
            ask(server, "anthropic")
        except BadStream as error:
            failed.append(error)

    thread = threading.Thread(target=one)
    thread.start()
    while not server.requests:
        time.sleep(0.01)
    server.close()
    thread.join(5)
    assert len(failed) == 1


def test_gemini_3_wants_the_signature_of_a_call() -> None:
    with LoopbackServer(
        "google", [Step(thinking="Hm.", calls=(Call("LS"),)), Step(text="Yes."), Step(text="!")]
    ) as server:
        model = "gemini-3-pro"
        first = Request(model, (), (say("user", "Look."),))
        said = ask(server, "google", first).message
        told = Message("tool", BY_NAME["tool-error"].request("").messages[2].blocks)
        later = Request(model, (), (*first.messages, said, told))
        assert ask(server, "google", later).message.text == "Yes."
        unsigned = dialect_of("google").body(later, INFO)
        del unsigned["contents"][1]["parts"][0]["thoughtSignature"]
        with pytest.raises(ProviderError, match="missing a thought_signature"):
            read("google", later, post(server, "google", later, unsigned))
        foreign = Request(model, (), (*first.messages, Message("assistant", said.blocks, model="other"), told))
        assert ask(server, "google", foreign).message.text == "!"
