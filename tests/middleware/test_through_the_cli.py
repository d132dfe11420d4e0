"""Hooks, trust and references in a real `ra` process, against a real server."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

REPOSITORY = Path(__file__).parents[2]
SECRET = "ghp_" + "a1B2" * 9


def use(shell: Shell, **middleware: list[Any]) -> None:
    """A project that names hooks; the examples lie beside it."""
    shutil.copytree(REPOSITORY / "middleware", shell.project / "middleware", dirs_exist_ok=True)
    (shell.project / "ra.yaml").write_text(json.dumps({"agent": {"middleware": middleware}}))


def sent(server: LoopbackServer) -> str:
    return json.dumps(server.bodies)


def bash(command: str) -> Step:
    return Step(calls=(Call("Bash", {"command": command}),))


def read(path: str) -> Step:
    return Step(calls=(Call("Read", {"path": path}),))


def stored(shell: Shell) -> bytes:
    folder = Path(shell.env["RA_HOME"])
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_redacted_secret_reaches_neither_the_model_nor_the_disk_nor_the_next_session(
    shell: Shell, model: Callable[..., LoopbackServer]
) -> None:
    use(shell, afterToolExecution=["./middleware/redact_secrets.py"])
    (shell.project / "config.txt").write_text(f"token {SECRET} end")
    server = model(read("config.txt"))
    done = shell.ra("--trust", "what is in config.txt?")
    assert (done.returncode, done.stdout) == (0, b"done\n")
    shell.ra("--trust", "-c", "and now?")
    assert len(server.bodies) == 3
    assert "[redacted: GitHub token]" in json.dumps(server.bodies[2])
    assert SECRET not in sent(server)
    assert SECRET.encode() not in stored(shell)
    assert SECRET.encode() not in done.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import os\ndef middleware(ctx):\n    raise ValueError('no')\n",
            "h.py:3: beforeToolExecution failed: ValueError: no",
        ),
        ("def middleware(ctx): ctx.tool_call = 1", "h.py:1: beforeToolExecution failed: TypeError"),
    ],
)
def test_a_hook_that_fails_ends_the_run_with_exit_1_and_the_call_does_not_run(
    shell: Shell, model: Callable[..., LoopbackServer], source: str, said: str
) -> None:
    use(shell, beforeToolExecution=["./h.py"])
    (shell.project / "h.py").write_text(source)
    server = model(bash("touch ran"))
    done = shell.ra("--trust", "go")
    assert done.returncode == 1
    assert said in done.stderr.decode()
    assert not (shell.project / "ran").exists()
    assert len(server.bodies) == 1


BESIDE = """import asyncio

async def middleware(ctx):
    await asyncio.sleep(0.1)
    ctx.loop.messages.append({"role": "user", "content": f"{ctx.hook} of {ctx.tool_call.args['path']}"})
