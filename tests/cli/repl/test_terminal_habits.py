"""What fingers and eyes expect of a terminal: history search, leaving by name, near misses, live output."""

import time
from typing import Any

import pytest

from ra.providers.script import Call, Fault, Step
from tests.cli.conftest import RA, Shell
from tests.cli.repl.conftest import Model, Start
from tests.cli.repl.pty_terminal import PtyTerminal


def running(command: str) -> Any:
    """A model that runs one command and then says what became of it."""

    def answer(body: dict[str, Any]) -> Step:
        blocks = [block for message in body["messages"] for block in message["content"]]
        if any(block["type"] == "tool_result" for block in blocks):
            return Step(text="Finished.")
        return Step(calls=(Call("Bash", {"command": command}),))

    return answer


def test_ctrl_r_shows_matches_and_enter_takes_one_into_the_line(start: Start, model: Model) -> None:
    terminal = start()
    for prompt in ("explain the parser", "explain the lexer", "count the tests"):
        terminal.enter(prompt)
        terminal.wait(lambda: terminal.text.count("Hello, world.") >= len(model.bodies) > 0)
        terminal.look(0.3)
    terminal.type("\x12")
    terminal.wait("search ›")
    terminal.type("expl")
    terminal.look(0.5)
    assert "explain the lexer" in terminal.text.split("search ›")[-1]
    terminal.type("pars")
    terminal.look(0.3)
    terminal.type("\x7f\x7f\x7f\x7f par")
    terminal.look(0.5)
    terminal.type("\r")
    terminal.wait("› explain the parser\n")
    assert len(model.bodies) == 3  # nothing is sent before a second Enter


def test_ctrl_c_ends_a_search_and_not_the_program(start: Start) -> None:
    terminal = start()
    terminal.type("half")
    terminal.type("\x12")
    terminal.wait("search ›")
    terminal.type("\x03")
    terminal.wait("› half")
    assert terminal.process.poll() is None


@pytest.mark.parametrize("word", ["exit", "quit", "/exit", "/quit"])
def test_words_that_leave(start: Start, model: Model, word: str) -> None:
    terminal = start()
    terminal.enter(word)
    assert terminal.process.wait(timeout=20) == 0
    assert model.bodies == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("?", "/context"),
        ("compact", "Type /compact"),
        ("modle", "Did you mean /model?"),
        ("--model opus", "Type /model here."),
        ("ra sessions", "You are in ra already."),
        ("git", "Type !git"),
        ("hlep", "Did you mean /help?"),
        ("rewnid", "Did you mean /rewind?"),
        ("usage", "Type /cost."),
        ("/Compact", "There is nothing to compact yet"),
        ("/new", "type /clear"),
        ("/status", "type /context, or /cost"),
        ("/mcp", "type !ra mcp list"),
        ("/auto-edit", "/edits"),
        ("/permissions", "You have set no rules"),
    ],
)
def test_a_near_miss_is_answered_and_never_sent(start: Start, model: Model, line: str, hint: str) -> None:
    terminal = start()
    terminal.enter(line)
    terminal.wait(hint)
    assert model.bodies == []


def test_a_running_command_shows_its_last_lines(start: Start, model: Model) -> None:
    model.answer = running("for i in 1 2 3 4 5 6 7 8; do echo row-$i; done; sleep 3")
    terminal = start("--sandbox", "off", "--allow", "Bash")
    terminal.enter("run it")
    terminal.wait(lambda: "  row-8" in terminal.text and "  row-4" in terminal.text)
    assert "  row-3" not in terminal.text
    terminal.wait("Finished.")
    terminal.wait("3 more lines; Ctrl-O shows more")


def test_an_interrupted_command_stays_visible_with_what_it_printed(start: Start, model: Model) -> None:
    model.answer = running("echo half-way; sleep 30")
    terminal = start("--sandbox", "off", "--allow", "Bash")
    terminal.enter("run it")
    terminal.wait("half-way")
    time.sleep(1.2)
    terminal.type("\x03")
    terminal.wait("stopped after")
    terminal.look(0.3)
    assert "half-way" in terminal.text.split("stopped after")[1]


