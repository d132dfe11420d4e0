"""Each command: what it does, what it says to a wrong argument, and that it is in the help."""

import json
import re

import pytest

from ra.cli.repl.commands import TABLE
from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.cli.repl.conftest import Model, Start
from tests.cli.repl.pty_terminal import PtyTerminal
from tests.pages import ROOT

SPEC = (
    "help context omit keep rewind compact recall said pin entries forget drop undo model thinking edits strategy cost "
    "sessions resume fork clear attach tools permissions config quit"
)


def test_every_command_of_the_specification_is_in_the_table_with_help() -> None:
    assert [command.name for command in TABLE] == SPEC.split()
    assert all(command.help for command in TABLE)


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/repl.md").read_text()
    assert [command.usage for command in TABLE if f"`{command.usage}`" not in page.replace("\\|", "|")] == []


def test_help_shows_every_command(start: Start) -> None:
    terminal = start(rows=50)
    terminal.enter("/help")
    terminal.wait("!command")
    shown = terminal.everything
    assert [name for name in SPEC.split() if f"\n/{name}" not in shown] == []


WRONG = {
    "/nosuch": "There is no command /nosuch; /help lists them.",
    "/contxt": "There is no command /contxt; did you mean /context?",
    "/help nosuch": "There is no command /nosuch; /help lists them.",
    "/context some": "/context takes all, diff or messages, not 'some'.",
    "/context diff": "A difference needs two model calls",
    "/omit": "Write /omit #N: hide one message or result from the model",
    "/omit 3": "Nothing was said yet; ask something first.",
    "/keep": "Write /keep #N: bring it back, and keep it through compactions",
    "/rewind 3": "Nothing was asked yet.",
    "/edits some": "/edits takes ask, auto, off, not 'some'.",
    "/compact": "There is nothing to compact yet; ask something first.",
    "/recall": "Write /recall QUERY|REF: search or read back anything that was said.",
    "/pin": "Write /pin TEXT: keep a text in every request, across compactions and restarts.",
    "/entries x": "/entries takes no argument:",
    "/forget nothing": "There is no entry 'nothing'; pinned: none.",
    "/drop @nothing": "Nothing is attached as 'nothing'; /drop lists what is.",
    "/undo x": "/undo takes no argument:",
    "/model a b c": "Write /model NAME, /model PROVIDER/NAME, or /model alone for a list.",
    "/said x": "/said takes no argument:",
    "/thinking hard": "/thinking takes off, low, medium, high, adaptive, not 'hard'.",
    "/strategy best": "/strategy takes timeline, layered, planner or a Python file, not 'best'.",
    "/cost week": "/cost takes session, model, source, tool, day, not 'week'.",
    "/sessions x": "/sessions takes no argument:",
    "/resume zzz": "There is no session 'zzz'.",
    "/fork": "There is nothing stored to copy yet; ask something first.",
    "/attach nothing.txt": "nothing.txt: file not found.",
    "/tools 7": "No tool was called for the last prompt.",
    "/permissions x": "/permissions takes no argument:",
    "/config x": "/config takes no argument:",
    "/clear x": "/clear takes no argument:",
    "/quit x": "/quit takes no argument:",
    "!": "Write a command after the exclamation mark",
}


def test_every_command_answers_a_wrong_argument_with_one_line(start: Start, model: Model) -> None:
    assert {line.split()[0].removeprefix("/") for line in WRONG} >= set(SPEC.split())
    terminal = start(columns=140, rows=120)
    for typed, told in WRONG.items():
        known = terminal.everything.count(told)  # two of them are answered alike
        terminal.enter(typed)
        terminal.wait(lambda told=told, known=known: terminal.everything.count(told) > known)
    blocks = re.split(r"\n› ", terminal.text.partition("\n\n›\n")[0])[1:]
    assert [block.strip().count("\n") for block in blocks] == [1] * len(WRONG)
    assert model.bodies == []


def test_a_path_at_the_beginning_of_a_prompt_is_no_command(start: Start, model: Model) -> None:
    terminal = start()
    terminal.enter("/etc/hosts is what?")
    terminal.wait("Hello, world.")
    assert model.said().startswith("/etc/hosts is what?")