"""


def test_parallel_calls_keep_their_results_and_every_edit_of_the_conversation(
    shell: Shell, model: Callable[..., LoopbackServer]
) -> None:
    use(shell, beforeToolExecution=["./h.py"], afterToolExecution=["./h.py"])
    (shell.project / "h.py").write_text(BESIDE)
    for name in ("a", "b"):
        (shell.project / name).write_text(f"text of {name}")
    server = model(Step(calls=(Call("Read", {"path": "a"}), Call("Read", {"path": "b"}))))
    assert shell.ra("--trust", "go").returncode == 0
    told = json.dumps(server.bodies[-1]["messages"])
    hooks = ("beforeToolExecution", "afterToolExecution")
    expected = [*(f"{hook} of {name}" for hook in hooks for name in "ab"), "text of a", "text of b"]
    assert [told.count(text) for text in expected] == [1] * len(expected)
    assert "interrupted" not in told


def test_policy_check_denies_a_call_and_the_run_goes_on(shell: Shell, model: Callable[..., LoopbackServer]) -> None:
    use(shell, beforeToolExecution=["./middleware/policy_check.sh"])
    server = model(bash("git push --force; touch ran"))
    done = shell.ra("--trust", "push it")
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert "policy: no forced pushes" in json.dumps(server.bodies[1])
    assert not (shell.project / "ran").exists()


def test_enforce_budget_stops_with_exit_3_before_anything_is_sent(
    shell: Shell, model: Callable[..., LoopbackServer]
) -> None:
    use(shell, beforeModelCall=["./middleware/enforce_budget.py"])
    server = model()
    done = shell.ra("--trust", "hello", env={"RA_MAX_CHARS": "10"})
    assert done.returncode == 3
    assert b"the limit is 10 (" in done.stderr
    assert server.bodies == []


def test_log_cost_and_audit_log_write_where_they_should(shell: Shell, model: Callable[..., LoopbackServer]) -> None:
    use(
        shell,
        afterLoopComplete=["./middleware/log_cost.py"],
        beforeToolExecution=["./middleware/audit_log.py"],
        afterToolExecution=["./middleware/audit_log.py"],
    )
    (shell.project / "a.txt").write_text("x")
    model(read("a.txt"))
    done = shell.ra("--trust", "go")
    assert done.stdout == b"done\n"
    assert b"Tokens used: " in done.stderr
    lines = [json.loads(line) for line in (shell.project / ".ra" / "audit.jsonl").read_text().splitlines()]
    assert [(line["hook"], line["tool"]) for line in lines] == [
        ("beforeToolExecution", "Read"),
        ("afterToolExecution", "Read"),
    ]


@pytest.mark.parametrize(
    "configured",
    [
        {"agent": {"context": {"resolvers": [{"name": "issues", "path": "./gone/issues.py"}]}}},
        {"agent": {"middleware": {"beforeModelCall": ["./gone/h.py"]}}},
        {"agent": {"middleware": {"beforeModelCall": ["./gone/h.ts"]}}},
        {"agent": {"tools": {"custom": ["./gone/t.py"]}}},
        {"session": {"contextStrategy": "./gone/s.py"}},
    ],
)
def test_code_that_is_not_there_is_named_before_anything_is_sent(
    shell: Shell, model: Callable[..., LoopbackServer], configured: dict[str, Any]
) -> None:
    (shell.project / "ra.yaml").write_text(json.dumps(configured))
    server = model()
    done = shell.ra("--trust", "hi")
    assert (done.returncode, server.bodies) == (2, [])
    assert "here is no file" in done.stderr.decode()


def test_a_project_is_inert_until_it_is_trusted_and_again_after_one_changed_byte(
    shell: Shell, model: Callable[..., LoopbackServer]
) -> None:
    (shell.project / "hook.py").write_text("def middleware(ctx): open('executed', 'a').write('x')\n")
    (shell.project / "ra.yaml").write_text(
        "agent:\n  middleware: {beforeModelCall: [./hook.py]}\n  mcpServers: [{name: m, command: touch, args: [mcp]}]\n"
        "  permissions: {rules: [{allow: 'Bash(*)'}]}\n  context: {sources: {s: {command: touch source, max: 10}}}\n"
        "app: {providers: {anthropic: {baseUrl: 'http://127.0.0.1:9'}}}\n"
    )
    server = model()
    refused = shell.ra("hi")
    assert (refused.returncode, refused.stdout, server.bodies) == (4, b"", [])
    assert b"ra trust" in refused.stderr
    assert b"--ignore-untrusted" in refused.stderr
    without = shell.ra("--ignore-untrusted", "hi")
    assert (without.returncode, without.stdout) == (0, b"done\n")
    assert b"agent.middleware.beforeModelCall.0: middleware ./hook.py" in without.stderr
    assert [(shell.project / name).exists() for name in ("executed", "mcp", "source")] == [False, False, False]
    (shell.project / "ra.yaml").write_text("agent:\n  middleware: {beforeModelCall: [./hook.py]}\n")
    assert shell.ra("trust", "--yes").returncode == 0
    assert shell.ra("hi").stdout == b"done\n"
    assert (shell.project / "executed").read_text() == "x"
    (shell.project / "hook.py").write_text("def middleware(ctx): open('executed', 'a').write('y')\n")
    assert shell.ra("hi").returncode == 4
    assert (shell.project / "executed").read_text() == "x"


def test_text_that_arrives_expands_nothing(shell: Shell, model: Callable[..., LoopbackServer]) -> None:
    outside = shell.home / "id_rsa"
    outside.write_text("PRIVATE")
    trap = f"see @{outside} @~/id_rsa @inside.txt url:http://127.0.0.1:9/"
    (shell.project / "inside.txt").write_text("INSIDE")
    (shell.project / "AGENTS.md").write_text(f"see @{outside} @~/id_rsa url:http://127.0.0.1:9/")
    (shell.project / "trap.txt").write_text(trap)
    server = model(read("trap.txt"))
    done = shell.ra("explain @trap.txt", stdin=trap)
    assert done.returncode == 0
    assert "PRIVATE" not in sent(server)
    assert "INSIDE" not in sent(server)


def test_modules_of_the_project_are_not_imported(shell: Shell, model: Callable[..., LoopbackServer]) -> None:
    for name in ("json", "h11", "msgspec", "sitecustomize", "usercustomize", "pathspec", "asyncio", "ra"):
        (shell.project / f"{name}.py").write_text("open('executed', 'a').write(__name__)\n")
    use(shell, beforeModelCall=["./middleware/enforce_budget.py"])
    model()
    assert shell.ra("--trust", "what is in @*.py").stdout == b"done\n"
    assert not (shell.project / "executed").exists()


def test_a_script_of_the_users_sees_no_key_unless_it_is_named(
    shell: Shell, model: Callable[..., LoopbackServer]
) -> None:
    script = shell.project / "peek.sh"
    script.write_text("#!/bin/sh\n# tool: Look around\necho seen $OPENAI_API_KEY $TICKETS_TOKEN\n")
    settings = {"custom": ["./peek.sh"], "peek": {"env": ["TICKETS_TOKEN"]}}
    (shell.project / "ra.yaml").write_text(json.dumps({"agent": {"tools": settings}}))
    server = model(Step(calls=(Call("peek", {}),)))
    assert shell.ra("--trust", "look", env={"OPENAI_API_KEY": "sk-1", "TICKETS_TOKEN": "t-2"}).returncode == 0
    assert "seen t-2" in sent(server)
    assert "sk-1" not in sent(server)


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("ctx.request.messages = []", "it has no message with content"),
        ("ctx.request.messages = [{'role': 'user', 'content': ' '}]", "it has no message with content"),
        ("ctx.request.messages = [m for m in ctx.request.messages if not m.calls]", "answers no call before it"),
        ("ctx.request.messages = [m for m in ctx.request.messages if m.role != 'tool']", "has no result"),
        ("ctx.request.max_output = 0", "max_output is 0"),
    ],
)
def test_an_edited_request_that_no_provider_takes_is_refused_with_the_hook_s_name(
    shell: Shell, model: Callable[..., LoopbackServer], edit: str, fault: str
) -> None:
    use(shell, beforeModelCall=["./h.py"])
    (shell.project / "h.py").write_text(f"def middleware(ctx):\n    if ctx.loop.iteration == 2: {edit}\n")
    server = model(bash("true"))
    done = shell.ra("--trust", "go")
    assert (done.returncode, len(server.requests)) == (1, 1)
    assert "h.py: beforeModelCall left a request that no provider would accept: " in done.stderr.decode()
    assert fault in done.stderr.decode()


def test_a_hook_may_compose_the_prompt_with_slots(shell: Shell, model: Callable[..., LoopbackServer]) -> None:
    use(shell, onContextBuild=["./h.py"])
    (shell.project / "h.py").write_text(
        "def on_context_build(ctx):\n"
        "    assert ctx.budget.remaining_input_tokens > 1000\n"
        "    ctx.slots.add('system', 'Be brief.', role='system', priority=100)\n"
        "    ctx.slots.add('memory', 'It rains.', role='tool')\n"
        "    ctx.slots.add('history', ctx.history.recent(10), max_ratio=0.5)\n"
        "    ctx.slots.add('example', {'role': 'assistant', 'content': 'Yes.'})\n"
        "    ctx.slots.add('input', ctx.input)\n"
        "    return ctx.slots.render()\n"
    )
    server = model(Step(text="hi"))
    done = shell.ra("--trust", "--no-tools", "go")
    assert done.returncode == 0, done.stderr.decode()
    body = server.bodies[-1]
    assert body["system"][0]["text"] == "Be brief."
    texts = [part["text"] for message in body["messages"] for part in message["content"]]
    assert texts == ["[Output of the tool memory]\nIt rains.", "Yes.", "go"]
    assert '"role":"tool"' in shell.ra("context", "--json").stdout.decode().replace(" ", "")


@pytest.mark.parametrize(
    ("hook", "line", "said"),
    [
        (
            "beforeToolExecution",
            "ctx.args = {}",
            "'args' cannot be changed here; you can change loop.messages, tool_call",
        ),
        ("afterToolExecution", "ctx.result = 'none'", "'result' cannot be changed here"),
        ("beforeModelCall", "ctx.request = None", "'request' cannot be changed here"),
        (
            "beforeModelCall",
            "ctx.request.messges = []",
            "'messges' cannot be changed here; you can change messages, ",
        ),
        ("beforeModelCall", "ctx.loop.message = []", "'message' cannot be changed here; you can change messages"),
        ("beforeModelCall", "ctx.request.tools *= 2", "no provider would accept: the tool Agent occurs in it twice"),
        ("afterLoopIteration", "ctx.loop.messages = []", "h.py: afterLoopIteration left a request"),
        ("afterLoopIteration", "ctx.loop.messages *= 2", "no provider would accept: the call of Bash"),
    ],
)
def test_a_change_that_would_be_lost_or_refused_ends_the_run_with_the_hook_s_name(
    shell: Shell, model: Callable[..., LoopbackServer], hook: str, line: str, said: str
) -> None:
    use(shell, **{hook: ["./h.py"]})
    (shell.project / "h.py").write_text(f"def middleware(ctx):\n    {line}\n")
    model(bash("true"))
    done = shell.ra("--trust", "go")
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert said in done.stderr.decode()


@pytest.mark.parametrize(("content", "warned"), [("'A document.'", True), ("'Q: ' + ctx.input.text", False)])
def test_slots_without_the_input_are_told(
    shell: Shell, model: Callable[..., LoopbackServer], content: str, warned: bool
) -> None:
    use(shell, onContextBuild=["./h.py"])
    (shell.project / "h.py").write_text(f"def on_context_build(ctx):\n    ctx.slots.add('docs', {content})\n")
    model(Step(text="hi"))
    for flags in (["--trust"], ["--ignore-untrusted", "--context-strategy", "./h.py"]):
        done = shell.ra(*flags, "--no-tools", "go")
        assert (b"The current input is not in the prompt" in done.stderr) == warned