def test_a_question_wraps_in_forty_columns_with_the_refusing_key_first(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(calls=(Call("Write", {"path": "CLAUDE.md", "content": "be good\n"}),))
    terminal = start(columns=40)
    terminal.enter("write it")
    terminal.wait("Run it?  n no · y once")
    terminal.wait("e edit")


def test_a_one_shot_on_a_terminal_renders_markdown_and_ends_with_its_cost(shell: Shell, model: Model) -> None:
    model.answer = lambda body: Step(text="# Title\n\nSome **bold** words and the end.")
    with PtyTerminal([RA, "hello there"], env=shell.env, cwd=shell.project) as terminal:
        terminal.wait("ra -c goes on")
        text = terminal.text
    assert "Some bold words and the end." in text
    assert " out · $" in text
    piped = shell.ra("hello there")
    assert piped.stdout.decode() == "# Title\n\nSome **bold** words and the end.\n"
    assert "goes on" not in piped.stderr.decode()


def test_a_one_shot_asks_for_one_key_and_nothing_moves_meanwhile(shell: Shell, model: Model) -> None:
    def answer(body: dict[str, Any]) -> Step:
        if len(body["messages"]) > 1:
            return Step(text="Finished.")
        return Step(calls=(Call("Write", {"path": "CLAUDE.md", "content": "be good\n"}),))

    model.answer = answer
    with PtyTerminal([RA, "write it"], env=shell.env, cwd=shell.project, columns=110) as terminal:
        terminal.wait("Run it?  n no · y once")
        terminal.look(0.3)
        written = len(terminal.raw)
        terminal.look(1.0)
        assert len(terminal.raw) == written
        terminal.type("y")
        terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").exists()


def test_a_server_that_does_not_run_is_asked_about_and_enter_tries_again(start: Start, model: Model) -> None:
    terminal = start(columns=110, env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    began = time.monotonic()
    terminal.enter("hello")
    terminal.wait("Is the server running?")
    terminal.wait("Enter tries again")
    assert time.monotonic() - began < 15  # it is given up early
    terminal.enter()
    terminal.wait(lambda: terminal.everything.count("Enter tries again") == 2)


def test_a_file_that_is_not_there_is_asked_about_before_anything_is_paid(start: Start, model: Model) -> None:
    terminal = start(columns=110)
    terminal.enter("explain @nosuch.py")
    terminal.wait("Send the prompt without it?  n no · y yes")
    terminal.look(0.3)
    terminal.type("n")
    terminal.wait("Nothing was sent.")
    assert model.bodies == []


def test_after_a_failure_enter_sends_the_same_prompt_once_more(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(fault=Fault("status", status=400, message="no such thing"))
    terminal = start(columns=110)
    terminal.enter("the question")
    terminal.wait("Enter tries again")
    model.answer = lambda body: Step(text="The answer.")
    terminal.enter()
    terminal.wait("The answer.")
    assert model.said().count("the question") == 1


def asks_to_write(body: dict[str, Any]) -> Step:
    return Step(calls=(Call("Write", {"path": "CLAUDE.md", "content": "be good\n"}),))


STAGES: dict[str, tuple[Any, str, str]] = {
    "before the first byte": (lambda body: Step(text="late", delay_s=30), "waiting for the model", "· stopped;"),
    "thinking": (lambda body: Step(thinking="hm, " * 400, text="x", pace_s=0.1), "hm,", "· thought for"),
    "text": (lambda body: Step(text="some words " * 400, pace_s=0.1), "some words", "· stopped;"),
    "a tool": (running("echo half-way; sleep 30"), "half-way", "sleep 30 → stopped after"),
    "a question": (asks_to_write, "Run it?", "✗ Write CLAUDE.md → not run: stopped before you answered"),
    "a retry": (
        lambda body: Step(fault=Fault("status", status=529)),
        "Retry 2",
        "Overloaded (529). Stopped before retry",
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_says_what_was_stopped_and_the_session_goes_on(start: Start, model: Model, stage: str) -> None:
    model.answer, until, said = STAGES[stage]
    terminal = start("--sandbox", "off", "--allow", "Bash", columns=110)
    terminal.enter("do it")
    terminal.wait(until)
    terminal.type("\x03")
    terminal.wait("· stopped; what was said is kept")
    assert said in terminal.text
    model.answer = lambda body: Step(text="The next answer.")
    terminal.enter("go on")
    terminal.wait("The next answer.")


def test_a_summary_that_is_being_made_is_shown_and_can_be_stopped(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="some words " * 800)
    terminal = start("--compaction", "summarize", "--set", "agent.compaction.contextWindow=30000", rows=50)
    for number in range(4):
        terminal.enter(f"prompt {number} {'with filler ' * 150}")
        terminal.wait(lambda number=number: len(model.bodies) == number + 1)
        terminal.wait(lambda: "Ctrl-C stops" not in terminal.text and terminal.text.rstrip().splitlines()[-2] == "›")
    model.answer = lambda body: Step(text="late", delay_s=30)
    terminal.enter("/compact")
    terminal.wait("Compact?")
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("compacting")
    terminal.type("\x03")
    terminal.wait("Stopped: /compact did not finish.")
    model.answer = lambda body: Step(text="The next answer.")
    terminal.enter("go on")
    terminal.wait("The next answer.")


def test_a_one_shot_that_is_stopped_says_which_call_was(shell: Shell, model: Model) -> None:
    for answer, until, said in (
        (running("echo x; sleep 30"), "sleep 30", "  Bash echo x; sleep 30: stopped after"),
        (asks_to_write, "Run it?", "  Write CLAUDE.md: not run: stopped before you answered"),
    ):
        model.answer = answer
        argv = [RA, "--sandbox", "off", "--allow", "Bash", "do it"]
        with PtyTerminal(argv, env=shell.env, cwd=shell.project, columns=110) as terminal:
            terminal.wait(until)
            terminal.type("\x03")
            assert terminal.wait_exit() == 130
            assert said in terminal.text


def test_a_one_shot_that_is_stopped_shows_what_its_command_had_printed(shell: Shell, model: Model) -> None:
    model.answer = running("echo half-way; touch begun; sleep 30")
    argv = [RA, "--sandbox", "off", "--allow", "Bash", "do it"]
    with PtyTerminal(argv, env=shell.env, cwd=shell.project, columns=110) as terminal:
        terminal.wait(lambda: (shell.project / "begun").exists())
        terminal.look(0.2)
        terminal.type("\x03")
        assert terminal.wait_exit() == 130
        assert "\n    half-way\n" in terminal.text.split("stopped after")[1]


@pytest.mark.parametrize("columns", [110, 40])
def test_a_retry_of_a_one_shot_counts_down_in_one_line(shell: Shell, model: Model, columns: int) -> None:
    model.answer = lambda body: Step(fault=Fault("status", status=500))
    with PtyTerminal([RA, "do it"], env=shell.env, cwd=shell.project, columns=columns) as terminal:
        terminal.wait("Server error (500). Retry 2 of")
        terminal.wait("Retry 3 of")
        assert terminal.everything.count("Retry") == 1  # each takes the place of the one before
        terminal.type("\x03")
        assert terminal.wait_exit() == 130
        assert "Stopped before retry" in terminal.text.replace("\n", "")
        assert terminal.text.count("Server error") == 1


@pytest.mark.parametrize(("key", "code", "requests"), [("n", 2, 0), ("y", 0, 1)])
def test_a_one_shot_on_a_terminal_asks_about_a_missing_file_too(
    shell: Shell, model: Model, key: str, code: int, requests: int
) -> None:
    with PtyTerminal([RA, "explain @nosuch.py please"], env=shell.env, cwd=shell.project, columns=110) as terminal:
        terminal.wait("Send the prompt without it?")
        assert model.bodies == []
        terminal.type(key)
        terminal.wait("Nothing was sent." if code else "Hello, world.")
        assert terminal.process.wait(timeout=20) == code
    assert len(model.bodies) == requests


def test_said_lists_what_was_laid_down(start: Start) -> None:
    terminal = start(columns=110)
    terminal.enter("Always use tabs. What is in the folder?")
    terminal.wait("Hello, world.")
    terminal.enter("/said")
    terminal.wait("next request")
    terminal.wait("#1")
    assert "Always use tabs." in terminal.text.split("next request")[1]


@pytest.mark.parametrize("question", ["Send the prompt without it?", "Attach it?"])
def test_ctrl_c_at_a_question_before_anything_is_sent_ends_a_one_shot(
    shell: Shell, model: Model, question: str
) -> None:
    (shell.home / "notes.txt").write_text("outside")
    prompt = "explain @nosuch.py" if "without" in question else f"explain @{shell.home}/notes.txt"
    with PtyTerminal([RA, prompt], env=shell.env, cwd=shell.project, columns=110) as terminal:
        terminal.wait(question)
        terminal.type("\x03")
        assert terminal.wait_exit() == 130
    assert model.bodies == []


def test_a_running_command_can_be_unfolded(start: Start, model: Model) -> None:
    model.answer = running("for i in 1 2 3 4 5 6 7 8; do echo row-$i; done; sleep 20")
    terminal = start("--sandbox", "off", "--allow", "Bash")
    terminal.enter("run it")
    terminal.wait(lambda: "  row-8" in terminal.text)
    terminal.type("\x0f")  # Ctrl-O
    terminal.wait("[running for")
    assert "\nrow-1\n" in terminal.everything


def test_a_failed_command_is_headed_by_how_it_ended(start: Start, model: Model) -> None:
    model.answer = running("echo first; echo second; exit 3")
    terminal = start("--sandbox", "off", "--allow", "Bash")
    terminal.enter("run it")
    terminal.wait("exit 3 → exit code 3\n  first\n  second\n")


def test_ctrl_c_takes_a_line_away_before_it_leaves_and_stops_a_run_before_it_takes_a_line(
    start: Start, model: Model
) -> None:
    terminal = start()
    for draft in ("one thought", "another thought"):
        terminal.type(draft)
        terminal.wait(f"› {draft}")
        terminal.type("\x03")
        terminal.wait(lambda draft=draft: draft not in terminal.text)
    model.answer = lambda body: Step(text="word " * 400, pace_s=0.02)
    terminal.enter("count")
    terminal.wait("word word")
    terminal.type("and then")
    terminal.wait("› and then")
    terminal.type("\x03")
    terminal.wait("stopped; what was said is kept")
    assert "› and then" in terminal.text
    assert terminal.process.poll() is None


def test_an_empty_new_file_is_no_binary(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(calls=(Call("Write", {"path": "pkg/__init__.py", "content": ""}),))
    terminal = start()
    terminal.enter("make a package")
    terminal.wait("(an empty file)")


@pytest.mark.parametrize("columns", [100, 60, 40])
def test_the_status_line_always_says_that_edits_are_not_asked_about(start: Start, columns: int) -> None:
    terminal = start(columns=columns)
    terminal.enter("hello")
    terminal.wait("% of 1M")
    terminal.type("\x1b[Z")  # Shift-Tab
    terminal.wait("edits auto")
    terminal.type("\x1b[Z")
    terminal.wait("edits off")
