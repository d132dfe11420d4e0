"""Servers that really run, over both transports, behind the toolbox that a session has."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ra.core.asking import Answer, Question
from ra.core.events import ToolOutput, Warned
from ra.core.messages import Image, Text, ToolCall
from ra.core.model import ToolSpec
from ra.tools.mcp.listing import SILENCE_KEPT_S
from ra.tools.mcp.servers import Servers
from ra.tools.policy.rules import parse_rule
from ra.tools.settings import McpServerSettings
from ra.tools.toolbox import Done, Toolbox
from tests.tools.kit import toolbox, words
from tests.tools.mcp.toy import PNG

TOY = str(Path(__file__).with_name("toy.py"))
LINES = str(Path(__file__).with_name("lines.py"))
OWNER = os.environ.get("PYTEST_XDIST_WORKER", "alone")  # tests of other workers start toys at the same time
ALL = (parse_rule("mcp__*", "allow"),)


def stdio(name: str = "toy", **settings: Any) -> McpServerSettings:
    return McpServerSettings(name=name, command=sys.executable, args=(TOY, "stdio", OWNER), **settings)


def weigh(specs: Any) -> int:
    return len(msgspec.json.encode(list(specs))) // 4


class World:
    """A folder for kept listings, warnings that were given, and toolboxes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warnings: list[str] = []
        self.now = 1_000_000.0
        self.made: list[Servers] = []

    def servers(self, *servers: McpServerSettings, env: dict[str, str] | None = None, start_s: float = 60) -> Servers:
        made = Servers(
            servers,
            root=str(self.folder),
            env={"PATH": os.environ["PATH"], **(env or {})},
            shelf=self.folder / "shelf",
            weigh=weigh,
            warn=self.warnings.append,
            clock=lambda: self.now,
            start_s=start_s,
            ask_again_s=0,
        )
        self.made.append(made)
        return made

    def box(self, *servers: McpServerSettings, rules: Any = ALL, env: dict[str, str] | None = None) -> Toolbox:
        return toolbox(self.folder, rules=rules, mcp=self.servers(*servers, env=env))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for servers in made.made:
        asyncio.run(servers.close())


