"""Gateways whose refusals explain little: an overflow is mended, another fault is told as what it is."""

import json

import pytest

from ra.core.value import JsonObject
from ra.providers.script import Fault, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

LONG = "word " * 12_000


def refusing(status: int, message: str, above_bytes: int) -> "object":
    def fault(_number: int, body: JsonObject) -> Fault | None:
        too_large = len(json.dumps(body)) > above_bytes
        return Fault("status", status=status, message=message) if too_large else None

    return fault


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Bad Request"),
        (413, "Payload Too Large"),
        (400, "upstream error 17f3"),
        (400, "too many tokens: total number of tokens (prompt and prediction) cannot exceed 9000 - received 12000."),
        (400, "Prompt exceeds max length"),
        (400, "Unable to submit request because the input token count is 12300 but model only supports up to 9000."),
        (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input."),
    ],
)
def test_a_refusal_of_a_large_request_is_mended_by_a_smaller_one(shell: Shell, status: int, message: str) -> None:
    with LoopbackServer("anthropic", lambda _: Step(text="Fine."), faults=refusing(status, message, 48_000)) as server:
        shell.serve(server)
        done = shell.ra("--no-tools", LONG)
    assert (done.returncode, done.stdout) == (0, b"Fine.\n"), done.stderr.decode()


def test_a_refusal_that_comes_back_at_half_size_is_what_it_says(shell: Shell) -> None:
    """A proxy that answers 400 for a reason of its own: the request does not shrink for ever."""
    with LoopbackServer("anthropic", [], faults=refusing(400, "The flux is misaligned", 0)) as server:
        shell.serve(server)
        done = shell.ra("--no-tools", LONG)
        sizes = [len(json.dumps(request.body)) for request in server.requests]
    assert done.returncode == 1
    assert b"The flux is misaligned" in done.stderr
    assert b"too large" not in done.stderr
    assert len(sizes) <= 4  # the same once more, then shorter ones down to half


def test_a_small_request_that_is_refused_is_not_made_smaller(shell: Shell) -> None:
    with LoopbackServer("anthropic", [], faults=refusing(400, "Bad Request", 0)) as server:
        shell.serve(server)
        done = shell.ra("--no-tools", "hi")
    assert (done.returncode, len(server.requests)) == (1, 1)
    assert b"Bad Request" in done.stderr


def test_a_refusal_that_explains_itself_is_believed_at_any_size(shell: Shell) -> None:
    with LoopbackServer("anthropic", [], faults=refusing(400, "temperature: unsupported value", 0)) as server:
        shell.serve(server)
        done = shell.ra("--no-tools", LONG)
    assert (done.returncode, len(server.requests)) == (1, 1)
