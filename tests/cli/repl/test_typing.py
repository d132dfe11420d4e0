"""What is typed: several lines, pastes, history, completion, commands of the shell."""

import time

import pytest

from ra.providers.script import Step
from tests.cli.conftest import RA, Shell
from tests.cli.repl.conftest import Model, Start
from tests.cli.repl.pty_terminal import PtyTerminal

ALT_ENTER, CTRL_J, TAB, UP, BACKSPACE = "\x1b\r", "\n", "\t", "\x1b[A", "\x7f"


@pytest.mark.parametrize("break_line", [ALT_ENTER, CTRL_J, "\\\r"])
def test_a_prompt_may_have_several_lines(start: Start, model: Model, break_line: str) -> None:
    terminal = start()
    terminal.type("one")
    terminal.wait("› one")
    terminal.type(break_line)
    terminal.wait("› one\n\n")
    terminal.enter("two")
    terminal.wait("Hello, world.")
    assert model.said().startswith("one\ntwo\n")


def test_what_was_typed_before_the_start_is_sent(shell: Shell, model: Model) -> None:
    with PtyTerminal([RA], env=shell.env, cwd=shell.project) as terminal:
        terminal.enter("early bird")
        terminal.wait("Hello, world.")
        assert model.said().startswith("early bird\n")


def test_a_paste_is_shown_folded_and_sent_whole(start: Start, model: Model) -> None:
    pasted = "\n".join(f"line {n} with @nothing and url:nowhere" for n in range(40))
    terminal = start()
    terminal.type("explain ")
    terminal.paste(pasted.replace("\n", "\r"))
    terminal.wait("› explain [pasted text 1: 40 lines, 1.5 kB]")
    terminal.enter(" please")
    terminal.wait("Hello, world.")
    assert model.said().startswith(f"explain {pasted} please\n")
    assert "line 7" not in terminal.everything
    assert "no file" not in terminal.everything  # nothing in a paste is taken for a reference


def test_a_paste_of_5_mb_is_sent_whole(start: Start, model: Model) -> None:
    pasted = "\n".join(f"{n:07} {'x' * 71}" for n in range(65_536))
    terminal = start("--set", "agent.compaction.contextWindow=20000000")
    began = time.monotonic()
    terminal.paste(pasted)
    terminal.wait("[pasted text 1: 65,536 lines, 5.2 MB]")
    assert time.monotonic() - began < 10
    terminal.enter()
    terminal.wait("Hello, world.", 60)
    assert model.said().startswith(pasted)


def test_a_short_paste_is_text_like_any_other_and_never_sends_itself(start: Start, model: Model) -> None:
    terminal = start()
    terminal.paste("two\rlines\r")
    terminal.wait("lines")
    terminal.look(0.2)
    assert model.bodies == []


def test_backspace_takes_a_folded_paste_away(start: Start, model: Model) -> None:
    terminal = start()
    terminal.type("say ")
    terminal.paste("x\n" * 100)
    terminal.wait("[pasted text")
    terminal.type(BACKSPACE)
    terminal.wait(lambda: "pasted" not in terminal.text)
    terminal.enter("hi")
    terminal.wait("Hello, world.")
    assert model.said().startswith("say hi\n")


def test_history_comes_back_in_a_later_process_and_is_private(start: Start, model: Model, shell: Shell) -> None:
    terminal = start()
    terminal.enter("the first prompt")
    terminal.wait("Hello, world.")
    terminal.type("\x04")
    terminal.wait_exit()
    history = shell.home.parent / "data" / "history"
    assert oct(history.stat().st_mode & 0o777) == "0o600"
    again = start()
    again.type(UP)
    again.wait("› the first prompt")


def test_commands_paths_and_sessions_complete(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "notes.txt").write_text("x")
    (shell.project / "src").mkdir()
    session = shell.json("one")["session"]
    terminal = start()
    terminal.type("/ent")
    terminal.wait("/entries")
    terminal.type(TAB)
    terminal.wait("› /entries")
    terminal.type("\x15look at @no")
    terminal.wait("@notes.txt")
    terminal.type(TAB)
    terminal.wait("› look at @notes.txt")
    terminal.type("\x15@sr" + TAB)
    terminal.wait("› @src/")
    terminal.type("\x15/resume " + session[:3])
    terminal.wait(session)
    terminal.type(TAB)
    terminal.wait(f"› /resume {session}")


def test_at_paths_attach_files(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "notes.txt").write_text("the notes\n")
    terminal = start()
    terminal.enter("explain @notes.txt")
    terminal.wait("Hello, world.")
    assert "the notes" in model.said()


