"""The same run on every provider and both transports: a tool call, thinking, the answer, the bill."""

from typing import Any

import pytest

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-4-6"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5"),
    "openai-chat": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "some-model"),
    "google": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "gemini-2.5-pro"),
}
STEPS = [
    Step(thinking="I should look.", signature="c2VhbA==", calls=(Call("Read", {"path": "a.txt"}),)),
    Step(text="It says hello."),
]


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("dialect", KEYS)
def test_a_run_with_a_tool(shell: Shell, dialect: Any, transport: str) -> None:
    (shell.project / "a.txt").write_text("hello from the file")
    key, url, model = KEYS[dialect]
    with LoopbackServer(dialect, STEPS, chunk=7) as server:
        shell.env |= {key: "k", url: server.url}
        set_transport = ("--set", f"agent.transport={transport}")
        told = shell.json("--provider", dialect, "-m", model, "--thinking", "low", *set_transport, "what does it say?")
    assert (told["exit"], told["answer"], told["iterations"]) == (0, "It says hello.", 2)
    assert "hello from the file" in str(server.bodies[1])
    assert told["usage"]["input"] > 0


def test_thinking_can_be_seen_and_stays_off_stdout(shell: Shell) -> None:
    with LoopbackServer("anthropic", [Step(thinking="Hmm, hello.", signature="c2VhbA==", text="Hi.")]) as server:
        shell.serve(server)
        done = shell.ra("-v", "--thinking", "high", "hi")
    assert done.stdout == b"Hi.\n"
    assert b"Hmm, hello." in done.stderr
    assert server.bodies[0]["thinking"]


def test_adaptive_thinking_is_high_for_ten_iterations_then_low(shell: Shell) -> None:
    def step(body: dict[str, Any]) -> Step:
        turn = len([m for m in body["messages"] if m["role"] == "assistant"])
        if turn == 12:
            return Step(text="done")
        return Step(thinking="hm", signature="c2VhbA==", calls=(Call("LS", {"path": ".", "limit": turn}),))

    with LoopbackServer("anthropic", step) as server:
        shell.serve(server)
        told = shell.json("-m", "claude-sonnet-4-5", "--thinking", "adaptive", "go")
    assert told["exit"] == 0
    budgets = [body["thinking"]["budget_tokens"] for body in server.bodies]
    assert budgets == [32000] * 10 + [1024] * 3
    assert all(body["max_tokens"] > body["thinking"]["budget_tokens"] for body in server.bodies)


def test_thinking_that_a_model_does_not_know_is_told(shell: Shell, hello: LoopbackServer) -> None:
    plain = shell.ra("--thinking", "high", "-m", "claude-3-5-haiku-latest", "hi")
    assert (plain.returncode, plain.stdout, plain.stderr) == (
        0,
        b"Hello, world.\n",
        b"ra: agent.thinking: high has no effect: claude-3-5-haiku-latest is not known to support thinking.\n",
    )
    assert shell.ra("--thinking", "high", "-m", "claude-sonnet-4-6", "hi").stderr == b""
