"""Hooks run in order, see and change what they may, and a hook that fails lets nothing pass."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ra.core.errors import HookFailed, Stopped, UserError
from ra.core.events import TextDelta
from ra.core.facts import Checkpointed
from ra.core.messages import Image, Message, Text, ToolCall, ToolResult, say
from ra.core.model import Marks, Reply, Request, Section, ToolSpec, Usage
from ra.middleware import context
from ra.middleware.context import Edits
from ra.middleware.hooks import Hooks, snake
from ra.middleware.settings import MiddlewareSettings
from ra.middleware.views import LoopView, Spending, merge_edit
from ra.system import plugins

HISTORY = (say("user", "hello"), say("assistant", "hi"))
CALL = ToolCall("c1", "Bash", {"command": "ls", "opts": {"deep": [1]}})
RESULT = ToolResult("c1", "Bash", (Text("key sk-1"), Image("image/png", b"x"), Text("tail")))
REQUEST = Request("m", (Section("s", "stable", "rules"),), HISTORY, marks=Marks(sections=(0,), messages=(0, 1)))
REPLY = Reply(Message("assistant", (Text("done"), CALL)), Usage(1, 2), "tools")


def loop() -> LoopView:
    return LoopView(HISTORY, iteration=3, usage=Spending(10, 20, 5, 6, 0.5), session="s1", model="m")


class Chain:
    """Hooks of a folder, with a real worker."""

    def __init__(self, folder: Path, worker: plugins.Worker) -> None:
        self.folder = folder
        self.worker = worker

    def hooks(self, hook: str, *items: Any, timeout_s: float = 10, **more: Any) -> Hooks:
        settings = msgspec.convert({hook: list(items), **more}, MiddlewareSettings)
        return Hooks(settings, base=self.folder, load=plugins.load, call=self.worker.call, timeout_s=timeout_s)

    def fire(self, ctx: context.Context, hook: str, source: str, timeout_s: float = 10) -> tuple[str, ...]:
        (self.folder / "h.py").write_text(source)
        return asyncio.run(self.hooks(hook, "h.py", timeout_s=timeout_s).fire(hook, ctx))

    def shell(self, ctx: context.Context, hook: str, command: str, timeout_s: float = 10) -> tuple[str, ...]:
        return asyncio.run(self.hooks(hook, {"shell": command}, timeout_s=timeout_s).fire(hook, ctx))


@pytest.fixture
def chain(tmp_path: Path, worker: plugins.Worker) -> Chain:
    return Chain(tmp_path, worker)


# What a hook sees


def test_every_hook_sees_the_history_the_iteration_the_usage_and_the_session(chain: Chain) -> None:
    ctx = context.Context(loop())
    chain.fire(
        ctx,
        "afterLoopIteration",
        """
def after_loop_iteration(ctx):
    loop = ctx.loop
    assert [m.text for m in loop.messages] == ["hello", "hi"]
    assert (loop.iteration, loop.session, loop.model, ctx.hook) == (3, "s1", "m", "afterLoopIteration")
    assert (loop.usage.input_tokens, loop.usage.output_tokens, loop.usage.cost, loop.cost) == (10, 20, 0.5, 0.5)
    assert loop.usage.total_tokens == 41
