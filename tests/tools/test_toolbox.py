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
from ra.core.errors import ConfigError, Stopped, StoreError, UsageError
from ra.core.events import Warned
from ra.core.facts import Entry, EntryRemoved, EntrySet, Spent
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.model import Usage
from ra.core.value import encode
from ra.tools.functions import function_tool
from ra.tools.policy.rules import Rule, parse_rule
from ra.tools.tool import Output, text_output
from ra.tools.toolbox import Done
from tests.tools.kit import Kit, toolbox, words

NINE = ("Bash", "Edit", "Glob", "Grep", "Job", "LS", "Read", "WebFetch", "Write")


class Talk:
    """A session that answers for its tools."""

    def __init__(self, entries: Sequence[Entry] = (), *, recall_s: float = 0, defect: Exception | None = None) -> None:
        self._entries = entries
        self._defect = defect
        self._recall_s = recall_s

    def entries(self) -> Sequence[Entry]:
        return self._entries

    async def recall(self, query: str) -> str:
        await asyncio.sleep(self._recall_s)
        if self._defect:
            raise self._defect
        return query

    async def run_agent(self, task: str) -> Output:
        return text_output(f"did {task}", facts=(Spent("m", Usage(1, 2), purpose="agent"),))


class Keeper:
    """What the user wanted kept."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def remember(self, rule: Rule) -> None:
        self.rules.append(rule)


def full(root: Path, entries: Sequence[Entry] = ()) -> Kit:
    return Kit(root, session=Talk(entries))


# What the model sees


def test_the_tool_block_is_small_sorted_and_always_the_same(tmp_path: Path) -> None:
    specs = full(tmp_path).box.specs
    assert [spec.name for spec in specs] == sorted([*NINE, "Agent", "Entry", "Recall"])
    assert encode(specs) == encode(full(tmp_path / "..").box.specs)
    estimator = Estimator()
    assert estimator.tools(specs) <= 1800
    assert estimator.tools(spec for spec in specs if spec.name in NINE) <= 1000


def test_tools_of_a_session_are_not_there_without_one(tmp_path: Path) -> None:
    assert tuple(spec.name for spec in Kit(tmp_path).box.specs) == NINE
    nested = Kit(tmp_path, session=Talk(), agents=False)
    assert tuple(spec.name for spec in nested.box.specs) == tuple(sorted([*NINE, "Entry", "Recall"]))


def test_where_tools_are_off_none_is_offered_and_none_runs(tmp_path: Path) -> None:
    kit = Kit(tmp_path, session=Talk(), offered=False)
    assert kit.box.specs == ()
    assert "There is no tool 'Read'" in kit.error("Read", path="x")
    brought = function_tool(greet)
    assert kit.box.offering([brought]).specs == ()


def greet(name: str) -> str:
    """Greet."""
    return f"hello {name}"


def test_offering_other_tools_leaves_the_toolbox_as_it_is(tmp_path: Path) -> None:
    kit = Kit(tmp_path, session=Talk(), sandbox="off", ask=answers("session"))
    usual = kit.box
    read, write = (tool for tool in usual.tools if tool.name in ("Read", "Write"))
    other = usual.offering([write, function_tool(greet), read])
    assert [spec.name for spec in other.specs] == ["Read", "Write", "greet"]
    assert len(usual.specs) == 12
    kit.box = other
    assert kit.text("greet", name="you") == "hello you"
    assert kit.text("Write", path="a", content="x")
    kit.text("Read", path="/etc/hosts")
    assert "There is no tool 'Bash'" in kit.error("Bash", command="true")
    kit.box = usual
    assert "There is no tool 'greet'" in kit.error("greet", name="you")
    kit.text("Read", path="/etc/hosts")  # allowed for the session, whichever toolbox asked
    assert len(kit.questions) == 1
    assert usual.undo.restore_last() == [f"removed {tmp_path / 'a'}"]


def test_a_brought_tool_cannot_stand_in_for_another(tmp_path: Path) -> None:
    def Read(path: str) -> str:
        """Read."""
        return path

    box = Kit(tmp_path).box
    with pytest.raises(UsageError, match="The name Read is taken"):
        box.offering([function_tool(Read)])
    with pytest.raises(UsageError, match="The name greet is taken"):
        box.offering([function_tool(greet), function_tool(greet)])


def test_a_toolbox_goes_on_with_what_another_was_allowed(tmp_path: Path) -> None:
    old = Kit(tmp_path, sandbox="off", ask=answers("session"))
    old.text("Read", path="/etc/hosts")
    old.text("Write", path="a", content="x")
    new = Kit(tmp_path, sandbox="off")
    new.box.take_over(old.box)
    new.text("Read", path="/etc/hosts")
    assert new.box.undo.restore_last() == [f"removed {tmp_path / 'a'}"]


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
    assert kit.error("Raed", path="x") == "There is no tool 'Raed'. Tools: " + ", ".join(NINE) + "."
    assert "Did you mean Read?" in kit.error("read", path="x")
    takes = "Read takes path (string, required), offset (integer), limit (integer)."
    assert kit.error("Read") == f"Wrong arguments for Read: Object missing required field `path`. {takes}"
    assert takes in kit.error("Read", path=["a"])
    assert takes in kit.error("Read", path="a", offset="many")
    assert takes in kit.error("Read", path="a", offset=-1)
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


def test_a_model_may_fill_in_every_argument(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    kit = no_sandbox(tmp_path, rules=(parse_rule("Bash", "allow"),))
    assert kit.text("Bash", command="echo hi", timeout=0, background=False, outside=False) == "hi"
    assert kit.text("Bash", command="echo hi", timeout="", background="", outside="") == "hi"
    assert kit.text("Read", path="a", offset=0, limit=0) == "1\n2\n"
    blank = {"old_string": "", "new_string": "", "replace_all": False}
    assert "Edited a" in kit.text("Edit", path="a", old_string="1", new_string="3", replace_all=False, edits=[blank])
    assert kit.text("Glob", pattern="a", path="") == "a"
    assert kit.text("Grep", pattern="3", path="", glob="", ignore_case=False, context=0, files_only=False) == "a:1:3"


def test_a_command_is_required(tmp_path: Path) -> None:
    (bash,) = (spec for spec in Kit(tmp_path).box.specs if spec.name == "Bash")
    assert bash.schema["required"] == ["command"]
    assert "job" not in bash.schema["properties"]


def test_without_bash_there_are_no_jobs(tmp_path: Path) -> None:
    names = [spec.name for spec in Kit(tmp_path, settings={"Bash": False}).box.specs]
    assert "Job" not in names
    assert "Job" not in [spec.name for spec in Kit(tmp_path, settings={"Job": False}).box.specs]


@pytest.mark.parametrize(
    ("defect", "words_of_it"),
    [
        (KeyError("gone"), "Recall failed unexpectedly: KeyError: 'gone'"),
        (RecursionError("deep"), "Recall failed unexpectedly: RecursionError: deep"),
        (MemoryError(), "Recall ran out of memory. Ask for less at a time."),
        (StoreError("The disk cannot be read."), "Recall failed: The disk cannot be read."),
    ],
)
def test_a_defect_of_a_tool_is_an_error_result(tmp_path: Path, defect: Exception, words_of_it: str) -> None:
    kit = Kit(tmp_path, session=Talk(defect=defect))
    assert words_of_it in kit.error("Recall", query="x")


def test_what_is_about_the_run_is_no_result(tmp_path: Path) -> None:
    kit = Kit(tmp_path, session=Talk(defect=Stopped("The budget is spent.")))
    with pytest.raises(Stopped):
        kit.done("Recall", query="x")


def test_an_error_of_the_operating_system_is_an_error_result(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert "a file is where a folder" in Kit(tmp_path).error("Write", path="a/b", content="x")


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    kit = Kit(tmp_path, session=Talk(recall_s=60), timeout_s=0.05)
    assert "did not end within 0.05 s" in kit.error("Recall", query="x")


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
    kit = Kit(tmp_path, edits="off")
    assert "edits are off" in kit.error("Write", path="a", content="x")
    assert not (tmp_path / "a").exists()
    Kit(tmp_path, edits="off", rules=(parse_rule("Write", "allow"),)).text("Write", path="a", content="x")
    assert (tmp_path / "a").read_text() == "x"


def test_one_answer_allows_the_edits_of_the_rest_of_the_session(tmp_path: Path) -> None:
    kit = Kit(tmp_path, edits="ask", ask=answers("session"))
    kit.text("Write", path="a", content="x\n")
    kit.text("Edit", path="a", old_string="x", new_string="y")
    assert [question.reason for question in kit.questions] == ["edits are set to ask"]
    assert kit.box.edits == "auto"
    (tmp_path / "AGENTS.md").write_text("rules\n")
    kit.text("Write", path="AGENTS.md", content="x\n")
    assert len(kit.questions) == 2  # what is protected asks all the same
    kit.box.set_edits("off")
    assert "edits are off" in kit.error("Write", path="b", content="x")


def test_edits_off_by_the_users_word_is_stronger_than_rules_and_holds_for_commands(tmp_path: Path) -> None:
    kit = Kit(tmp_path, edits="off", read_only=True, rules=(parse_rule("Write", "allow"), parse_rule("Bash", "allow")))
    assert "edits are off" in kit.error("Write", path="a", content="x")
    assert "Read-only file system" in kit.error("Bash", command="echo x > a")
    assert "edits are off" in kit.error("Bash", command="git commit -m x")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="started with edits off"):
        kit.box.set_edits("auto")
    assert kit.box.edits == "off"


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
        kit.text("Bash", command="echo a | grep '*' || true")
    kit.text("Read", path=shutil.which("true") and "/etc/hosts")
    kit.text("Read", path="/etc/hosts")
    assert len(kit.questions) == 2


def test_an_answer_for_the_project_is_remembered(tmp_path: Path) -> None:
    keeper = Keeper()
    kit = no_sandbox(tmp_path, ask=answers("project"), keeper=keeper)
    kit.text("Bash", command="echo '*.md'")
    assert keeper.rules == [parse_rule("Bash(echo '\\*.md')", "allow")]


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
        box = toolbox(tmp_path)
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
def test_an_allow_rule_opens_the_network_in_the_box_and_a_deny_rule_holds_inside(tmp_path: Path) -> None:
    rules = (parse_rule("Bash(cat:*)", "allow"), parse_rule("Bash(rm:*)", "deny"))
    kit = Kit(tmp_path, rules=rules)
    assert kit.text("Bash", command="cat /proc/self/status").count("NoNewPrivs:\t1") == 1
    host = {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    inside = {line.split(":")[0].strip() for line in kit.text("Bash", command="cat /proc/net/dev").splitlines()[2:]}
    without = kit.text("Bash", command="cat /proc/net/de[v]").splitlines()[2:]
    assert (inside, {line.split(":")[0].strip() for line in without}) == (host, {"lo"})
    out = Kit(tmp_path, rules=(parse_rule("Bash(cat /proc/self/status)", "allow", outside=True),))
    assert out.text("Bash", command="cat /proc/self/status").count("NoNewPrivs:\t0") == 1
    assert "forbids it" in kit.error("Bash", command="rm x")
    assert "forbids it" in kit.error("Bash", command="echo $(rm x)")


@needs_bwrap
def test_protected_paths_are_out_of_reach_of_a_boxed_command(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("rules")
    kit = Kit(tmp_path)
    kit.done("Bash", command="echo obey > AGENTS.md; mkdir .ra; echo x > CLAUDE.md")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".ra.set-aside", "AGENTS.md", "CLAUDE.md.set-aside"]
    assert (tmp_path / "AGENTS.md").read_text() == "rules"


@needs_bwrap
def test_git_commands_that_write_cost_one_question(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    env = {"PATH": os.environ["PATH"], **dict.fromkeys(names, "a")}
    settings = {"Bash": {"env": list(env)}}
    refused = Kit(tmp_path, env=env, settings=settings)
    assert "git would write to the repository" in refused.error("Bash", command="git add .")
    assert "--allow 'Bash(@git)'" in str(refused.events)
    refused.text("Bash", command="git status; git branch; git stash list")
    kit = Kit(tmp_path, env=env, settings=settings, ask=answers("session"))
    kit.text("Bash", command="echo x > a; git add a")
    kit.text("Bash", command='git commit -qm "$(echo message)"')
    assert kit.text("Bash", command="git log --oneline --format=%s") == "message"
    assert len(kit.questions) == 1
    rules = (parse_rule("Bash(git commit:*)", "allow"),)
    ruled = Kit(tmp_path, env=env, settings=settings, rules=rules)
    ruled.text("Bash", command="git commit -q --allow-empty -m two")
    assert "git would write" in ruled.error("Bash", command="git reset --hard")


# The session's tools


def test_recall_and_agent_ask_the_session(tmp_path: Path) -> None:
    kit = Kit(tmp_path, session=Talk(), rules=(parse_rule("WebFetch", "allow"),))
    assert kit.text("Recall", query="#12") == "#12"
    assert "WebFetch failed: " in kit.error("WebFetch", url="http://127.0.0.1:9/")
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
    assert [spec.name for spec in kit.box.specs] == ["Edit", "Glob", "Grep", "Read", "WebFetch", "Write"]
    assert kit.text("Read", path="a") == "doc"
    assert kit.text("Read", path=str(tmp_path / "docs/a")) == "doc"
    assert "outside the folder that Read is limited to" in kit.error("Read", path="../b")
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
        ({"Read": {"env": ["X"]}}, "only Bash and your own scripts take environment variables"),
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
