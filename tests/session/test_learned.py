"""What an endpoint taught stays with that endpoint, for a while, and a refusal for another reason teaches nothing."""

import json
import random

import pytest

from ra.core.events import Warned
from ra.core.facts import Checkpointed, Spent
from ra.core.model import Usage
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


@pytest.mark.parametrize("seed", [1, 2])
def test_a_proxy_that_refuses_at_random_does_not_shrink_a_session_step_by_step(shell: Shell, seed: int) -> None:
    """Every prompt is a process of its own: what the endpoint took is read from the session."""
    chance, taken = random.Random(seed), [0]

    def fault(_number: int, body: JsonObject) -> Fault | None:
        if chance.random() < 0.3:
            return Fault("status", status=400, message="Bad Request")
        taken.append(max(taken[-1], len(json.dumps(body["messages"]))))
        return None

    with LoopbackServer("anthropic", lambda body: Step(text="word " * 1500), faults=fault) as server:
        talk = Talk(shell, server)
        guesses = []
        for number in range(30):
            talk.say(f"Prompt {number}. " + "text " * 800)
            guesses += [window for window, _ in learned(talk).values()]
    assert guesses  # two refusals in a row were one of size, as far as anybody can tell
    assert guesses == sorted(guesses)  # and that was the only step down


def test_a_refusal_of_what_the_session_shows_as_taken_is_no_overflow_in_a_new_process(shell: Shell) -> None:
    refusing = False

    def fault(_number: int, _body: JsonObject) -> Fault | None:
        return Fault("status", status=400, message="Bad Request") if refusing else None

    with LoopbackServer("anthropic", lambda body: Step(text="word " * 8000), faults=fault) as server:
        shell.serve(server)
        for number in range(4):
            assert shell.ra(*["-c"][:number], "--no-tools", f"prompt {number}").returncode == 0
        largest = len(json.dumps(server.bodies[-1]))
        assert shell.ra("compact").returncode == 0
        refusing = True
        done = shell.ra("-c", "--no-tools", "and now?")
        assert (done.returncode, b"Bad Request" in done.stderr) == (1, True)
        sizes = [len(json.dumps(body)) for body in server.bodies[4:]]
        assert (len(sizes), sizes[0]) == (2, sizes[1])  # the same once more, and nothing shorter
        assert 16_000 < sizes[0] < largest
        refusing = False
        assert shell.ra("-c", "--no-tools", "again").returncode == 0
        assert len(json.dumps(server.bodies[-1])) >= sizes[0]
        assert learned(Talk(shell, server)) == {}


def test_an_unexplained_overflow_of_a_session_that_grew_is_learned_once(shell: Shell) -> None:
    faults = refusing_above(100_000, "Bad Request")
    with LoopbackServer("anthropic", lambda body: Step(text="word " * 3000), faults=faults) as server:
        talk = Talk(shell, server)
        refused = []
        for number in range(14):
            before = len(server.requests)
            assert talk.say(f"prompt {number}").outcome == "answered"
            refused.append(len(server.requests) - before - 1)
        assert sum(refused) == 2  # one request and its repetition
        ((window, guessed),) = learned(talk).values()
        assert guessed
        assert window
        assert window >= max(fact.usage.total_input for fact in talk.facts() if isinstance(fact, Spent))


def test_a_window_that_became_smaller_without_a_word_is_learned_after_two_failed_runs(shell: Shell) -> None:
    largest = 10_000_000

    def fault(_number: int, body: JsonObject) -> Fault | None:
        return Fault("status", status=400, message="Bad Request") if len(json.dumps(body)) > largest else None

    with LoopbackServer("anthropic", lambda body: Step(text="word " * 3000), faults=fault) as server:
        talk = Talk(shell, server, agent__compaction__maxTokens=20_000)
        for number in range(11):
            assert talk.say(f"prompt {number}").outcome == "answered"
        largest = 60_000
        outcomes = [talk.say(f"and {number}?").outcome for number in range(4)]
        assert outcomes == ["failed", "failed", "answered", "answered"]
        assert [guessed for _, guessed in learned(talk).values()] == [True]


def test_what_one_gateway_took_says_nothing_about_another(shell: Shell) -> None:
    wide = LoopbackServer("anthropic", lambda body: Step(text="word " * 8000))
    narrow = LoopbackServer("anthropic", [Step(text="Fine.")], faults=refusing_above(100_000, "Bad Request"))
    with wide, narrow:
        talk = Talk(shell, wide)
        for number in range(4):
            talk.say(f"prompt {number}")
        shell.serve(narrow)
        assert talk.say("and here?").outcome == "answered"
        assert [*learned(talk)] == [narrow.url]


@pytest.mark.parametrize("usage", [Usage(), Usage(input=50_000_000, output=1), Usage(input=19_000, output=1)])
def test_a_guess_is_not_smaller_than_what_was_accepted_without_a_credible_bill(shell: Shell, usage: Usage) -> None:
    """A server whose words name no limit: the last of the steps tries less than the system part alone has."""
    faults = refusing_above(12_000, "Prompt is too long")
    with LoopbackServer("anthropic", lambda body: Step(text="Fine.", usage=usage), faults=faults) as server:
        talk = Talk(shell, server)
        assert talk.say("word " * 12_000).outcome == "answered"
        ((window, guessed),) = learned(talk).values()
        accepted_bytes = len(json.dumps(server.bodies[-1]))
        assert guessed
        assert accepted_bytes / 5 < (window or 0) < accepted_bytes / 2
