"""MCP at the command line: servers in a run, `ra mcp list`, and `ra mcp serve` for the SDK's own client."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell

LINES = str(Path(__file__).parent.parent / "tools/mcp/lines.py")  # starts at once
TOY = str(Path(__file__).parent.parent / "tools/mcp/toy.py")


def configure(shell: Shell, *, where: str = "user", more: str = "", file: str = TOY) -> None:
    folder = shell.home / ".config/ra" if where == "user" else shell.project
    folder.mkdir(parents=True, exist_ok=True)
    server = f"{{name: toy, command: {sys.executable}, args: [{file}, stdio]}}"
    (folder / "ra.yaml").write_text(f"agent:\n  mcpServers:\n    - {server}\n{more}")


def learn(shell: Shell) -> None:
    """List the servers once: a start waits five seconds for one that is unknown, which a busy machine may need."""
    shell.ra("mcp", "list")


def calls(*steps: Call) -> Any:
    """A model that makes these calls, then says done."""

    def answer(body: dict[str, Any]) -> Step:
        made = sum(message["role"] == "assistant" for message in body["messages"])
        return Step(calls=(steps[made],)) if made < len(steps) else Step(text="Done.")

    return answer


def results(server: LoopbackServer) -> list[Any]:
    blocks = [block for message in server.bodies[-1]["messages"] for block in message["content"]]
    return [block for block in blocks if block["type"] == "tool_result"]


def test_a_run_has_the_tools_of_its_servers(shell: Shell) -> None:
    configure(shell)
    learn(shell)
    with LoopbackServer("anthropic", calls(Call("mcp__toy__add", {"a": 2, "b": 3}))) as server:
        shell.serve(server)
        done = shell.ra("--allow", "mcp__toy__add", "add them")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"Done.\n", "· mcp__toy__add\n".encode())
        assert [block["text"] for block in results(server)[0]["content"]] == ["5"]
        tools = [tool["name"] for tool in server.bodies[0]["tools"]]
        assert "mcp__toy__read_resource" in tools
        refused = shell.ra("add them")
        assert b"--allow 'mcp__toy__add'" in refused.stderr
        assert [tool["name"] for tool in server.bodies[-1]["tools"]] == tools


def test_without_tools_and_with_a_known_listing_nothing_is_started(shell: Shell, hello: LoopbackServer) -> None:
    configure(shell)
    shell.ra("hi", "--no-tools")
    assert not (shell.home.parent / "data/mcp").exists()
    learn(shell)
    listings = {file: file.stat().st_mtime_ns for file in (shell.home.parent / "data/mcp").iterdir()}
    shell.ra("hi")
    shell.ra("hi")
    assert {file: file.stat().st_mtime_ns for file in (shell.home.parent / "data/mcp").iterdir()} == listings
    assert len(hello.bodies[-1]["tools"]) == len(hello.bodies[-2]["tools"]) > 15


def test_a_reference_attaches_a_resource_or_a_prompt(shell: Shell, hello: LoopbackServer) -> None:
    configure(shell)
    done = shell.ra("Say @toy:toy://greeting, and @toy:prompt:review?path=a.py. Not @toy:toy://none")
    (message,) = hello.bodies[0]["messages"]
    texts = [block["text"] for block in message["content"]]
    assert '<resource ref="toy:toy://greeting">\ngood morning\n</resource>' in texts
    assert '<resource ref="toy:prompt:review?path=a.py">\nPlease review a.py.\n</resource>' in texts
    assert b"@toy:toy://none: not attached" in done.stderr


def test_a_server_of_a_project_is_inert_until_it_is_trusted(shell: Shell, hello: LoopbackServer) -> None:
    configure(shell, where="project", file=LINES)
    assert shell.ra("hi").returncode == 4
    assert shell.ra("--ignore-untrusted", "hi").returncode == 0
    assert not [tool for tool in hello.bodies[0]["tools"] if tool["name"].startswith("mcp__")]
    done = shell.ra("mcp", "list")
    assert (done.returncode, b"not trusted" in done.stderr) == (0, True)

    def offered() -> bool:
        assert shell.ra("--trust", "hi").returncode == 0
        return any(tool["name"].startswith("mcp__") for tool in hello.bodies[-1]["tools"])

    assert any(offered() for _ in range(5))  # a busy machine may need longer for its start than a session waits


def test_ctrl_c_ends_the_wait_for_a_silent_server(shell: Shell, hello: LoopbackServer) -> None:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    started = shell.home / "started"
    script = f"touch {started}; sleep 77"
    (folder / "ra.yaml").write_text(f"agent:\n  mcpServers: [{{name: silent, command: sh, args: [-c, '{script}']}}]\n")
    with subprocess.Popen([RA, "hi"], env=shell.env, cwd=shell.project, stdin=subprocess.DEVNULL) as process:
        while not started.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert hello.requests == []  # whoever waits to the end goes on without the server


def test_list_tells_servers_states_and_tools(shell: Shell) -> None:
    configure(
        shell, more="    - {name: gone, command: no-such-program}\n    - {name: idle, command: x, enabled: false}\n"
    )
    done = shell.ra("mcp", "list")
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert done.returncode == 1
    assert lines[1][:3] == ["toy", "ok", "9"]
    assert lines[2][:2] == ["gone", "failed: the command 'no-such-program' is not found"]
    assert lines[3][:2] == ["idle", "off"]
    assert "mcp__toy__add  Add two numbers. Slowly." in done.stdout.decode()
    told = json.loads(shell.ra("mcp", "list", "toy", "--json").stdout)
    assert [(server["name"], server["state"], server["lazy"]) for server in told] == [("toy", "ok", False)]
    assert told[0]["resources"] == ["toy://greeting", "toy://square/{number}"]
    assert told[0]["prompts"] == ["prompt:review?path=…"]
    assert shell.ra("mcp", "list", "nobody").returncode == 2


def test_no_servers_is_said(shell: Shell) -> None:
    done = shell.ra("mcp", "list")
    assert (done.returncode, done.stdout, b"agent.mcpServers" in done.stderr) == (0, b"", True)


@pytest.fixture
def served(shell: Shell) -> Any:
    """Use `ra mcp serve` through the SDK's client."""

    def use(work: Any, *flags: str) -> Any:
        async def main() -> Any:
            parameters = StdioServerParameters(
                command=RA, args=[*flags, "mcp", "serve"], env=shell.env, cwd=shell.project
            )
            async with Client(parameters) as client:
                return await work(client)

        return asyncio.run(main())

    return use