def test_context_shows_the_window_by_source_before_and_after_the_first_call(start: Start, model: Model) -> None:
    terminal = start(rows=60)
    terminal.enter("/context")
    terminal.wait("claude-sonnet-5-5: ")
    assert re.search(r"█ +tools +[\d,]+ +[\d.]+% +new +–", terminal.text)
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    terminal.enter("/context")
    terminal.wait(lambda: terminal.text.count("of 1,000,000") == 2)
    assert re.search(r"█ +tools +[\d,]+ +[\d.]+% +cached +\$[\d.]+", terminal.text)
    assert re.search(r"conversation +\d+ ", terminal.text)
    terminal.enter("/context all")
    terminal.wait("volatile")
    assert len(model.bodies) == 1


def test_context_diff_names_what_broke_the_prefix(start: Start, model: Model) -> None:
    terminal = start(rows=60)
    for number in range(2):
        terminal.enter(f"hello {number}")
        terminal.wait(lambda number=number: len(model.bodies) == number + 1)
        terminal.wait(lambda number=number: terminal.text.count("Hello, world.") == number + 1)
    terminal.enter("/context diff")
    terminal.wait("The last request extends the one before byte for byte")


def long_talk(terminal: PtyTerminal, model: Model, turns: int = 6) -> None:
    model.answer = lambda body: Step(text=f"Answer {len(body['messages'])}. " + "All work and no play. " * 400)
    for number in range(turns):
        terminal.enter(f"question {number}")
        terminal.wait(lambda number=number: len(model.bodies) == number + 1)
        terminal.wait(lambda: "waiting" not in terminal.text and terminal.text.count("turn") == 1)


def test_compact_previews_asks_and_compacts(start: Start, model: Model) -> None:
    terminal = start("--set", "agent.compaction.contextWindow=30000", rows=60)
    long_talk(terminal, model)
    terminal.enter("/compact the plan")
    terminal.wait("Compact?  n no · y yes (truncate) · d digest · s summarize")
    assert re.search(r"digest +[\d,]+ +\$[\d.]+ +\$[\d.]+ +call \d+", terminal.text)
    assert re.search(r"summarize +[\d,]+ +\$[\d.]+ +\$[\d.]+ \+ a call", terminal.text)
    assert re.search(r"truncate: \d+ messages \(#[\d-]+\) would be hidden, [\d,]+ → [\d,]+ tokens", terminal.text)
    assert re.search(r"the rewrite costs \$[\d.]+ once; you save from call \d+ on", terminal.text)
    terminal.look(0.2)
    terminal.type("y")
    terminal.wait("Compacted (truncate)")
    left = re.search(r"Compacted \(truncate\): [\d,]+ → ([\d,]+) tokens", terminal.text)
    assert left
    terminal.wait(f" {int(left[1].replace(',', '')) / 30_000:.0%} of 30k")
    terminal.enter("go on")
    terminal.wait(lambda: len(model.bodies) == 7)
    assert "question 0" in model.said()
    assert len(model.said()) < len(model.said(-2))
    terminal.enter("/recall question 2")
    terminal.wait(lambda: re.search(r"#\d+: .*question", terminal.everything) is not None)


def test_pin_entries_and_forget(start: Start, model: Model) -> None:
    terminal = start()
    terminal.enter("/pin the port is 8080")
    terminal.wait("Pinned as pin-1")
    terminal.enter("/entries")
    terminal.wait("pin-1   #1   the port is 8080")
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    assert "the port is 8080" in model.said()
    terminal.enter("/forget pin-1")
    terminal.wait("Forgotten: pin-1.")
    terminal.enter("again")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert "the port is 8080" not in model.said()


