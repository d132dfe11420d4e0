import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ra.context.tokens import Estimator
from ra.core.asking import Answer, Question
from ra.core.errors import ConfigError
from ra.core.events import Warned
from ra.core.facts import Entry, EntryRemoved, EntrySet, Spent
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.model import Usage
from ra.core.value import encode
from ra.tools.rules import parse_rule
from ra.tools.tool import Output, text_output
from ra.tools.toolbox import Done, Toolbox
from tests.tools.kit import Kit, words

SEVEN = ("Bash", "Edit", "Glob", "Grep", "LS", "Read", "Write")


async def nothing(text: str) -> str:
    return text


async def no_agent(task: str) -> Output:
    return text_output(f"did {task}", facts=(Spent("m", Usage(1, 2), purpose="agent"),))


def full(root: Path, entries: Sequence[Entry] = ()) -> Kit:
    return Kit(root, recall=nothing, entries=lambda: entries, agent=no_agent, fetch=nothing)


# What the model sees


def test_the_tool_block_is_small_sorted_and_always_the_same(tmp_path: Path) -> None:
    specs = full(tmp_path).box.specs
    assert [spec.name for spec in specs] == sorted([*SEVEN, "Agent", "Entry", "Recall", "WebFetch"])
    assert encode(specs) == encode(full(tmp_path / "..").box.specs)
    estimator = Estimator()
    assert estimator.tools(specs) <= 1800
    assert estimator.tools(spec for spec in specs if spec.name in SEVEN) <= 900


def test_tools_without_a_callable_are_not_there(tmp_path: Path) -> None:
    assert tuple(spec.name for spec in Kit(tmp_path).box.specs) == SEVEN


def test_a_schema_says_what_is_required_and_nothing_else(tmp_path: Path) -> None:
    (write,) = [spec for spec in Kit(tmp_path).box.specs if spec.name == "Write"]
    assert write.schema == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    }


def test_nothing_heavy_is_loaded_to_have_tools() -> None:
    heavy = ("tree_sitter", "pathspec", "pypdf", "regex", "difflib", "tempfile", "ctypes", "pydantic", "tiktoken")
    code = "import sys, asyncio; old = set(sys.modules); import ra.tools.toolbox; print(*set(sys.modules) - old)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in heavy if name in loaded] == []


# The model's mistakes


