"""Narrow, colourless, dumb and spoken terminals."""

import re

import pytest

from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.cli.repl.conftest import Model, Start

ANSWER = (
    "# Title\n\nSome **bold** words in a line that is longer than forty columns.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
)

PLAIN = [{"TERM": "dumb"}, {"TERM": ""}, None]


def test_forty_columns_are_enough(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text=ANSWER)
    terminal = start(columns=40, rows=24)
    terminal.enter("tell me something that is longer than a line")
    terminal.wait("1   2")
    assert "Some bold words in a line that is longer\nthan forty columns." in terminal.everything
    terminal.enter("/context")
    terminal.wait("1,000,000")
    terminal.enter("/sessions")
    terminal.wait("next call")
    status = terminal.text.rstrip().splitlines()[-1]
    assert re.search(r"[█▓░]{10} \d+% of 1M", status)
    assert "all" in status


def test_no_color_means_no_colour(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text=ANSWER + "```python\nx = 'y'\n```\n")
    terminal = start(env={"NO_COLOR": "1"})
    terminal.enter("go")
    terminal.wait("x = 'y'")
    terminal.enter("/context")
    terminal.wait("1,000,000")
    codes = {code for codes in re.findall(rb"\x1b\[([\d;]*)m", bytes(terminal.raw)) for code in codes.split(b";")}
    assert not [code for code in codes if code and 30 <= int(code) <= 107 and int(code) not in (39, 49)]


@pytest.mark.parametrize("env", PLAIN)
def test_a_plain_terminal_gets_lines_and_no_escape_sequence(
    start: Start, model: Model, env: dict[str, str] | None
) -> None:
    model.answer = lambda body: Step(text=ANSWER, thinking="I wonder.")
    terminal = start(*([] if env else ["--plain"]), env=env)
    terminal.enter("hello")
    terminal.wait("| 1 | 2 |")
    assert "# Title\n\nSome **bold** words" in terminal.text  # the source is what reads best aloud
    terminal.enter("/context")
    terminal.wait("conversation: ")
    terminal.enter("/nosuch")
    terminal.wait("There is no command /nosuch")
    escapes = set(re.findall(rb"\x1b[^\w]*\w", bytes(terminal.raw)))
    assert escapes <= {b"\x1b[?2004h", b"\x1b[?2004l", b"\x1b[?1034h", b"\x1b[?2"}  # readline's own, where it has any
    terminal.type("\x04")
    assert terminal.wait_exit() == 0


def test_a_plain_terminal_continues_lines_and_runs_commands(start: Start, model: Model) -> None:
    terminal = start("--plain")
    terminal.enter("one\\")
    terminal.enter("two")
    terminal.wait("Hello, world.")
    assert model.said().startswith("one\ntwo\n")
    terminal.enter("!echo $((6 * 7))")
    terminal.wait("\n42")


def test_ctrl_c_stops_and_leaves_a_plain_terminal_too(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="".join(f"word {n}\n" for n in range(500)), pace_s=0.02)
    terminal = start("--plain")
    terminal.enter("go")
    terminal.wait("word 10")
    terminal.type("\x03")
    terminal.wait("stopped; what was said is kept")
    terminal.type("\x03")
    assert terminal.wait_exit() == 130


def test_ctrl_c_at_a_question_of_a_plain_terminal_stops_the_turn(start: Start, model: Model, shell: Shell) -> None:
    write = Call("Write", {"path": "a.txt", "content": "a\n"})
    model.answer = lambda body: Step(calls=(write,)) if len(body["messages"]) == 1 else Step(text="Something else.")
    terminal = start("--plain")
    terminal.enter("write it")
    terminal.wait("Write a.txt? (")
    terminal.type("\x03")
    terminal.wait("not run: stopped before you answered")
    terminal.enter("what else?")
    terminal.wait("Something else.")
    assert not (shell.project / "a.txt").exists()


def test_ctrl_c_at_the_prompt_of_a_plain_terminal_sends_nothing(start: Start, model: Model) -> None:
    terminal = start("--plain")
    terminal.type("half a line")
    terminal.wait("> half a line")
    terminal.type("\x03")
    terminal.wait("Ctrl-C again leaves")
    terminal.type("\x03")
    assert (terminal.wait_exit(), model.bodies) == (130, [])


def test_a_plain_terminal_says_which_command_runs(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(calls=(Call("Bash", {"command": "sleep 60"}),))
    terminal = start("--plain")
    terminal.enter("wait")
    terminal.wait("◦ Bash sleep 60")


def test_a_plain_terminal_asks_for_permission(start: Start, model: Model, shell: Shell) -> None:
    write = Call("Write", {"path": "CLAUDE.md", "content": "be good\n"})
    model.answer = lambda body: Step(calls=(write,)) if len(body["messages"]) == 1 else Step(text="Finished.")
    terminal = start("--plain")
    terminal.enter("write it")
    terminal.wait("Run it? (n no, y once, s this session, p this project, e edit):")
    terminal.enter("perhaps")
    terminal.wait("Please answer n, y, s, p, e.")
    terminal.enter("y")
    terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").read_text() == "be good\n"