def test_attach_and_drop(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "notes.txt").write_text("remember the milk\n")
    terminal = start(rows=50)
    terminal.enter("/attach notes.txt")
    terminal.wait("notes.txt will be sent with your next prompt.")
    terminal.enter("what?")
    terminal.wait("Hello, world.")
    assert "remember the milk" in model.said()
    terminal.enter("/drop")
    terminal.wait("@notes.txt  #1")
    terminal.enter("/drop @notes.txt")
    terminal.wait("Dropped notes.txt")
    terminal.enter("and now?")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert "remember the milk" not in model.said()
    assert "what?" in model.said()
    terminal.enter("/recall #1")
    terminal.wait("remember the milk")


def test_model_thinking_and_strategy_change_the_next_request(start: Start, model: Model) -> None:
    terminal = start(rows=50, columns=120)
    terminal.enter("one")
    terminal.wait("Hello, world.")
    terminal.enter("/model claude-haiku-4-5")
    terminal.wait("claude-haiku-4-5 (anthropic) answers from now on")
    terminal.enter("/thinking low")
    terminal.wait("Thinking: low.")
    terminal.enter("two")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert model.bodies[1]["model"] == "claude-haiku-4-5"
    assert model.bodies[1]["thinking"]["budget_tokens"] == 1024
    assert "one" in model.said()
    terminal.enter("/strategy layered")
    terminal.wait("Strategy: layered.")
    terminal.wait("claude-haiku-4-5 · layered")


def test_after_a_change_of_model_the_context_and_the_status_line_are_those_of_the_new_one(
    start: Start, model: Model
) -> None:
    terminal = start(rows=50, columns=120)
    terminal.enter("one")
    terminal.wait("Hello, world.")
    terminal.wait("· warm ")
    terminal.enter("/model claude-haiku-4-5")
    terminal.wait("· cold")
    terminal.enter("/context")
    terminal.wait(lambda: re.search(r"claude-haiku-4-5: [\d,]+ tokens of 200,000 \(\d+%\), cache cold", terminal.text))
    assert re.search(r"█ +tools +[\d,]+ +[\d.]+% +new ", terminal.text)
    assert len(model.bodies) == 1


def test_a_model_that_nobody_knows_is_said_to_be_unknown_and_tried(start: Start, model: Model) -> None:
    terminal = start(rows=50, columns=120)
    terminal.enter("/model qqq")
    terminal.wait("qqq is not in the catalog: its window is unknown.")
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    assert model.bodies[-1]["model"] == "qqq"


def test_looking_at_the_context_of_a_planner_asks_no_model(start: Start, model: Model) -> None:
    terminal = start("--context-strategy", "planner", rows=50)
    terminal.enter("/context")
    terminal.wait("claude-sonnet-5-5: ")
    assert model.bodies == []


def test_all_of_the_context_is_readable_in_eighty_columns(start: Start, model: Model) -> None:
    terminal = start(rows=50, columns=80)
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    terminal.enter("/context all")
    terminal.wait("of 1,000,000")
    assert re.search(r"conversation +\d+ +[\d.]+% +(\d+% )?\w+ +\$[\d.]+ +volatile +assistant", terminal.text)
    assert "…" not in terminal.text


def test_cost_by_source_adds_up(start: Start, model: Model) -> None:
    terminal = start(rows=50)
    terminal.enter("one")
    terminal.wait("Hello, world.")
    terminal.enter("/cost")
    terminal.wait(lambda: re.search(r"total +[\d,]+ +\d+ +\$[\d.]+", terminal.text) is not None)
    shown = [float(cost) for cost in re.findall(r"^\S+ +[\d,]+ +\d+ +\$([\d.]+)$", terminal.text, re.MULTILINE)]
    assert abs(sum(shown[:-1]) - shown[-1]) < 0.0003


def test_clear_begins_a_new_session_and_resume_goes_back(start: Start, model: Model, shell: Shell) -> None:
    terminal = start(rows=60)
    terminal.enter("the first session")
    terminal.wait("Hello, world.")
    terminal.enter("/clear")
    terminal.wait("A new session.")
    terminal.enter("the second session")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert "the first session" not in model.said()
    terminal.wait(lambda: terminal.text.count("Hello, world.") == 2)
    terminal.enter("/resume")
    terminal.wait("Which session?")
    terminal.wait(lambda: re.search(r"› the second session +\d+ s ago +next call \$[\d.]+ warm \(this", terminal.text))
    terminal.type("first")
    terminal.look(0.5)
    terminal.enter()
    terminal.wait("1 prompt so far")
    terminal.enter("go on")
    terminal.wait(lambda: len(model.bodies) == 3)
    assert "the first session" in model.said()