def test_an_exclamation_mark_runs_a_command_and_attaches_its_output(start: Start, model: Model) -> None:
    terminal = start()
    terminal.enter("!echo $((6 * 7)) and @more; exit 3")
    terminal.wait("42 and @more")
    terminal.wait("exit 3; 1 line will be sent with your next prompt")
    assert model.bodies == []
    terminal.enter("what was that?")
    terminal.wait("Hello, world.")
    assert '<command-output command="echo $((6 * 7)) and @more; exit 3" exit="3">\n42 and @more\n' in model.said()
    model.answer = lambda body: Step(text="Nothing new.")
    terminal.enter("and now?")
    terminal.wait("Nothing new.")
    assert model.said().count("<command-output") == 1


def test_ctrl_c_ends_a_shell_command_and_not_the_session(start: Start) -> None:
    terminal = start()
    terminal.enter("!echo begun; sleep 30; echo never")
    terminal.wait("\nbegun")
    terminal.type("\x03")
    terminal.wait("exit 130; 1 line will be sent", 5)
    assert "\nnever" not in terminal.text
    terminal.enter("hello")
    terminal.wait("Hello, world.")


def test_keys_echo_while_an_answer_streams(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="\n".join(f"line {n} of **many**" for n in range(2000)), pace_s=0.001)
    terminal = start()
    terminal.enter("go")
    terminal.wait("line 20")
    for letter in "quick":
        terminal.type(letter)
        terminal.wait(lambda letter=letter: letter in _input(terminal.text), 2)
    assert _input(terminal.text) == "› quick"
    assert "line 1999" not in terminal.everything


def _input(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.startswith("›")), "")


def test_an_at_opens_the_projects_files_by_itself_and_enter_takes_one(start: Start, shell: Shell, model: Model) -> None:
    (shell.project / "src/cart").mkdir(parents=True)
    (shell.project / "src/cart/parser.py").write_text("the parser")
    terminal = start()
    terminal.type("explain @pars")
    terminal.wait("  @src/cart/parser.py")
    terminal.type("\r")
    terminal.wait("› explain @src/cart/parser.py")
    assert model.bodies == []  # Enter took the file; the next one sends
    terminal.enter("please")
    terminal.wait("Hello, world.")
    assert model.said().startswith("explain @src/cart/parser.py please\n<file")


def test_tab_goes_through_a_menu_and_enter_goes_on_into_a_folder(start: Start, shell: Shell) -> None:
    for name in ("docs/one.md", "docs/two.md"):
        (shell.project / name).parent.mkdir(exist_ok=True)
        (shell.project / name).write_text("")
    terminal = start()
    terminal.type("see @do")
    terminal.wait("  @docs/two.md")
    terminal.type(TAB)
    terminal.wait("› see @docs/\n")
    terminal.type(TAB)
    terminal.wait("› see @docs/one.md\n")
    terminal.type(TAB + "\r")
    terminal.wait("› see @docs/two.md\n")
    terminal.wait(lambda: "@docs/one.md" not in terminal.text)  # the menu is gone


def test_a_second_tab_takes_the_first_line_however_fast_it_comes(start: Start, shell: Shell) -> None:
    for name in ("docs/one.md", "docs/two.md"):
        (shell.project / name).parent.mkdir(exist_ok=True)
        (shell.project / name).write_text("")
    terminal = start()
    terminal.type("see @do" + TAB + TAB)
    terminal.wait("› see @docs/one.md\n")
    terminal.type(TAB)
    terminal.wait("› see @docs/two.md\n")


def test_a_paste_into_a_terminal_that_does_not_mark_pastes_sends_nothing(start: Start, model: Model) -> None:
    terminal = start()
    terminal.type("explain ")
    terminal.type("def f():\r    return 1\r\rprint(f())\r")  # in one piece, as no hand types
    terminal.wait("print(f())")
    terminal.look(0.3)
    assert model.bodies == []
    terminal.enter("please")
    terminal.wait("Hello, world.")
    assert model.said().startswith("explain def f():\n    return 1\n\nprint(f())\nplease\n")


def test_a_long_paste_that_is_not_marked_is_one_paste_and_shown_folded(start: Start, model: Model) -> None:
    pasted = "".join(f"line {n} {'x' * 60}\r" for n in range(300))
    terminal = start()
    terminal.type(pasted)
    terminal.wait("[pasted text 1: 301 lines, 20.9 kB]")
    terminal.look(0.3)
    assert "line" not in terminal.text.split("[pasted text")[0].split("›")[-1]
    terminal.enter("what is it?")
    terminal.wait("Hello, world.")
    assert model.said().startswith(pasted.replace("\r", "\n") + "what is it?\n")