@pytest.fixture
def http() -> Iterator[McpServerSettings]:
    with subprocess.Popen([sys.executable, TOY, "http"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        url = process.stdout.readline().decode().strip()
        import urllib.request

        for _ in range(200):
            try:
                urllib.request.urlopen(url)
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.05)
        yield McpServerSettings(name="toy", url=url)
        process.kill()


def run(
    box: Toolbox, *calls: tuple[str, dict[str, Any]], ask: Any = None, events: list[Any] | None = None
) -> list[Done]:
    async def all_of_them() -> list[Done]:
        emit = events.append if events is not None else None
        try:
            return [await box.run(ToolCall("c", name, args), ask=ask, emit=emit) for name, args in calls]
        finally:
            await box.close()

    return asyncio.run(all_of_them())


def children() -> list[str]:
    """The toys that run on behalf of this process."""
    found = subprocess.run(["ps", "-ww", "-eo", "pid,stat,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if f"{TOY} stdio {OWNER}" in line and " Z" not in line]


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_tools_resources_prompts_and_pictures_over_both_transports(
    world: World, kind: str, request: pytest.FixtureRequest
) -> None:
    server = stdio() if kind == "stdio" else request.getfixturevalue("http")
    box = world.box(server)
    added, shown, read, templated, asked = run(
        box,
        ("mcp__toy__add", {"a": 2, "b": 3}),
        ("mcp__toy__picture", {}),
        ("mcp__toy__read_resource", {"uri": "toy://greeting"}),
        ("mcp__toy__read_resource", {"uri": "toy://square/12"}),
        ("mcp__toy__read_resource", {"uri": "prompt:review?path=a%20b.py"}),
    )
    assert added.result.content == (Text("5"),)
    assert Image("image/png", PNG) in shown.result.content
    assert [words(one) for one in (read, templated, asked)] == ["good morning", "144", "Please review a b.py."]
    assert world.warnings == []


def test_names_are_legal_and_unique_for_every_provider(world: World) -> None:
    box = world.box(stdio())
    names = [spec.name for spec in box.specs if spec.name.startswith("mcp__")]
    assert len(set(names)) == len(names) == 10
    assert all(len(name) <= 64 and name.replace("-", "").replace("_", "").isalnum() for name in names)
    odd = next(name for name in names if "odd" in name)
    assert words(run(box, (odd, {}))[0]) == "odd"


def test_a_known_listing_needs_no_server_and_gives_the_same_bytes(world: World) -> None:
    first = world.box(stdio())
    specs = first.specs
    asyncio.run(first.close())
    assert children() == []
    again = world.box(stdio())
    assert again.specs == specs
    assert children() == []
    assert words(run(again, ("mcp__toy__add", {"a": 1, "b": 1}))[0]) == "2"
    assert children() == []
    (kept,) = (world.folder / "shelf").iterdir()
    assert oct(kept.stat().st_mode & 0o777) == "0o600"


def test_another_configuration_is_another_listing(world: World) -> None:
    small = world.servers(stdio(env={"TOY_TOOLS": "0"})).listings()["toy"]
    large = world.servers(stdio(env={"TOY_TOOLS": "3"})).listings()["toy"]
    assert len(large.tools) == len(small.tools) + 3


def test_a_server_is_listed_anew_when_it_is_used(world: World) -> None:
    asyncio.run(world.box(stdio()).close())
    (kept,) = (world.folder / "shelf").iterdir()
    told = msgspec.json.decode(kept.read_bytes())
    told["tools"] = [tool for tool in told["tools"] if tool["name"] == "add"]
    kept.write_bytes(msgspec.json.encode(told))
    box = world.box(stdio())
    assert len([spec for spec in box.specs if spec.name.startswith("mcp__toy")]) == 2

    async def use() -> None:
        await box.run(ToolCall("c", "mcp__toy__add", {"a": 1, "b": 2}))
        for _ in range(100):
            if len(msgspec.json.decode(kept.read_bytes())["tools"]) > 1:
                break
            await asyncio.sleep(0.05)
        await box.close()

    asyncio.run(use())
    assert len(world.servers(stdio()).listings()["toy"].tools) == 9


def test_a_large_server_is_one_tool_whose_calls_are_judged_by_their_own_names(world: World) -> None:
    server = stdio(env={"TOY_TOOLS": "40"})
    rules = (parse_rule("mcp__toy__tool_7", "allow"), parse_rule("mcp__toy__tool_8", "deny"))
    events: list[Any] = []
    box = world.box(server, rules=rules)
    assert [spec.name for spec in box.specs if spec.name.startswith("mcp__")] == ["mcp__toy"]
    assert weigh([spec for spec in box.specs if spec.name == "mcp__toy"]) < 700
    listed, described, called, denied, asked, direct, unknown = run(
        box,
        ("mcp__toy", {}),
        ("mcp__toy", {"tool": "tool_7"}),
        ("mcp__toy", {"tool": "tool_7", "args": {"text": "hi"}}),
        ("mcp__toy", {"tool": "tool_8", "args": {"text": "hi"}}),
        ("mcp__toy", {"tool": "tool_9", "args": {"text": "hi"}}),
        ("mcp__toy__tool_7", {"text": "direct"}),
        ("mcp__toy", {"tool": "tool_99"}),
        events=events,
    )
    assert "tool_39: Tool number 39" in words(listed)
    assert '"required":["text"]' in words(described)
    assert (words(called), called.result.name) == ("7: hi", "mcp__toy")
    assert "deny mcp__toy__tool_8" in words(denied)
    assert "Refused" in words(asked)
    assert words(direct) == "7: direct"
    assert "has no tool 'tool_99'" in words(unknown)
    assert [event for event in events if isinstance(event, Warned)][-1].text.endswith("--allow 'mcp__toy__tool_9'.")


def test_calls_ask_on_a_terminal_and_are_refused_elsewhere_also_when_they_only_read(world: World) -> None:
    questions: list[Question] = []

    async def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer("session")

    first, second = run(world.box(stdio(), rules=()), *[("mcp__toy__add", {"a": 1, "b": n}) for n in (1, 2)], ask=ask)
    assert (words(first), words(second)) == ("2", "3")
    assert [question.preview for question in questions] == ['mcp__toy__add\n{"a":1,"b":1}']
    (refused,) = run(world.box(stdio(), rules=()), ("mcp__toy__add", {"a": 1, "b": 1}))
    assert refused.result.is_error
    assert "Refused" in words(refused)


def test_servers_see_a_clean_environment_and_what_they_were_given(world: World) -> None:
    from ra.system.environment import clean

    env = clean({"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "secret-1", "AWS_SECRET_ACCESS_KEY": "secret-2"})
    box = world.box(stdio(env={"TOY_TOKEN": "meant"}), env=env)
    text = words(run(box, ("mcp__toy__environment", {}))[0])
    assert "TOY_TOKEN=meant" in text
    assert "secret" not in text


def test_output_is_bounded_and_errors_and_progress_are_told(world: World) -> None:
    events: list[Any] = []
    flood, failed, wrong, worked, extra = run(
        world.box(stdio()),
        ("mcp__toy__flood", {"size": 3_000_000}),
        ("mcp__toy__fail", {}),
        ("mcp__toy__add", {"a": "x"}),
        ("mcp__toy__work", {}),
        ("mcp__toy__read_resource", {"uri": "toy://nothing"}),
        events=events,
    )
    assert len(words(flood)) < 1_100_000
    assert "2000000 bytes left out" in words(flood)
    assert (failed.result.is_error, "no luck" in words(failed)) == (True, True)
    assert wrong.result.is_error
    assert words(worked) == "done"
    assert [event.text for event in events if isinstance(event, ToolOutput)] == ["half\n"]
    assert extra.result.is_error


def test_a_server_that_dies_is_an_error_result_and_starts_again_at_the_next_call(world: World) -> None:
    died, alive = run(world.box(stdio()), ("mcp__toy__die", {}), ("mcp__toy__add", {"a": 1, "b": 2}))
    assert died.result.is_error
    assert words(alive) == "3"


def test_a_call_that_takes_too_long_is_ended(world: World) -> None:
    box = toolbox(world.folder, rules=ALL, mcp=world.servers(stdio()), timeout_s=0.5)
    began = time.monotonic()
    (late,) = run(box, ("mcp__toy__sleep", {"seconds": 60}))
    assert "did not end within 0.5 s" in words(late)
    assert time.monotonic() - began < 45
    assert children() == []


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (McpServerSettings(name="x", command="no-such-program"), "the command 'no-such-program' is not found"),
        (McpServerSettings(name="x", command="sh", args=("-c", "echo last words >&2; exit 3")), "it said: last words"),
        (McpServerSettings(name="x", command="sh", args=("-c", "echo rubbish; sleep 9"), timeout=1), "within 1 s"),
        (McpServerSettings(name="x", url="http://127.0.0.1:9/mcp", timeout=5), "failed"),
        (McpServerSettings(name="x"), "it needs either a command or a url"),
        (McpServerSettings(name="x", command="a", url="http://b"), "it needs either a command or a url"),
        (McpServerSettings(name="x", url="file:///etc/passwd"), "must begin with http"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_a_warning_and_the_others_work(
    world: World, server: McpServerSettings, reason: str
) -> None:
    box = world.box(server, stdio())
    assert [spec.name for spec in box.specs if spec.name.startswith("mcp__x")] == []
    (warning,) = world.warnings
    assert warning.startswith("The MCP server x is not available: ")
    assert reason in warning
    assert words(run(box, ("mcp__toy__add", {"a": 1, "b": 2}))[0]) == "3"


def test_servers_start_side_by_side_and_a_silent_one_is_not_waited_for_twice(world: World) -> None:
    silent = [McpServerSettings(name=f"s{n}", command="sleep", args=("60",), timeout=1) for n in range(8)]
    began = time.monotonic()
    asyncio.run(world.box(*silent).close())
    assert 1 <= time.monotonic() - began < 6
    servers = world.servers(*silent)
    began = time.monotonic()
    assert servers.join() == ()
    assert time.monotonic() - began < 1  # a start that waits takes as long as their time-out
    asyncio.run(servers.close())
    assert len(world.warnings) == 16
    world.now += SILENCE_KEPT_S
    assert world.servers(silent[0]).listings()["s0"].learned == world.now


def test_two_servers_of_one_name_are_told_apart_by_a_warning(world: World) -> None:
    listings = world.servers(stdio("a.b"), stdio("a b")).listings()
    assert listings["a.b"].failed == ""
    assert "another server has this name" in listings["a b"].failed


def test_servers_are_shared_by_sessions_and_end_with_the_last(world: World) -> None:
    servers = world.servers(stdio())
    one, two = (toolbox(world.folder, rules=ALL, mcp=servers) for _ in range(2))

    async def use() -> list[int]:
        counts = []
        await one.run(ToolCall("c", "mcp__toy__add", {"a": 1, "b": 2}))
        await two.run(ToolCall("c", "mcp__toy__add", {"a": 1, "b": 2}))
        counts.append(len(children()))
        await one.close()
        counts.append(len(children()))
        await two.close()
        counts.append(len(children()))
        return counts

    both, still, none = asyncio.run(use())
    assert both == still > 0
    assert none == 0


def test_servers_die_with_a_killed_ra(world: World) -> None:
    script = f"""
import asyncio, os, sys
sys.path.insert(0, {str(Path.cwd())!r})
from pathlib import Path
from tests.tools.mcp.test_servers import World, stdio, run
box = World(Path({str(world.folder)!r})).box(stdio())
print("ready", flush=True)
import time; time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        assert children() != []
        process.kill()
    deadline = time.monotonic() + 2
    while children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children() == []


def test_a_tool_can_be_turned_off(world: World) -> None:
    servers = world.servers(stdio())
    box = toolbox(world.folder, mcp=servers, settings={"mcp__toy__flood": False})
    assert "mcp__toy__flood" not in [spec.name for spec in box.specs]
    assert isinstance(box.specs[-1], ToolSpec)
    asyncio.run(box.close())


def test_a_start_does_not_wait_for_a_server_that_hangs(world: World) -> None:
    hanging = McpServerSettings(name="slow", command="sleep", args=("60",), timeout=30)
    servers = world.servers(hanging, start_s=0.5)
    began = time.monotonic()
    assert servers.join() == ()
    assert time.monotonic() - began < 25
    assert "slow is not available: no answer after 0.5 s" in world.warnings[-1]
    asyncio.run(servers.close())
    assert children() == []


def test_a_server_that_answers_late_is_there_from_then_on_and_at_the_next_start(world: World) -> None:
    go = world.folder / "go"
    late = McpServerSettings(name="late", command=sys.executable, args=(LINES, str(go)), timeout=30)

    async def until_there(box: Toolbox) -> None:
        while not box.refresh():
            await asyncio.sleep(0.02)
        await box.close()

    async def twice() -> list[set[str]]:
        offered = []
        for servers in (world.servers(late, start_s=0.2), world.servers(late, start_s=0.2)):
            box = toolbox(world.folder, rules=ALL, mcp=servers)
            offered.append({spec.name for spec in box.specs if spec.name.startswith("mcp__")})
            if servers is world.made[0]:
                await box.close()  # it ends before the server answers
        go.touch()
        await asyncio.wait_for(until_there(box), 30)
        offered.append({spec.name for spec in box.specs if spec.name.startswith("mcp__late__w")})
        return offered

    assert asyncio.run(twice()) == [set(), set(), {"mcp__late__write"}]
    assert "its tools are added when it answers" in world.warnings[0]