""",
    )
    assert ctx.edits() == Edits(by="h.py")


def test_wants_tells_whether_anybody_listens(chain: Chain) -> None:
    (chain.folder / "h.py").write_text("def middleware(ctx): pass")
    hooks = chain.hooks("beforeModelCall", "h.py")
    assert [hook for hook in context.HOOKS if hooks.wants(hook)] == ["beforeModelCall"]


def test_every_hook_has_a_settings_key_and_a_function_name() -> None:
    assert tuple(snake(hook) for hook in context.HOOKS) == MiddlewareSettings.__struct_fields__


def test_the_function_is_named_after_the_hook_or_middleware_or_by_the_reference(chain: Chain) -> None:
    (chain.folder / "a.py").write_text("def before_loop_begin(ctx): ctx.message = ctx.message.text + '1'")
    (chain.folder / "b.py").write_text("async def middleware(ctx): ctx.message = ctx.message.text + '2'")
    (chain.folder / "c.py").write_text("def other(ctx): ctx.message = ctx.message.text + '3'")
    ctx = context.LoopBegin(loop(), say("user", "x"))
    asyncio.run(chain.hooks("beforeLoopBegin", "a.py", "./b.py", "c.py:other").fire("beforeLoopBegin", ctx))
    assert ctx.edits() == Edits(message=say("user", "x123"), by="a.py, ./b.py, c.py:other")


# What a hook may change


@pytest.mark.parametrize(
    "source",
    [
        "def middleware(ctx): ctx.loop.messages = ctx.loop.messages[:1] + [{'role': 'user', 'content': 'new'}]",
        "def middleware(ctx): ctx.loop.messages[1] = {'role': 'user', 'content': 'new'}",
        "def middleware(ctx):\n ctx.loop.messages.pop()\n ctx.loop.messages.append({'role': 'user', 'content': 'new'})",
        "from ra.core.messages import say\ndef middleware(ctx): ctx.loop.messages[-1:] = [say('user', 'new')]",
    ],
)
def test_the_conversation_may_be_assigned_or_changed_in_place(chain: Chain, source: str) -> None:
    ctx = context.Context(loop())
    chain.fire(ctx, "afterLoopIteration", source)
    assert ctx.edits().messages == (HISTORY[0], say("user", "new"))


def test_assigning_what_is_there_already_is_no_edit(chain: Chain) -> None:
    ctx = context.ModelCall(loop(), REQUEST)
    chain.fire(
        ctx,
        "beforeModelCall",
        "def middleware(ctx):\n ctx.loop.messages = list(ctx.loop.messages)\n"
        " ctx.request.messages = list(ctx.request.messages)",
    )
    assert ctx.edits() == Edits(by="h.py")


def test_a_request_may_get_other_messages_sections_and_tools(chain: Chain) -> None:
    ctx = context.ModelCall(loop(), REQUEST)
    chain.fire(
        ctx,
        "beforeModelCall",
        """
from ra.core.model import Section, ToolSpec
def before_model_call(ctx):
    del ctx.request.messages[1:]
    ctx.request.sections.append(Section("t", "volatile", "today"))
    ctx.request.tools = [ToolSpec("T", "", {})]
    ctx.request.max_output = 7
