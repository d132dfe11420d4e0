"""What an endpoint taught stays with that endpoint, for a while, and a refusal for another reason teaches nothing."""

import json

from ra.core.events import Warned
from ra.core.facts import Checkpointed
from ra.core.value import JsonObject
from ra.providers.script import Fault, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.talk import Talk

LONG = "word " * 30_000
DAY = 86_400.0


def small(window: int) -> LoopbackServer:
    return LoopbackServer("anthropic", lambda body: Step(text="Fine."), window=window)


def learned(talk: Talk) -> dict[str, tuple[int | None, bool]]:
    return {
        endpoint.base_url: (taught.window, taught.guessed)
        for endpoint, taught in talk.app().store.all_learned()
        if taught.window
    }


def test_a_window_that_one_gateway_taught_is_not_believed_at_another(shell: Shell) -> None:
    with small(20_000) as narrow, small(200_000) as wide:
        talk = Talk(shell, narrow)
        talk.say(LONG)
        assert learned(talk) == {narrow.url: (20_000, False)}
        warned = [event.text for event in talk.events if isinstance(event, Warned)]
        assert any("20,000 tokens" in text and "ra models forget" in text for text in warned)
        shell.serve(wide)
        talk.session = None
        talk.say(LONG)
        assert len(wide.requests) == 1
        assert len(json.dumps(wide.requests[0].body)) > len(LONG)
        shell.serve(narrow)
        talk.session = None
        before = len(narrow.requests)
        talk.say(LONG)
        assert len(narrow.requests) == before + 1  # it was cut before it was sent


def test_what_was_learned_is_tried_anew_when_it_is_old(shell: Shell) -> None:
    with small(20_000) as server:
        talk = Talk(shell, server)
        talk.say(LONG)
        server.window = 200_000  # the operators gave it more
        talk.now += 8 * DAY
        talk.session = None
        talk.say(LONG)
        assert len(json.dumps(server.requests[-1].body)) > len(LONG)


def test_nothing_is_learned_without_a_session(shell: Shell) -> None:
    with small(10_000) as server:
        shell.serve(server)
        done = shell.ra("--no-session", "--no-tools", LONG[:60_000])
        assert done.returncode == 0, done.stderr.decode()
        assert learned(Talk(shell, server)) == {}
        assert shell.ra("models", "forget").returncode == 2


def refusing_above(size: int, message: str) -> "object":
    def fault(_number: int, body: JsonObject) -> Fault | None:
        return Fault("status", status=400, message=message) if len(json.dumps(body)) > size else None

    return fault


def test_a_guess_is_kept_so_that_the_next_process_does_not_overflow_again(shell: Shell) -> None:
    faults = refusing_above(100_000, "Bad Request")
    with LoopbackServer("anthropic", lambda body: Step(text="Fine."), faults=faults) as server:
        talk = Talk(shell, server)
        talk.say(LONG)
        ((_, (window, guessed)),) = learned(talk).items()
        ((endpoint, _),) = talk.app().store.all_learned()
        assert guessed
        assert window
        talk.session = None
        before = len(server.requests)
        talk.say(LONG)
        assert len(server.requests) == before + 1
        shown = shell.ra("models", endpoint.model).stdout.decode()
        assert "(guess)" in shown
        assert "Bad Request" in shown
        assert shell.ra("models", "forget", endpoint.model).returncode == 0
        assert learned(talk) == {}


def test_a_refusal_for_another_reason_neither_cuts_the_session_nor_teaches_anything(shell: Shell) -> None:
    refusing = False

    def fault(_number: int, _body: JsonObject) -> Fault | None:
        return Fault("status", status=400, message="The flux is misaligned") if refusing else None

    with LoopbackServer("anthropic", lambda body: Step(text="word " * 3000), faults=fault) as server:
        talk = Talk(shell, server)
        for number in range(6):
            talk.say(f"prompt {number}")
        refusing = True
        assert talk.say("and now?").outcome == "failed"
        refusing = False
        assert not [fact for fact in talk.facts() if isinstance(fact, Checkpointed)]
        assert learned(talk) == {}
        talk.say("again")
        assert len(json.dumps(server.requests[-1].body)) > 6 * 3000 * 5


def test_a_large_request_that_is_refused_once_and_then_taken_is_no_question_of_size(shell: Shell) -> None:
    def fault(number: int, _body: JsonObject) -> Fault | None:
        return Fault("status", status=400, message="Bad Request") if number == 0 else None

    with LoopbackServer("anthropic", lambda body: Step(text="Fine."), faults=fault) as server:
        talk = Talk(shell, server)
        assert talk.say(LONG).outcome == "answered"
        assert [len(json.dumps(request.body)) > len(LONG) for request in server.requests] == [True, True]
        assert learned(talk) == {}