def test_mistakes_are_error_results_that_say_what_is_right(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    assert kit.error("Raed", path="x") == "There is no tool 'Raed'. Tools: Bash, Edit, Glob, Grep, LS, Read, Write."
    assert "Did you mean Read?" in kit.error("read", path="x")
    takes = "Read takes path (string, required), offset (integer), limit (integer)."
    assert kit.error("Read") == f"Wrong arguments for Read: Object missing required field `path`. {takes}"
    assert takes in kit.error("Read", path=["a"])
    assert takes in kit.error("Read", path="a", offset="many")
    assert takes in kit.error("Read", path="a", offset=0)
    assert "(unknown: file_path)" in kit.error("Read", file_path="a")


def test_broken_arguments_never_run(tmp_path: Path) -> None:
    box = Kit(tmp_path).box
    done = asyncio.run(box.run(ToolCall("1", "Write", {}, broken='{"path": "a", "con')))
    assert done.result.is_error
    assert "not a JSON object" in words(done)
    assert list(tmp_path.iterdir()) == []


def test_unknown_arguments_are_ignored_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    done = Kit(tmp_path).done("Read", path="a", encoding="utf-8", limit=None)
    assert done == Done(ToolResult("c1", "Read", (Text("x"), Text("(Ignored unknown arguments: encoding.)"))))


def test_numbers_in_quotes_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n")
    assert Kit(tmp_path).text("Read", path="a", offset="2", limit="1") == "2\n[lines 2-2 of 3; go on with offset 3]"


def test_an_error_of_the_operating_system_is_an_error_result(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert "a file stands where a folder" in Kit(tmp_path).error("Write", path="a/b", content="x")


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    async def hang(query: str) -> str:
        await asyncio.sleep(60)
        return ""

    assert "did not end within 0.05 s" in Kit(tmp_path, recall=hang, tool_timeout_s=0.05).error("Recall", query="x")


# Asking and refusing


def no_sandbox(root: Path, **settings: object) -> Kit:
    return Kit(root, sandbox="off", **settings)


def test_without_a_user_what_would_ask_is_refused_with_the_way_on(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path)
    assert "Refused: there is no sandbox" in kit.error("Bash", command="npm test")
    (warning,) = kit.events
    assert isinstance(warning, Warned)
    assert "--allow 'Bash(npm test)'" in warning.text
    assert "install bubblewrap" in warning.text


def test_a_warning_holds_nothing_raw(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path)
    kit.error("Bash", command="echo '\x1b]0;owned\x07'\nrm x")
    kit.error("Read", path="/etc/\x1b[31mx")
    assert len(kit.events) == 2
    for warning in kit.events:
        assert isinstance(warning, Warned)
        assert warning.text.isprintable()


def test_without_write_files_are_not_written(tmp_path: Path) -> None:
    kit = Kit(tmp_path, writes=False)
    assert "needs --write" in kit.error("Write", path="a", content="x")
    assert not (tmp_path / "a").exists()
    Kit(tmp_path, writes=False, rules=(parse_rule("Write", "allow"),)).text("Write", path="a", content="x")
    assert (tmp_path / "a").read_text() == "x"


def answers(verdict: str, edited: ToolCall | None = None) -> object:
    return lambda question: Answer(verdict, edited)


def test_a_user_is_shown_exactly_what_will_run(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path, ask=answers("once"))
    assert kit.text("Bash", command="echo hi") == "hi"
    call = kit.questions[0].call
    assert call.name == "Bash"
    assert kit.questions == [
        Question(call, "there is no sandbox to run it in", f"echo hi\n(outside the sandbox, in {tmp_path})")
    ]


def test_a_no_is_told_to_the_model(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path, ask=answers("no"))
    assert "The user said no" in kit.error("Bash", command="touch x")
    assert list(tmp_path.iterdir()) == []


def test_an_answer_for_the_session_is_asked_once(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path, ask=answers("session"))
    for _ in range(3):
        kit.text("Bash", command="for i in a; do echo $i; done | grep '*' || true")
    kit.text("Read", path=shutil.which("true") and "/etc/hosts")
    kit.text("Read", path="/etc/hosts")
    assert len(kit.questions) == 2


def test_an_answer_for_the_project_is_remembered(tmp_path: Path) -> None:
    kept: list[object] = []
    kit = no_sandbox(tmp_path, ask=answers("project"), remember=kept.append)
    kit.text("Bash", command="echo *.md")
    assert kept == [parse_rule("Bash(echo \\*.md)", "allow")]


def test_an_edited_call_runs_instead(tmp_path: Path) -> None:
    kit = no_sandbox(tmp_path, ask=answers("once", ToolCall("x", "Bash", {"command": "echo changed"})))
    assert kit.text("Bash", command="echo hi").splitlines()[0] == "changed"
    assert "The user changed the call" in kit.text("Bash", command="echo hi")


def test_an_edited_call_is_still_bound_by_deny(tmp_path: Path) -> None:
    edited = ToolCall("x", "Bash", {"command": "rm -rf x"})
    kit = no_sandbox(tmp_path, ask=answers("once", edited), rules=(parse_rule("Bash(rm:*)", "deny"),))
    assert "forbids it" in kit.error("Bash", command="echo hi")


def test_questions_come_one_at_a_time(tmp_path: Path) -> None:
    open_questions = 0

    async def ask(question: Question) -> Answer:
        nonlocal open_questions
        open_questions += 1
        assert open_questions == 1
        await asyncio.sleep(0.01)
        open_questions -= 1
        return Answer("once")

    async def main() -> list[Done]:
        box = Toolbox(root=str(tmp_path))
        calls = [ToolCall(str(n), "Read", {"path": "/etc/hosts"}) for n in range(3)]
        return await asyncio.gather(*(box.run(call, ask=ask) for call in calls))

    assert not any(done.result.is_error for done in asyncio.run(main()))


def test_what_only_reads_may_run_side_by_side(tmp_path: Path) -> None:
    box = full(tmp_path).box
    parallel = {spec.name for spec in box.specs if box.reads_only(ToolCall("1", spec.name, {}))}
    assert parallel == {"Read", "LS", "Glob", "Grep", "WebFetch", "Recall"}
    assert not box.reads_only(ToolCall("1", "Nonsense", {}))


# Bash and its box

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


@needs_bwrap
def test_in_the_box_nothing_asks(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    assert kit.text("Bash", command="$(echo x > made); cat made") == "x"
    assert kit.events == [] or not any(isinstance(event, Warned) for event in kit.events)


@needs_bwrap
def test_leaving_the_box_asks(tmp_path: Path) -> None:
    kit = Kit(tmp_path, ask=answers("once"))
    kit.text("Bash", command="true", outside=True)
    assert [question.reason for question in kit.questions] == ["it asks to leave the sandbox"]
    assert "leave the sandbox" in Kit(tmp_path).error("Bash", command="true", outside=True)


@needs_bwrap
def test_an_allow_rule_lets_a_command_out_and_a_deny_rule_holds_inside(tmp_path: Path) -> None:
    rules = (parse_rule("Bash(cat:*)", "allow"), parse_rule("Bash(rm:*)", "deny"))
    kit = Kit(tmp_path, rules=rules)
    assert kit.text("Bash", command="cat /proc/self/status").count("NoNewPrivs:\t0") == 1
    assert "forbids it" in kit.error("Bash", command="rm x")
    assert "forbids it" in kit.error("Bash", command="echo $(rm x)")


@needs_bwrap
def test_protected_paths_are_out_of_reach_of_a_boxed_command(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("rules")
    kit = Kit(tmp_path)
    kit.done("Bash", command="echo obey > AGENTS.md; mkdir .ra; echo x > CLAUDE.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["AGENTS.md"]
    assert (tmp_path / "AGENTS.md").read_text() == "rules"


# Callables


def test_recall_fetch_and_agent_come_from_outside(tmp_path: Path) -> None:
    kit = Kit(tmp_path, recall=nothing, agent=no_agent, fetch=nothing, rules=(parse_rule("WebFetch", "allow"),))
    assert kit.text("Recall", query="#12") == "#12"
    assert kit.text("WebFetch", url="https://example.com/") == "https://example.com/"
    assert "must begin with" in kit.error("WebFetch", url="file:///etc/passwd")
    assert kit.done("Agent", task="look") == Done(
        ToolResult("c1", "Agent", (Text("did look"),)), (Spent("m", Usage(1, 2), purpose="agent"),)
    )


def test_fetching_asks(tmp_path: Path) -> None:
    kit = full(tmp_path)
    assert "Refused" in kit.error("WebFetch", url="https://example.com/?q=secret")
    assert "--allow 'WebFetch(https://example.com/?q=secret)'" in str(kit.events[0])


def test_entries_are_facts(tmp_path: Path) -> None:
    kit = full(tmp_path, entries=(Entry("plan", "", "do it", 3),))
    assert kit.text("Entry", action="list") == "plan: do it"
    assert kit.done("Entry", action="set", id="a", content="b").facts == (EntrySet("a", "b"),)
    assert kit.done("Entry", action="remove", id="plan").facts == (EntryRemoved("plan"),)
    assert "There is no entry 'x'; entries: plan." in kit.error("Entry", action="remove", id="x")
    assert "needs an id" in kit.error("Entry", action="set", content="b")
    assert "Invalid enum value" in kit.error("Entry", action="keep")


# Settings


def test_a_tool_can_be_turned_off_or_held_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a").write_text("doc")
    (tmp_path / "b").write_text("b")
    kit = Kit(tmp_path, settings={"Bash": {"enabled": False}, "Read": {"rootDir": "docs"}, "LS": False})
    assert [spec.name for spec in kit.box.specs] == ["Edit", "Glob", "Grep", "Read", "Write"]
    assert kit.text("Read", path="a") == "doc"
    assert kit.text("Read", path=str(tmp_path / "docs/a")) == "doc"
    assert "outside the folder that Read is held to" in kit.error("Read", path="../b")
    assert "There is no tool 'Bash'" in kit.error("Bash", command="true")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"Bsh": {}}, "agent.tools.Bsh: there is no such tool; did you mean Bash?"),
        ({"zzz": {}}, "agent.tools.zzz: there is no such tool; tools: Agent, Bash"),
        ({"Bash": {"enable": True}}, "agent.tools.Bash: Object contains unknown field `enable`"),
        ({"Bash": {"enabled": "no"}}, "agent.tools.Bash: Expected `bool`, got `str`"),
        ({"Bash": {"rootDir": "src"}}, "agent.tools.Bash.rootDir: only Read, Write"),
        ({"Read": {"rootDir": "../x"}}, "lies outside the project"),
        ({"Read": {"rootDir": "nowhere"}}, "is not a folder"),
        ({"Read": {"env": ["X"]}}, "only Bash and scripts of your own pass an environment on"),
        ({"Read": 5}, "agent.tools.Read: Expected `object`, got `int`"),
    ],
)
def test_wrong_settings_are_refused_with_what_is_right(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Kit(tmp_path, settings=settings)
    assert words in str(caught.value)


def test_names_of_the_environment_can_be_passed_on(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "MY_TOKEN": "t"}
    kit = no_sandbox(tmp_path, env=env, settings={"Bash": {"env": ["MY_TOKEN"]}}, ask=answers("once"))
    assert kit.text("Bash", command="echo $MY_TOKEN") == "t"
