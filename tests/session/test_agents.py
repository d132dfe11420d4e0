"""Does an agent file run as the page on composition says? The full example, through the real program."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ra import Agent, Source
from ra.core.facts import EntrySet, Said
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.examples import example

HORTON = example("agent")
MARK = ', "cache_control": {"type": "ephemeral"}'


def texts(message: dict[str, Any]) -> list[str]:
    return [block.get("text", "") for block in message["content"]]


def spoken(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def test_the_full_example_of_the_composition_page(shell: Shell) -> None:
    (shell.project / "horton.py").write_text(HORTON)
    steps = [Step(calls=(Call("order_status", {"order": 7}),)), Step(text="On its way."), Step(text="Push it.")]
    with LoopbackServer("anthropic", steps) as server:
        shell.serve(server)
        first = shell.ra("--agent-file", "horton.py", "How do I install, and where is order 7?")
        second = shell.ra("--agent-file", "horton.py", "-c", "And deploy?")
    assert (first.stdout, first.returncode) == (b"On its way.\n", 0)
    assert (second.stdout, second.stderr, second.returncode) == (b"Push it.\n", b"", 0)
    one, two, three = server.bodies
    assert [body["model"] for body in server.bodies] == ["claude-sonnet-4-5-20250929"] * 3
    assert [block["text"] for block in one["system"]] == ["You are a helpful assistant.", "Docs: install, deploy"]
    assert "order_status" in [tool["name"] for tool in one["tools"]]
    assert "Bash" in [tool["name"] for tool in one["tools"]]
    assert "Run pip install widget." in spoken(one)
    assert spoken(one).count("How do I install") == 1
    assert "order 7 is on its way" in spoken(two)
    assert spoken(three).count("And deploy?") == 1
    assert "On its way." in spoken(three)
    assert "Run widget push." in spoken(three)
    assert "Run pip install widget." not in spoken(three)
    assert [block["text"] for block in three["system"]] == [block["text"] for block in one["system"]]


def test_a_named_agent_has_a_handler(shell: Shell) -> None:
    (shell.home / ".config/ra").mkdir(parents=True)
    (shell.home / ".config/ra/ra.yaml").write_text("agents: {horton: {handler: ./horton.py, maxIterations: 3}}\n")
    (shell.home / ".config/ra/horton.py").write_text(HORTON)
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        assert shell.ra("--agent", "horton", "hi").stdout == b"Hello.\n"
    assert server.bodies[0]["system"][0]["text"] == "You are a helpful assistant."


def test_without_use_context_the_assembly_is_the_default_one(shell: Shell) -> None:
    (shell.project / "plain.py").write_text("async def handler(ctx, wake):\n    await ctx.agent.run()\n")
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        shell.ra("--agent-file", "plain.py", "hi")
        shell.ra("hi")
    with_file, without = server.bodies
    assert (with_file["system"], with_file["messages"], with_file["tools"]) == (
        without["system"],
        without["messages"],
        without["tools"],
    )


@pytest.mark.parametrize(
    ("code", "words", "code_out"),
    [
        ("async def handler(ctx, wake):\n    pass\n", "ended without ctx.agent.run()", 5),
        ("async def handler(ctx, wake):\n    1 / 0\n", "x.py:2: handler failed: ZeroDivisionError", 1),
        ("def handle(ctx, wake):\n    pass\n", "defines no 'handler'. Did you mean 'handle'?", 2),
        (
            "from ra import Source\nasync def handler(ctx, wake):\n"
            "    ctx.use_context(source_budget=0, sources={'a': Source('x')})\n",
            "source_budget is 0; use a positive, finite number",
            2,
        ),
        (
            "async def handler(ctx, wake):\n    await ctx.agent.run()\n    await ctx.agent.run()\n",
            "run(prompt) asks another",
            2,
        ),
        ("async def handler(ctx, wake):\n    ctx.use_agent(tools=['Bash'])\n", "tools holds a str", 2),
    ],
)
def test_a_wrong_agent_file_is_told_in_a_sentence(shell: Shell, code: str, words: str, code_out: int) -> None:
    (shell.project / "x.py").write_text(code)
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        done = shell.ra("--agent-file", "x.py", "hi")
    assert done.stderr.decode().count(words) == 1
    assert done.returncode == code_out


def run(agent: Agent, *prompts: str) -> list[str]:
    async def all_of_them() -> list[str]:
        async with agent:
            return [await agent.answer(prompt) for prompt in prompts]

    return asyncio.run(all_of_them())


def library(shell: Shell, server: LoopbackServer, handler: Any) -> Agent:
    shell.serve(server)
    return Agent(cwd=shell.project, env=shell.env, handler=handler)


def test_a_program_hands_its_handler_to_the_library(shell: Shell) -> None:
    seen: list[Any] = []

    async def handler(ctx: Any, wake: Any) -> None:
        ctx.insert_context("tone", "Tone", "Be short.", {"level": 1})
        ctx.insert_context("gone", content="Never mind.")
        ctx.remove_context("gone")
        seen.append((wake.text, wake.context.channel, ctx.get_context("tone").content, len(ctx.list_context())))
        ended = await ctx.agent.run()
        seen.append((ended.outcome, ended.answer))
        await ctx.agent.run("Shorter, please.")

    with LoopbackServer("anthropic", [Step(text="A long answer."), Step(text="Short.")]) as server:
        agent = library(shell, server, handler)
        assert run(agent, "hello") == ["Short."]
    assert seen == [("hello", "api", "Be short.", 1), ("answered", "A long answer.")]
    assert agent.ended is not None
    assert agent.ended.iterations == 2
    assert "Never mind." not in spoken(server.bodies[0])
    events = list(agent.app.store.open(agent.session, write=False).events())
    assert EntrySet("tone", "Be short.", "Tone", {"level": "1"}) in [event.fact for event in events]


def test_a_handler_may_fill_slots(shell: Shell) -> None:
    async def handler(ctx: Any, wake: Any) -> None:
        ctx.slots.add("system", "You count.", role="system")
        ctx.slots.add("history", ctx.history.recent(10), max_ratio=0.5)
        ctx.slots.add("input", ctx.input)
        await ctx.agent.run()

    with LoopbackServer("anthropic", [Step(text="one"), Step(text="two")]) as server:
        assert run(library(shell, server, handler), "again", "again") == ["one", "two"]
    assert [block["text"] for block in server.bodies[1]["system"]] == ["You count."]
    assert [texts(message) for message in server.bodies[1]["messages"]] == [["again"], ["one"], ["again"]]


def test_a_source_that_fails_or_hangs_becomes_a_marker(shell: Shell) -> None:
    async def handler(ctx: Any, wake: Any) -> None:
        sources = {"bad": Source(lambda: 1 / 0), "talk": Source(lambda: ctx.timeline_messages())}
        ctx.use_context(source_budget=1000, sources=sources)
        await ctx.agent.run()

    with LoopbackServer("anthropic", [Step(text="ok")]) as server:
        agent = library(shell, server, handler)
        assert run(agent, "hi") == ["ok"]
    assert "[The source bad could not be read.]" in spoken(server.bodies[0])
    assert agent.warnings == ["Source 'bad' could not be read: ZeroDivisionError: division by zero"]


def test_a_message_that_no_agent_ran_for_is_kept(shell: Shell) -> None:
    async def handler(ctx: Any, wake: Any) -> None:
        pass

    with LoopbackServer("anthropic", [Step(text="ok")]) as server:
        agent = library(shell, server, handler)

        async def hear() -> None:
            async with agent:
                async for _ in agent.run("note this"):
                    pass

        asyncio.run(hear())
    assert agent.ended is not None
    assert agent.ended.outcome == "empty"
    facts = [event.fact for event in agent.app.store.open(agent.session, write=False).events()]
    assert [fact.message.text for fact in facts if isinstance(fact, Said)] == ["note this"]
    assert server.bodies == []


def test_interrupting_a_handler_ends_its_run(shell: Shell, tmp_path: Path) -> None:
    async def handler(ctx: Any, wake: Any) -> None:
        await ctx.agent.run()

    with LoopbackServer("anthropic", [Step(text="slow", delay_s=30)]) as server:
        agent = library(shell, server, handler)

        async def stop() -> str:
            session = agent.app.open()
            run = session.prompt((await session.prepare("hi")).message)
            async for _ in run:
                run.interrupt()
            await session.close()
            assert run.ended is not None
            return run.ended.outcome

        assert asyncio.run(asyncio.wait_for(stop(), 10)) == "interrupted"


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("source_budget=0, sources={'a': Source('x')}", "source_budget is 0"),
        ("source_budget=10, sources={}", "name at least one source"),
        ("source_budget=10, sources={'a': Source('x', max=20, cache='stable')}", "source_budget is 10"),
        ("source_budget=10, sources={'a': Source('x', max=5, cache='hot')}", "cache is 'hot'"),
    ],
)
def test_a_fault_at_registration_exits_2_as_in_yaml(shell: Shell, call: str, fault: str) -> None:
    (shell.project / "a.py").write_text(
        f"from ra import Source\nasync def handler(ctx, wake):\n    ctx.use_context({call})\n"
        "    await ctx.agent.run()\n"
    )
    with LoopbackServer("anthropic", []) as server:
        shell.serve(server)
        done = shell.ra("--agent-file", "a.py", "hi")
    assert (done.returncode, server.requests) == (2, [])
    assert fault in done.stderr.decode()


NAMED = "async def handler(ctx, wake):\n    ctx.use_agent(model={!r})\n    await ctx.agent.run()\n"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("haiku", "claude-haiku-"),
        ("anthropic/claude-opus-4-6", "claude-opus-4-6"),
        ("claude-opus-9-1", "claude-opus-9-1"),
    ],
)
def test_an_agent_file_names_models_as_a_flag_does(shell: Shell, name: str, sent: str) -> None:
    (shell.project / "a.py").write_text(NAMED.format(name))
    with LoopbackServer("anthropic", [Step(text="hi")]) as server:
        shell.serve(server)
        assert shell.ra("--agent-file", "a.py", "hi").returncode == 0
    assert server.bodies[0]["model"].startswith(sent)


def test_the_planner_is_named_as_a_flag_does(shell: Shell) -> None:
    with LoopbackServer("anthropic", [Step(text="{}"), Step(text="hi")]) as server:
        shell.serve(server)
        done = shell.ra("--context-strategy", "planner", "--set", "session.planner.model=haiku", "hi")
    assert done.stdout == b"hi\n"
    assert server.bodies[0]["model"].startswith("claude-haiku-")


@pytest.mark.parametrize(
    "asked",
    [
        ["--agent-file", "a.py"],
        ["--set", "agent.compaction.model=claude-opuss-4-6"],
        ["--context-strategy", "planner", "--set", "session.planner.model=claude-opuss-4-6"],
    ],
)
def test_a_near_miss_of_a_model_is_refused_wherever_it_is_named(shell: Shell, asked: list[str]) -> None:
    (shell.project / "a.py").write_text(NAMED.format("claude-opuss-4-6"))
    with LoopbackServer("anthropic", []) as server:
        shell.serve(server)
        done = shell.ra(*asked, "hi")
    assert (done.returncode, server.requests) == (2, [])
    assert "did you mean claude-opus-4-6?" in done.stderr.decode()


def test_the_runs_of_a_handler_share_the_limits_of_their_message(shell: Shell) -> None:
    (shell.project / "a.py").write_text(
        "async def handler(ctx, wake):\n    await ctx.agent.run()\n"
        "    for _ in range(5): await ctx.agent.run('again')\n"
    )
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        done = shell.ra("--agent-file", "a.py", "--max-iterations", "3", "hi")
    assert (done.returncode, len(server.requests)) == (3, 3)


def test_the_conversation_stays_a_cached_prefix_between_wakes(shell: Shell) -> None:
    (shell.project / "horton.py").write_text(HORTON)
    with LoopbackServer("anthropic", lambda body: Step(text="It is so. " * 200)) as server:
        shell.serve(server)
        for number in range(4):
            assert shell.ra("--agent-file", "horton.py", *["-c"][: number > 0], f"How do I install {number}?").stdout
    bodies = [json.dumps([body["system"], body["messages"]]).replace(MARK, "") for body in server.bodies]
    before, after = bodies[-2:]
    shared = next(at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    assert shared > 0.85 * len(before)