""",
    )
    assert ctx.edits().request == Request(
        "m",
        (Section("s", "stable", "rules"), Section("t", "volatile", "today")),
        HISTORY[:1],
        tools=(ToolSpec("T", "", {}),),
        max_output=7,
        marks=Marks(sections=(0,), messages=(0,)),
    )


@pytest.mark.parametrize(
    "source",
    [
        "def middleware(ctx): ctx.tool_call.args['command'] = 'pwd'",
        "def middleware(ctx): ctx.tool_call.args = {**ctx.tool_call.args, 'command': 'pwd'}",
        "def middleware(ctx): ctx.tool_call = {'args': {**ctx.tool_call.args, 'command': 'pwd'}, 'id': 'other'}",
        "import msgspec\ndef middleware(ctx):\n"
        " ctx.tool_call = msgspec.structs.replace(ctx.tool_call, args={**ctx.tool_call.args, 'command': 'pwd'})",
    ],
)
def test_a_tool_call_may_be_changed_and_the_recorded_one_stays_as_it_was(chain: Chain, source: str) -> None:
    call = ToolCall("c1", "Bash", {"command": "ls", "opts": {"deep": [1]}})
    ctx = context.ToolStart(loop(), call)
    chain.fire(ctx, "beforeToolExecution", source)
    assert ctx.edits().tool_call == ToolCall("c1", "Bash", {"command": "pwd", "opts": {"deep": [1]}})
    assert call == CALL


def test_a_result_is_read_and_assigned_as_text_and_images_stay(chain: Chain) -> None:
    ctx = context.ToolEnd(loop(), CALL, RESULT)
    chain.fire(
        ctx, "afterToolExecution", "def middleware(ctx): ctx.result.content = ctx.result.content.replace('sk-1', '…')"
    )
    assert ctx.edits().result == ToolResult("c1", "Bash", (Text("key …\ntail"), Image("image/png", b"x")))


def test_a_result_may_be_assigned_as_blocks_and_called_an_error(chain: Chain) -> None:
    ctx = context.ToolEnd(loop(), CALL, RESULT)
    chain.fire(
        ctx,
        "afterToolExecution",
        "from ra.core.messages import Text\ndef middleware(ctx):\n"
        " ctx.result.content = [Text('a')]\n ctx.result.is_error = True",
    )
    assert ctx.edits().result == ToolResult("c1", "Bash", (Text("a"),), is_error=True)


def test_lone_surrogates_that_a_hook_puts_in_are_replaced(chain: Chain) -> None:
    ctx = context.ToolEnd(loop(), CALL, RESULT)
    chain.fire(ctx, "afterToolExecution", "def middleware(ctx): ctx.result.content = 'a\\udc80b'")
    result = ctx.edits().result
    assert result is not None
    assert msgspec.json.decode(msgspec.json.encode(result), type=ToolResult).content[0] == Text("a?b")


def test_a_response_may_get_another_text_and_keeps_its_calls(chain: Chain) -> None:
    ctx = context.ModelResponse(loop(), REPLY)
    chain.fire(ctx, "afterModelResponse", "def middleware(ctx): ctx.response.text = ctx.response.text.upper()")
    assert ctx.edits().response == Message("assistant", (Text("DONE"), CALL))


def test_sections_may_be_changed_when_the_context_is_built(chain: Chain) -> None:
    ctx = context.ContextBuild(loop(), [Section("s", "stable", "rules")])
    chain.fire(
        ctx,
        "onContextBuild",
        "from ra.core.model import Section\ndef on_context_build(ctx):\n"
        " ctx.sections.append(Section('n', 'volatile', ctx.sections[0].name))",
    )
    assert ctx.edits().sections == (Section("s", "stable", "rules"), Section("n", "volatile", "s"))


def test_compact_asks_for_a_compaction_and_may_be_awaited(chain: Chain) -> None:
    ctx = context.StreamChunk(loop(), TextDelta("x"))
    chain.fire(ctx, "onStreamChunk", "async def middleware(ctx):\n assert ctx.chunk.text == 'x'\n await ctx.compact()")
    assert ctx.edits().compact


def test_a_denied_call_carries_the_first_reason(chain: Chain) -> None:
    ctx = context.ToolStart(loop(), CALL)
    chain.fire(ctx, "beforeToolExecution", "def middleware(ctx):\n ctx.deny('first')\n ctx.deny('second')")
    assert ctx.edits().denied == "first"


# Stopping and failing


def test_stop_ends_the_run_after_the_chain_and_edits_are_still_there(chain: Chain) -> None:
    (chain.folder / "a.py").write_text("def middleware(ctx): ctx.stop('too large')")
    (chain.folder / "b.py").write_text("def middleware(ctx): ctx.result.content = 'clean'; ctx.stop('later')")
    ctx = context.ToolEnd(loop(), CALL, ToolResult("c1", "Bash", (Text("secret"),)))
    with pytest.raises(Stopped) as stopped:
        asyncio.run(chain.hooks("afterToolExecution", "a.py", "b.py").fire("afterToolExecution", ctx))
    assert str(stopped.value) == "Stopped by middleware: too large (a.py, afterToolExecution)"
    assert ctx.edits().result == ToolResult("c1", "Bash", (Text("clean"),))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def middleware(ctx):\n  raise ValueError('boom')", ":2: beforeToolExecution failed: ValueError: boom"),
        ("import time\ndef middleware(ctx):\n  time.sleep(120)", ":3: beforeToolExecution took longer than 0.3 s."),
        (
            "import asyncio\nasync def middleware(ctx):\n  await asyncio.sleep(120)",
            ":3: beforeToolExecution took longer",
        ),
        ("def middleware(ctx):\n  ctx.tool_call = 5", ":2: beforeToolExecution failed: TypeError"),
        ("def middleware(ctx):\n  ctx.loop.messages = 'x'", ":2: beforeToolExecution failed: TypeError"),
        ("def middleware(ctx):\n  return False", ":1: beforeToolExecution returned bool; a hook returns nothing"),
        ("def middleware(ctx):\n  ctx.deny('no')\n  yield", ":1: beforeToolExecution returned generator;"),
        ("async def middleware(ctx):\n  yield", ":1: beforeToolExecution returned async_generator;"),
    ],
)
def test_a_hook_that_raises_or_hangs_fails_closed_with_file_hook_and_line(chain: Chain, source: str, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(HookFailed) as failed:
        chain.fire(context.ToolStart(loop(), CALL), "beforeToolExecution", source, timeout_s=0.3)
    assert str(failed.value).startswith(f"{chain.folder}/h.py{said}")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "source",
    [
        "def middleware(ctx): ctx.loop.messages.append('text')",
        "def middleware(ctx): ctx.loop.messages.append({'role': 'nobody', 'content': 'x'})",
        "from ra.core.messages import say\ndef middleware(ctx): ctx.loop.messages.append(say('user', '\\ud800'))",
        "def middleware(ctx): ctx.loop.messages.append({'content': 'x'})",
    ],
)
def test_a_message_that_is_none_is_the_fault_of_the_hook_that_put_it_there(chain: Chain, source: str) -> None:
    with pytest.raises(HookFailed, match=r"h\.py: afterLoopIteration left an invalid value"):
        chain.fire(context.Context(loop()), "afterLoopIteration", source)


def test_deny_where_there_is_nothing_to_deny_is_a_failure_that_says_what_to_do(chain: Chain) -> None:
    with pytest.raises(HookFailed, match=r"deny\(\) belongs to beforeToolExecution; stop\(reason\) ends the run"):
        chain.fire(context.ModelCall(loop(), REQUEST), "beforeModelCall", "def middleware(ctx): ctx.deny('no')")


@pytest.mark.parametrize(
    ("hook", "ctx"),
    [
        ("onStreamChunk", context.StreamChunk(loop(), TextDelta("x"))),
        ("onError", context.RunError(loop(), ValueError("v"))),
    ],
)
def test_a_failing_stream_or_error_hook_is_a_warning_and_the_chain_goes_on(
    chain: Chain, hook: str, ctx: context.Context
) -> None:
    (chain.folder / "bad.py").write_text("def middleware(ctx): 1 / 0")
    (chain.folder / "good.py").write_text("def middleware(ctx): ctx.compact()")
    warnings = asyncio.run(chain.hooks(hook, "bad.py", "good.py").fire(hook, ctx))
    assert warnings == (f"{chain.folder}/bad.py:1: {hook} failed: ZeroDivisionError: division by zero",)
    assert ctx.edits().compact


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("none.py", "There is no file"),
        ("none.sh", "agent.middleware.beforeModelCall: there is no file"),
        ("empty.py", "has no function 'before_model_call' (or middleware)"),
        ("empty.py:other", "defines no 'other'"),
        ("plain.txt", "is not a hook: use a .py file, .sh,"),
        ({"shell": " "}, "agent.middleware.beforeModelCall: shell is empty"),
    ],
)
def test_what_cannot_be_a_hook_is_refused_before_the_run(chain: Chain, item: Any, said: str) -> None:
    (chain.folder / "empty.py").write_text("")
    (chain.folder / "plain.txt").write_text("")
    with pytest.raises(UserError) as refused:
        chain.hooks("beforeModelCall", item)
    assert said in str(refused.value)


# Edits beside each other

A, B, C, D, E = (say("user", word) for word in "ABCDE")


@pytest.mark.parametrize(
    ("edited", "now", "both"),
    [
        ([A, B, D], [A, B, C], [A, B, C, D]),  # a result was recorded while the hook ran
        ([A, B, D], [A, B], [A, B, D]),
        ([A, D], [A, B, C], [A, C, D]),  # the neighbour is gone
        ([A, B, D], [A, E], [A, E, D]),  # another hook changed what this one left alone
        ([D], [E, A, B], [E, D]),
        ([A, B, D], [A, B, D], [A, B, D]),  # both said the same
        ([A, A, B], [A, B, B], [A, A, B, B]),  # messages that say the same are counted
    ],
)
def test_an_edit_holds_beside_what_was_recorded_meanwhile(edited: Any, now: Any, both: Any) -> None:
    assert merge_edit(edited, [A, B], now) == tuple(both)


# Programs


def test_a_program_reads_the_ctx_as_json(chain: Chain) -> None:
    ctx = context.ToolEnd(loop(), CALL, ToolResult("c1", "Bash", (Text("out"),)))
    chain.shell(ctx, "afterToolExecution", "cat > seen.json")
    seen = msgspec.json.decode((chain.folder / "seen.json").read_bytes())
    assert seen == {
        "hook": "afterToolExecution",
        "loop": {
            "iteration": 3,
            "session": "s1",
            "model": "m",
            "cost": 0.5,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 20,
                "cache_read_tokens": 5,
                "cache_write_tokens": 6,
                "cost": 0.5,
            },
            "messages": [
                {"type": "message", "role": "user", "blocks": [{"type": "text", "text": "hello"}]},
                {"type": "message", "role": "assistant", "blocks": [{"type": "text", "text": "hi"}]},
            ],
        },
        "tool_call": {"type": "tool-call", "id": "c1", "name": "Bash", "args": CALL.args},
        "result": {"content": "out", "is_error": False, "blocks": [{"type": "text", "text": "out"}]},
    }


ALL = [
    ("beforeLoopBegin", lambda: context.LoopBegin(loop(), say("user", "x")), '{"message": "y"}'),
    ("onContextBuild", lambda: context.ContextBuild(loop(), REQUEST.sections), '{"sections": []}'),
    ("beforeModelCall", lambda: context.ModelCall(loop(), REQUEST), '{"request": {"max_output": 5}}'),
    ("onStreamChunk", lambda: context.StreamChunk(loop(), TextDelta("x")), "{}"),
    ("afterModelResponse", lambda: context.ModelResponse(loop(), REPLY), '{"response": {"text": "other"}}'),
    ("beforeToolExecution", lambda: context.ToolStart(loop(), CALL), '{"tool_call": {"args": {}}}'),
    ("afterToolExecution", lambda: context.ToolEnd(loop(), CALL, RESULT), '{"result": {"content": "x"}}'),
    ("afterLoopIteration", lambda: context.Context(loop()), '{"loop": {"messages": []}}'),
    ("afterLoopComplete", lambda: context.LoopComplete(loop(), REPLY), "{}"),
    ("beforeCompaction", lambda: context.CompactionStart(loop(), strategy="digest", reason="full", tokens=9), "{}"),
    ("afterCompaction", lambda: context.CompactionEnd(loop(), Checkpointed("digest", "full")), "{}"),
    ("onError", lambda: context.RunError(loop(), ValueError("v")), "{}"),
]


@pytest.mark.parametrize(("hook", "make", "change"), ALL, ids=[row[0] for row in ALL])
def test_a_program_can_serve_every_hook_change_its_values_and_stop(
    chain: Chain, hook: str, make: Any, change: str
) -> None:
    ctx = make()
    command = (
        f"""test "$RA_HOOK" = {hook} && test "$RA_SESSION" = s1 && cat > all.json && echo '{{"context": {change}}}'"""
    )
    assert chain.shell(ctx, hook, command) == ()
    assert (ctx.edits() == Edits(by=command)) == (change == "{}")
    assert set(msgspec.json.decode((chain.folder / "all.json").read_bytes())) >= {"hook", "loop"}


def test_what_a_program_reads_it_may_write_back_unchanged(chain: Chain) -> None:
    command = """printf '{"context": '; cat; printf '}'"""
    for hook, make, _ in ALL:
        ctx = make()
        assert chain.shell(ctx, hook, command) == ()
        assert ctx.edits() == Edits(by=command), hook


@pytest.mark.parametrize(
    ("reason", "denied"),
    [('"not on Fridays"', "not on Fridays"), ('""', "denied by echo"), ("true", "denied by echo")],
)
def test_a_program_may_deny_with_a_reason_or_without(chain: Chain, reason: str, denied: str) -> None:
    ctx = context.ToolStart(loop(), CALL)
    chain.shell(ctx, "beforeToolExecution", f"""echo '{{"deny": {reason}}}'""")
    assert (ctx.edits().denied or "").startswith(denied)


@pytest.mark.parametrize("no", ["null", "false"])
def test_a_program_that_says_no_to_denying_and_stopping_lets_pass(chain: Chain, no: str) -> None:
    ctx = context.ToolStart(loop(), CALL)
    command = f"""echo '{{"deny": {no}, "stop": {no}}}'"""
    assert chain.shell(ctx, "beforeToolExecution", command) == ()
    assert ctx.edits() == Edits(by=command)


@pytest.mark.parametrize(("reason", "told"), [('"enough"', "enough"), ('""', "no reason given")])
def test_a_program_may_stop_the_run(chain: Chain, reason: str, told: str) -> None:
    with pytest.raises(Stopped, match=f"Stopped by middleware: {told}"):
        chain.shell(context.Context(loop()), "afterLoopIteration", f"""echo '{{"stop": {reason}}}'""")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo oh no >&2; exit 3", "failed with exit 3: oh no"),
        ("exit 1", "failed with exit 1: nothing on stderr"),
        ("sleep 20", "took longer than 0.4 s"),
        ("echo ok", "its output is not a JSON object"),
        ("echo '[]'", "its output is not a JSON object"),
        ("""echo '{"denny": 1}'""", "unknown key 'denny'"),
        (
            """echo '{"context": {"tool": 1}}'""",
            "'tool' cannot be changed here; you can change loop.messages, ",
        ),
        ("""echo '{"context": {"loop": {"iteration": 0}}}'""", "'loop.iteration' cannot be changed here"),
        ("""echo '{"context": 3}'""", "failed: Expected `object`"),
        ("""echo '{"context": {"tool_call": {"args": 3}}}'""", "failed: Expected `object`"),
        ("head -c 20000000 /dev/zero", "wrote more than 16 MB"),
        ("yes '[' | head -c 1000000", "its output is not a JSON object"),
    ],
)
def test_a_program_that_fails_fails_closed(chain: Chain, command: str, said: str) -> None:
    ctx = context.ToolStart(loop(), CALL)
    with pytest.raises(HookFailed) as failed:
        chain.shell(ctx, "beforeToolExecution", command, timeout_s=0.4 if "sleep" in command else 10)
    assert said in str(failed.value)


def test_nothing_that_a_program_started_outlives_it(chain: Chain) -> None:
    with pytest.raises(HookFailed):
        chain.shell(context.Context(loop()), "afterLoopIteration", "(sleep 1; touch late) & sleep 20", timeout_s=0.5)
    escape = "setsid sh -c 'sleep 1; touch late' & sleep 20"  # a kill of the process group does not reach it
    with pytest.raises(HookFailed):
        chain.shell(context.Context(loop()), "afterLoopIteration", escape, timeout_s=0.5)
    time.sleep(1.2)
    assert not (chain.folder / "late").exists()


def test_what_a_program_says_on_stderr_is_a_warning(chain: Chain) -> None:
    warnings = chain.shell(context.Context(loop()), "afterLoopIteration", "echo 3 cents >&2")
    assert warnings == ("echo 3 cents >&2: 3 cents",)


def test_a_program_that_does_not_read_its_input_is_fine(chain: Chain) -> None:
    big = LoopView([say("user", "x" * 3_000_000)])
    assert chain.shell(context.Context(big), "afterLoopIteration", "true") == ()


def test_scripts_run_by_their_first_line_or_by_their_extension(chain: Chain) -> None:
    (chain.folder / "plain.sh").write_text("""echo '{"deny": "plain"}'""")
    own = chain.folder / "own.sh"
    own.write_text("""#!/bin/sh\necho '{"deny": "own"}'""")
    own.chmod(0o755)
    bare = chain.folder / "bare.sh"  # executable, but it does not say what runs it
    bare.write_text("""echo '{"deny": "bare"}'""")
    bare.chmod(0o755)
    (chain.folder / "p.pl").write_text("""print '{"deny": "perl"}'""")
    said = []
    for name in ("plain.sh", "own.sh", "bare.sh", "p.pl"):
        ctx = context.ToolStart(loop(), CALL)
        asyncio.run(chain.hooks("beforeToolExecution", name).fire("beforeToolExecution", ctx))
        said.append(ctx.edits().denied)
    assert said == ["plain", "own", "bare", "perl"]


def test_python_and_programs_run_in_list_order_and_see_each_others_changes(chain: Chain) -> None:
    (chain.folder / "a.py").write_text("def middleware(ctx): ctx.result.content += ' a'")
    (chain.folder / "b.sh").write_text(
        """grep -q '"content":"out a"' && echo '{"context": {"result": {"content": "out a b"}}}'"""
    )
    (chain.folder / "c.py").write_text("def middleware(ctx): ctx.result.content += ' c'")
    ctx = context.ToolEnd(loop(), CALL, ToolResult("c1", "Bash", (Text("out"),)))
    asyncio.run(chain.hooks("afterToolExecution", "a.py", "b.sh", "c.py").fire("afterToolExecution", ctx))
    assert ctx.edits().result == ToolResult("c1", "Bash", (Text("out a b c"),))
