"""Hooks in JavaScript and TypeScript: node calls the default export, as the pages show it."""

import json
import shutil
from collections.abc import Callable

import pytest

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

LOG_COST = """
export default async (ctx) => {
const { inputTokens, outputTokens } = ctx.loop.usage
console.log(`Tokens used: ${inputTokens} in, ${outputTokens} out`)
}
"""
ENFORCE_BUDGET = """
// middleware/enforce-budget.ts — reject if context is too large
export default async (ctx) => {
const totalChars = ctx.request.messages.reduce((n, m) => n + JSON.stringify(m).length, 0)
if (totalChars > LIMIT) ctx.stop()
}
"""
REDACT = "module.exports = (ctx) => { ctx.result.content = ctx.result.content.replaceAll('hunter2', '[redacted]') }"
ARGS = "export default (ctx) => { ctx.toolCall.args = { ...ctx.toolCall.args, command: 'echo swapped' } }"
DENY = "export default (ctx) => { if (ctx.toolCall.name === 'Bash') ctx.deny('not today') }"
EDIT = "export default (ctx) => { ctx.request.messages.push({ role: 'user', content: 'Answer in verse.' }) }"
SLOTS = """
export async function onContextBuild(ctx) {
  ctx.slots.add("system", "You are a helpful assistant.", { role: "system", priority: 100 })
  ctx.slots.add("history", ctx.history.recent(10), { trimBehavior: "message", maxRatio: 0.5 })
  ctx.slots.add("input", ctx.input)
  return ctx.slots.render()
}
"""

Model = Callable[..., LoopbackServer]


def use(shell: Shell, hook: str, name: str, source: str) -> None:
    folder = shell.project / "middleware"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(source)
    (shell.project / "ra.yaml").write_text(f"agent:\n  middleware:\n    {hook}: ['./middleware/{name}']\n")


@pytest.mark.parametrize("name", ["log-cost.ts", "log-cost.js", "log-cost.mjs", "log-cost.mts"])
def test_the_page_s_own_file_runs_as_it_is_printed(shell: Shell, model: Model, name: str) -> None:
    use(shell, "afterModelResponse", name, LOG_COST)
    model(Step(text="hi"))
    done = shell.ra("--trust", "go")
    assert (done.returncode, done.stdout) == (0, b"hi\n"), done.stderr.decode()
    assert b"Tokens used: " in done.stderr


@pytest.mark.parametrize(("limit", "code"), [(500_000, 0), (10, 3)])
def test_a_budget_in_typescript_stops_the_run(shell: Shell, model: Model, limit: int, code: int) -> None:
    use(shell, "beforeModelCall", "enforce-budget.ts", ENFORCE_BUDGET.replace("LIMIT", str(limit)))
    server = model(Step(text="hi"))
    assert shell.ra("--trust", "go").returncode == code
    assert len(server.requests) == (code == 0)


@pytest.mark.parametrize(
    ("hook", "source", "shown"),
    [
        ("afterToolExecution", REDACT, "the password is [redacted]"),
        ("beforeToolExecution", ARGS, "swapped"),
        ("beforeToolExecution", DENY, "not today"),
        ("beforeModelCall", EDIT, "Answer in verse."),
    ],
)
def test_what_a_hook_changes_reaches_the_model(shell: Shell, model: Model, hook: str, source: str, shown: str) -> None:
    use(shell, hook, "hook.js", source)
    server = model(Step(calls=(Call("Bash", {"command": "echo the password is hunter2"}),)))
    done = shell.ra("--trust", "go")
    assert done.returncode == 0, done.stderr.decode()
    assert shown in json.dumps(server.bodies[-1])


def test_the_slots_page_s_own_function_composes_the_prompt(shell: Shell, model: Model) -> None:
    use(shell, "onContextBuild", "strategy.js", SLOTS)
    server = model(Step(text="hi"))
    assert shell.ra("--trust", "--no-tools", "first").returncode == 0
    done = shell.ra("-c", "--no-tools", "and the second")
    assert done.returncode == 0, done.stderr.decode()
    body = server.bodies[-1]
    assert body["system"][0]["text"] == "You are a helpful assistant."
    texts = [part["text"] for message in body["messages"] for part in message["content"]]
    assert texts == ["first", "hi", "and the second"]


def test_slots_and_history_are_those_of_python(shell: Shell, model: Model) -> None:
    source = """export function onContextBuild(ctx) {
      ctx.slots.add("input", ctx.input, { position: 9 })
      ctx.slots.add("nothing", null)
      ctx.slots.add("rules", "Be brief.", { role: "system" })
      console.log([1, 2, 3].map((count) => ctx.history.recent(count).length).join())
      console.log(ctx.slots.render().messages.map((message) => message.content).join("|"))
    }"""
    use(shell, "onContextBuild", "h.js", source)
    model(Step(calls=(Call("Bash", {"command": "true"}),)), Step(text="done"))
    assert shell.ra("--trust", "the first question").returncode == 0
    done = shell.ra("-c", "the second question")
    assert done.returncode == 0, done.stderr.decode()
    assert b"1,1,3" in done.stderr  # the answer; with room for its call and result, these too
    assert b"Be brief.|the second question" in done.stderr


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("h.js", "const x = 1", "has no default export"),
        ("h.mjs", "export default 5", "has no default export"),
        ("h.js", "export default () => { throw new Error('boom') }", "failed with exit 1: Error: boom at"),
        ("h.js", "export default () => process.exit(0)", "ended the process before it returned"),
        ("h.js", "export default () => false", "returned boolean"),
        ("h.js", "export default (", "SyntaxError"),
    ],
)
def test_a_hook_that_cannot_be_called_ends_the_run(
    shell: Shell, model: Model, name: str, source: str, sentence: str
) -> None:
    use(shell, "beforeModelCall", name, source)
    server = model(Step(text="hi"))
    done = shell.ra("--trust", "go")
    assert (done.returncode, server.requests) == (1, [])
    assert sentence in done.stderr.decode()


def test_what_a_hook_leaves_open_keeps_nobody_waiting(shell: Shell, model: Model) -> None:
    use(shell, "beforeModelCall", "h.js", "export default () => { setInterval(() => {}, 1000) }")
    model(Step(text="hi"))
    done = shell.ra("--trust", "go")
    assert (done.returncode, done.stdout) == (0, b"hi\n"), done.stderr.decode()


def test_types_run_where_node_strips_them_and_are_refused_elsewhere(shell: Shell, model: Model) -> None:
    use(shell, "beforeModelCall", "typed.ts", "export default async (ctx: any): Promise<void> => { ctx.loop }")
    model(Step(text="hi"))
    done = shell.ra("--trust", "go")
    told = done.stderr.decode()
    assert done.returncode == 0 or (done.returncode == 1 and "cannot strip them: use node 22.18 or newer" in told)


def test_without_node_the_file_is_refused(shell: Shell, model: Model) -> None:
    use(shell, "beforeModelCall", "h.ts", ENFORCE_BUDGET)
    model(Step(text="hi"))
    shell.env["PATH"] = "/nonexistent"
    done = shell.ra("--trust", "go")
    assert done.returncode == 2
    assert "needs node, which is not installed" in done.stderr.decode()