def an_hour_old(shell: Shell) -> str:
    """A copy of the only session, as if it had been left an hour ago."""
    (session,) = json.loads(shell.ra("sessions", "list", "--json").stdout)
    lines = [json.loads(line) for line in shell.ra("sessions", "export", session["id"]).stdout.splitlines()]
    aged = [line | {"time": line["time"] - 3600} if "time" in line else line for line in lines]
    (shell.project / "old.jsonl").write_text("\n".join(map(json.dumps, aged)))
    return shell.ra("sessions", "import", "old.jsonl").stdout.decode().split("\t")[0]


def test_resume_offers_a_compacted_session_when_that_is_cheaper(start: Start, model: Model, shell: Shell) -> None:
    window = ("--set", "agent.compaction.contextWindow=30000")
    model.answer = lambda body: Step(text=f"Answer {len(body['messages'])}. " + "All work and no play. " * 400)
    shell.ra(*window, "question 0")
    for number in range(1, 6):
        shell.ra(*window, "-c", f"question {number}")
    terminal = start(*window, columns=160, rows=50)
    terminal.enter(f"/resume {an_hour_old(shell)}")
    terminal.wait("Resume?  y as it is · c compacted · n no")
    terminal.wait("The cache is cold")
    assert re.search(r"sends [\d,]+ tokens for \$[\d.]+; compacted \(truncate\), [\d,]+ for \$[\d.]+", terminal.text)
    terminal.look(0.2)
    terminal.type("c")
    terminal.wait("6 prompts so far")
    terminal.enter("go on")
    terminal.wait(lambda: len(model.bodies) == 7)
    assert "#12: question 3" in model.said()  # the user's words stay
    assert model.said().count("All work and no play.") < 1500  # the answers are hidden


def test_fork_goes_on_in_a_copy(start: Start, model: Model, shell: Shell) -> None:
    terminal = start()
    terminal.enter("one")
    terminal.wait("Hello, world.")
    terminal.enter("/fork")
    terminal.wait("This is a copy now")
    terminal.enter("two")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert "one" in model.said()
    terminal.type("\x04")
    terminal.wait_exit()
    assert len(shell.ra("sessions", "list", "--json").stdout.split(b'"id"')) == 3


def test_config_shows_what_is_in_force(start: Start) -> None:
    terminal = start("--thinking", "low", rows=150)
    terminal.enter("/config")
    terminal.wait("thinking: low")


@pytest.mark.parametrize("typed", ["/quit", "/quit "])
def test_quit_leaves_with_0(start: Start, typed: str) -> None:
    terminal = start()
    terminal.enter(typed)
    assert terminal.wait_exit() == 0


def test_no_session_has_a_context_too_and_leaves_nothing(start: Start, model: Model, shell: Shell) -> None:
    terminal = start("--no-session", rows=50)
    terminal.enter("one")
    terminal.wait("Hello, world.")
    terminal.enter("/context")
    terminal.wait("conversation")
    terminal.type("\x04")
    terminal.wait_exit()
    assert shell.ra("sessions", "list", "--json").stdout.strip() == b"[]"


def test_tools_shows_one_call_by_number(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "a.txt").write_text("content of a\n\n")
    (shell.project / "b.txt").write_text("content of b\n\n")
    calls = (Call("Read", {"path": "a.txt"}), Call("Read", {"path": "b.txt"}))
    model.answer = lambda body: Step(calls=calls) if len(body["messages"]) == 1 else Step(text="Read both.")
    terminal = start()
    terminal.enter("read")
    terminal.wait("Read both.")
    terminal.enter("/tools 2")
    terminal.wait("2. Read")
    terminal.enter("/tools 3")
    terminal.wait("/tools takes a number from 1 to 2, not '3'.")