def test_serve_offers_ask_recall_and_sessions(shell: Shell, hello: LoopbackServer, served: Any) -> None:
    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["ask", "recall", "sessions"]
        assert tools["ask"].input_schema["required"] == ["prompt"]
        first = await client.call_tool("ask", {"prompt": "remember the swordfish"})
        session = first.structured_content["session"]
        assert [block.text for block in first.content] == ["Hello, world.", f"(ra session {session})"]
        assert first.structured_content["stop"] == "answered"
        again = await client.call_tool("ask", {"prompt": "and now?", "session": session})
        assert again.structured_content["session"] == session
        assert len(hello.bodies[-1]["messages"]) == 3
        found = await client.call_tool("recall", {"query": "swordfish"})
        assert "swordfish" in found.content[0].text
        listed = await client.call_tool("sessions", {})
        assert [row["id"] for row in listed.structured_content["sessions"]] == [session]

    served(work)


def test_serve_tells_mistakes_as_errors_and_goes_on(shell: Shell, hello: LoopbackServer, served: Any) -> None:
    async def work(client: Client) -> None:
        for tool, args, words in (
            ("ask", {"prompt": " "}, "empty"),
            ("ask", {"prompt": "x", "session": "nope"}, "nope"),
            ("recall", {"query": "x"}, "no session yet"),
        ):
            told = await client.call_tool(tool, args)
            assert (told.is_error, words in told.content[0].text) == (True, True), told
        both = await asyncio.gather(*(client.call_tool("ask", {"prompt": f"{n}"}) for n in range(3)))
        assert len({one.structured_content["session"] for one in both}) == 3
        one = both[0].structured_content["session"]
        turns = await asyncio.gather(*(client.call_tool("ask", {"prompt": "more", "session": one}) for _ in range(2)))
        assert [turn.is_error for turn in turns] == [False, False]

    served(work)


def test_serve_refuses_what_would_ask_and_honours_flags_before_the_command(shell: Shell, served: Any) -> None:
    with LoopbackServer("anthropic", calls(Call("Write", {"path": "a.txt", "content": "x"}))) as server:
        shell.serve(server)

        async def work(client: Client) -> None:
            await client.call_tool("ask", {"prompt": "write"})

        served(work)
        assert not (shell.project / "a.txt").exists()
        served(work, "--write")
        assert (shell.project / "a.txt").read_text() == "x"
