"""The verbs of a session do the same whoever uses them: hooks fire, and what is shown is what is sent."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ra.core.events import RunEnded
from ra.core.facts import Checkpointed
from ra.core.messages import say
from ra.providers.script import Step
from ra.testing import LoopbackServer, session
from tests.cli.conftest import Shell

LONG = "All work and no play. " * 300

HOOKS = """
from pathlib import Path

from ra.core.model import Section

LOG = Path(__file__).with_name("log")

def before_compaction(ctx):
    with LOG.open("a") as file: file.write(f"before {ctx.strategy} {ctx.reason}\\n")

def after_compaction(ctx):
    with LOG.open("a") as file: file.write("after\\n")

def before_model_call(ctx):
    ctx.request.sections.append(Section("tone", "pinned", "Speak like a pirate. " * 60))
"""


def hooked(shell: Shell, *, model_call: bool = False) -> Path:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True)
    (folder / "hooks.py").write_text(HOOKS)
    lines = ["beforeCompaction: ['./hooks.py:before_compaction']", "afterCompaction: ['./hooks.py:after_compaction']"]
    if model_call:
        lines = ["beforeModelCall: ['./hooks.py:before_model_call']"]
    (folder / "ra.yaml").write_text("agent:\n  middleware:\n" + "".join(f"    {line}\n" for line in lines))
    return folder / "log"


def talked(shell: Shell, *flags: str, prompts: int = 5) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text=LONG)) as server:
        shell.serve(server)
        shell.ra(*flags, "question 0")
        for number in range(1, prompts):
            shell.ra(*flags, "-c", f"question {number}")


def without_key(shell: Shell) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        shell.env.pop(name, None)


@pytest.mark.parametrize("strategy", ["digest", "truncate"])
def test_compact_needs_no_key_where_no_model_is_asked_and_fires_the_hooks(shell: Shell, strategy: str) -> None:
    log = hooked(shell)
    flags = ("--compaction", strategy, "--set", "agent.compaction.contextWindow=20000")
    talked(shell, *flags)
    without_key(shell)
    done = shell.ra(*flags, "compact")
    assert (done.returncode, b"Compacted" in done.stderr) == (0, True), done.stderr
    assert log.read_text() == f"before {strategy} asked\nafter\n"


def test_a_dry_run_and_context_show_hold_what_a_hook_adds(shell: Shell) -> None:
    hooked(shell, model_call=True)
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        plain = shell.json("--dry-run", "--set", "agent.middleware.beforeModelCall=[]", "hi")
        shown = shell.json("--dry-run", "hi")
        assert shown["exit"] == 0, shown["error"]
        assert shown["total"] > plain["total"] + 200
        shell.ra("hi")
        sent = json.dumps(server.bodies[0]["system"])
        body = json.loads(shell.ra("context", "show").stdout)
    assert sent.count("pirate") == 60
    assert json.dumps(body["system"]).count("pirate") == 60


def test_context_of_an_imported_session_follows_the_model_flag(shell: Shell) -> None:
    talk = shell.project / "talk.jsonl"
    lines = [{"role": "user", "content": "Where is order 4711?"}, {"role": "assistant", "content": "In the cellar."}]
    talk.write_text("\n".join(map(json.dumps, lines)))
    imported = shell.ra("sessions", "import", "talk.jsonl").stdout.decode().split("\t")[0]
    done = shell.ra("-m", "claude-sonnet-4-6", "--provider", "anthropic", "context", "--session", imported, "--json")
    told = json.loads(done.stdout)
    assert (told["model"], told["window"] is not None, told["cost"] is not None) == ("claude-sonnet-4-6", True, True)


def test_a_position_before_the_first_request_shows_the_first_request(shell: Shell) -> None:
    talked(shell, prompts=2)
    early, first = (json.loads(shell.ra("context", "--at", at, "--json").stdout) for at in ("1", "3"))
    assert early == first
    assert early["model"]
    assert early["sections"][0]["role"] == "system"


def test_a_preview_sends_and_records_nothing_and_is_what_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        with LoopbackServer("anthropic", [Step(text="Hello.")]) as server:
            talk = session(tmp_path, server)
            preview = await talk.preview(say("user", "Hi"))
            assert (server.requests, list(talk.events())) == ([], [])
            events = [event async for event in talk.prompt(say("user", "Hi"))]
            assert preview.body() == server.bodies[0]
            await talk.close()
        assert isinstance(events[-1], RunEnded)

    asyncio.run(main())


def test_compact_and_recall_and_pins_are_verbs(tmp_path: Path) -> None:
    async def main() -> None:
        with LoopbackServer("anthropic", lambda body: Step(text=LONG)) as server:
            talk = session(tmp_path, server, compaction__strategy="digest", compaction__contextWindow=20_000)
            for number in range(5):
                async for _ in talk.prompt(say("user", f"question {number}")):
                    pass
            assert talk.pin("tone", "Answer briefly.")
            assert not talk.pin("tone", "Answer briefly.")
            plan = talk.preview_compaction()
            checkpoint = await talk.compact()
            assert isinstance(checkpoint, Checkpointed)
            assert checkpoint.after < checkpoint.before == plan.before
            assert "question 1" in await talk.recall("question 1")
            assert [entry.content for entry in talk.entries()] == ["Answer briefly."]
            assert talk.unpin("tone")
            assert not talk.unpin("tone")
            copy = talk.fork()
            assert [event.fact for event in copy.events()] == [event.fact for event in talk.events()]
            await copy.close()
            await talk.close()

    asyncio.run(main())


def test_a_compaction_may_use_another_strategy_once(tmp_path: Path) -> None:
    async def main() -> None:
        with LoopbackServer("anthropic", lambda body: Step(text=LONG)) as server:
            talk = session(tmp_path, server, compaction__contextWindow=20_000)
            for number in range(5):
                async for _ in talk.prompt(say("user", f"question {number}")):
                    pass
            plans = [talk.preview_compaction(strategy) for strategy in (None, "digest")]
            checkpoint = await talk.compact(strategy="digest")
            assert checkpoint is not None
            assert [plan.strategy for plan in plans] == ["truncate", "digest"]
            assert (checkpoint.strategy, checkpoint.after) == ("digest", plans[1].after)
            assert talk.recipe.compaction.strategy == "truncate"
            await talk.close()

    asyncio.run(main())


def test_another_recipe_answers_the_next_prompt(tmp_path: Path) -> None:
    async def main() -> None:
        with LoopbackServer("anthropic", lambda body: Step(text="Yes.")) as server:
            talk = session(tmp_path, server)
            async for _ in talk.prompt(say("user", "one")):
                pass
            info = talk.services.providers.info("anthropic", "claude-haiku-4-5")
            await talk.use(replace(talk.recipe, model="claude-haiku-4-5", info=info))
            async for _ in talk.prompt(say("user", "two")):
                pass
            await talk.close()
        assert [body["model"] for body in server.bodies] == ["claude-sonnet-4-6", "claude-haiku-4-5"]

    asyncio.run(main())
