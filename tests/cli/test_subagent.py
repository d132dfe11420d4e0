"""Agent: a side task in a window of its own, whose price is the parent's."""

from typing import Any

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


def answer(body: dict[str, Any]) -> Step:
    first = body["messages"][0]["content"][0]["text"]
    if first == "count the files":
        return Step(text="There are 3 files.")
    if len(body["messages"]) == 1:
        return Step(calls=(Call("Agent", {"task": "count the files"}),))
    return Step(text="Three.")


def test_a_sub_agent_answers_and_its_cost_is_in_the_bill(shell: Shell) -> None:
    with LoopbackServer("anthropic", answer) as server:
        shell.serve(server)
        told = shell.json("how many files?")
    assert (told["answer"], told["exit"]) == ("Three.", 0)
    assert "There are 3 files." in str(server.bodies[2]["messages"])
    assert "how many files?" not in str(server.bodies[1])
    assert "Agent" not in [tool["name"] for tool in server.bodies[1]["tools"]]
    assert told["usage"]["output"] > 0
    ledger = shell.ra("cost", "--json").stdout
    assert ledger.count(b'"calls"') == 1
    assert b'"calls":3' in ledger
