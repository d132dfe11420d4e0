"""A conversation as a person has it: typed, streamed, interrupted, suspended, killed, taken up again."""

import re
import signal
import time

from ra.providers.script import Call, Step
from tests.cli.conftest import RA, Shell
from tests.cli.repl.conftest import Model, Start
from tests.cli.repl.pty_terminal import PtyTerminal

CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"


def slow(body: object) -> Step:
    return Step(text="".join(f"word{n} " for n in range(400)), pace_s=0.02)


def test_an_answer_streams_as_markdown_and_ctrl_d_leaves_with_0(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="# Title\n\nSome **bold** words.\n\n```python\nx = 1\n```\n\n- one\n")
    terminal = start()
    terminal.enter("hello")
    terminal.wait("• one")
    shown = terminal.text
    assert "› hello" in shown
    assert "Some bold words." in shown
    assert "\nx = 1\n" in shown  # code begins in the first column, without a frame
    assert "**" not in shown
    assert "```" not in shown
    terminal.type(CTRL_D)
    assert terminal.wait_exit() == 0


def test_ctrl_d_in_mid_answer_leaves_at_once_and_nothing_typed_after_it_is_sent(start: Start, model: Model) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("count")
    terminal.wait("word20")
    terminal.type(CTRL_D + "rm everything\r")
    assert terminal.wait_exit() == 0
    assert len(model.bodies) == 1


def test_the_status_line_tells_model_window_cache_money_and_warmth(start: Start, model: Model) -> None:
    terminal = start(columns=140)
    terminal.enter("hello")
    terminal.wait("warm 4:5")
    line = next(line for line in terminal.text.splitlines() if "warm" in line)
    assert re.fullmatch(
        r"claude-sonnet-5-5 · timeline · edits ask · [█▓░]{10} \d+% of 1M · \d+% hit · "
        r"\$[\d.]+ turn · \$[\d.]+ all · warm 4:5\d · then \$[\d.]+",
        line,
    )


def test_ctrl_c_stops_the_turn_and_the_next_prompt_sees_what_was_said(start: Start, model: Model) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("count")
    terminal.wait("word20")
    model.answer = lambda body: Step(text="Second answer.")
    pressed = time.monotonic()
    terminal.type(CTRL_C)
    terminal.wait("stopped; what was said is kept")
    assert time.monotonic() - pressed < 1.5
    terminal.enter("go on")
    terminal.wait("Second answer.")
    assert "word0 word1 " in model.said()
    assert "[interrupted]" in model.said()
    assert model.said().endswith("go on")


def test_ctrl_c_twice_leaves_with_130(start: Start) -> None:
    terminal = start()
    terminal.type(CTRL_C)
    terminal.wait("Ctrl-C again leaves")
    terminal.type(CTRL_C)
    assert terminal.wait_exit() == 130


def test_ctrl_c_twice_in_mid_answer_leaves_with_130_and_keeps_the_session(
    start: Start, model: Model, shell: Shell
) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("count")
    terminal.wait("word20")
    terminal.type(CTRL_C + CTRL_C)
    assert terminal.wait_exit() == 130
    assert b"word0 word1" in shell.ra("recall", "#3-9").stdout


def test_sigterm_leaves_with_143(start: Start, model: Model) -> None:
    terminal = start()
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143


def test_a_terminal_that_goes_away_ends_the_process_and_keeps_the_session(shell: Shell, model: Model) -> None:
    model.answer = slow
    terminal = PtyTerminal([RA], env=shell.env, cwd=shell.project)
    terminal.enter("count")
    terminal.wait("word20")
    terminal.hang_up()
    assert terminal.process.wait(10) is not None
    assert b"count" in shell.ra("recall", "#1").stdout


def test_ctrl_z_suspends_and_fg_goes_on(shell: Shell, model: Model) -> None:
    argv = ["bash", "--norc", "--noprofile", "-i"]
    with PtyTerminal(argv, env=shell.env | {"PS1": "shell> "}, cwd=shell.project) as terminal:
        terminal.wait("shell>")
        terminal.enter(RA)
        terminal.wait("claude-sonnet")
        terminal.type("half a ")
        terminal.wait("› half a")
        terminal.type(CTRL_Z)
        terminal.wait("Stopped")
        terminal.enter("echo it is the $((1 + 1))nd program")
        terminal.wait("it is the 2nd program")
        terminal.enter("fg")
        terminal.wait(lambda: terminal.text.rstrip().splitlines()[-2].startswith("› half a"))
        terminal.enter("prompt")
        terminal.wait("Hello, world.")
        assert model.said().startswith("half a prompt")
        terminal.type(CTRL_D)
        terminal.wait(lambda: terminal.text.rstrip().endswith("shell>"))
        terminal.enter("echo left with $?")
        terminal.wait("left with 0")


def test_a_prompt_typed_while_the_model_works_is_queued(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="First answer.", delay_s=0.8 if len(body["messages"]) == 1 else 0)
    terminal = start()
    terminal.enter("one")
    terminal.wait(lambda: len(model.bodies) == 1)
    terminal.enter("two")
    terminal.wait("queued: two")
    terminal.wait(lambda: len(model.bodies) == 2)
    assert model.said().endswith("two")
    assert "First answer." in model.said()


def test_ctrl_c_brings_queued_prompts_back_into_the_input_line(start: Start, model: Model) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("one")
    terminal.wait("word3")
    terminal.enter("two")
    terminal.wait("queued: two")
    terminal.type(CTRL_C)
    terminal.wait("› two")
    assert len(model.bodies) == 1


def test_commands_that_look_do_not_wait_for_the_run(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="late", delay_s=30)
    terminal = start()
    terminal.enter("one")
    terminal.wait(lambda: len(model.bodies) == 1)
    terminal.enter("/help quit")
    terminal.wait("leave (Ctrl-D)")


def test_resizing_in_mid_stream_is_harmless(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="\n".join(f"line {n} of the answer" for n in range(120)), pace_s=0.002)
    terminal = start()
    terminal.enter("go")
    for number, (columns, rows) in enumerate([(60, 20), (120, 35), (40, 12), (100, 30)]):
        terminal.wait(f"line {10 + 20 * number} of")
        terminal.resize(columns, rows)
    terminal.wait("line 119 of")
    terminal.enter("again")
    terminal.wait(lambda: len(model.bodies) == 2)


def test_an_answer_of_20_000_lines_is_printed_once_and_whole(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="\n".join(f"row{n}." for n in range(20_000)))
    terminal = start()
    terminal.emulate = False  # a real terminal is faster than pyte
    terminal.enter("go")
    terminal.wait(lambda: b"row19999." in terminal.raw, 60)
    terminal.look(0.3)
    # What is finished is written as lines of their own; what still moves is placed by escape sequences.
    written = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", bytes(terminal.raw))
    lines = re.findall(rb"row(\d+)\.\r\n", written)
    assert [int(line) for line in lines] == list(range(20_000))


def test_escape_sequences_of_a_model_never_reach_the_terminal(start: Start, model: Model) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m \u202eabc\x1b[6n `\x1b]52;c;eA==\x07`\n```\n\x1b[41mcode\n```\n"
    model.answer = lambda body: Step(
        text=evil, thinking=evil, calls=(Call("LS", {"path": evil}),) if len(body["messages"]) == 1 else ()
    )
    terminal = start()
    terminal.enter("go")
    terminal.wait(lambda: len(model.bodies) == 2 and terminal.everything.count("code") >= 2)
    raw = bytes(terminal.raw)
    for sequence in (b"\x1b]0;", b"\x1b[2J", b"\x1b[6n", b"\x1b]52", b"\x1b[41m", b"\x9b31m ", "\u202e".encode()):
        assert sequence not in raw
    assert "␛[2J" in terminal.everything


def test_ra_c_says_that_you_stopped_the_answer(start: Start, model: Model) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("count to many")
    terminal.wait("word20")
    terminal.type(CTRL_C)
    terminal.wait("· stopped")
    terminal.type(CTRL_D)
    terminal.process.wait()
    start("-c").wait("You stopped it here.")


def test_after_kill_9_in_mid_answer_ra_c_shows_where_it_stopped_and_goes_on(start: Start, model: Model) -> None:
    model.answer = slow
    terminal = start()
    terminal.enter("count to many")
    terminal.wait("word20")
    terminal.process.kill()
    terminal.process.wait()
    model.answer = lambda body: Step(text="I went on.")
    again = start("-c")
    again.wait("It stopped here, before the answer was complete. Press Enter to continue.")
    assert "› count to many" in again.text
    again.enter()
    again.wait("I went on.")
    assert "count to many" in model.said()


def test_resuming_shows_the_last_exchange(start: Start, model: Model, shell: Shell) -> None:
    shell.ra("what is it?")
    terminal = start("-c")
    terminal.wait("Hello, world.")
    assert "› what is it?" in terminal.text


def test_a_session_in_use_is_refused_with_75(start: Start, model: Model, shell: Shell) -> None:
    session = shell.json("one")["session"]
    start("-c")
    assert shell.ra("--resume", session, "two").returncode == 75


def test_tool_calls_are_one_line_each_and_tools_unfolds_them(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "a.txt").write_text("\n".join(f"content {n}" for n in range(30)))
    model.answer = lambda body: (
        Step(calls=(Call("Read", {"path": "a.txt"}),)) if len(body["messages"]) == 1 else Step(text="Read it.")
    )
    terminal = start(rows=50)
    terminal.enter("read a.txt")
    terminal.wait("Read it.")
    assert "• Read a.txt → 30 lines" in terminal.text
    assert "content 7" not in terminal.text
    terminal.type("\x0f")  # Ctrl-O
    terminal.wait("content 7")


def test_an_edit_shows_its_diff_and_undo_takes_it_back(start: Start, model: Model, shell: Shell) -> None:
    file = shell.project / "a.txt"
    file.write_text("one\ntwo\n")
    edit = Call("Edit", {"path": "a.txt", "old_string": "two", "new_string": "three"})
    model.answer = lambda body: Step(calls=(edit,)) if len(body["messages"]) == 1 else Step(text="Done.")
    terminal = start("--edits", "auto")
    terminal.enter("change it")
    terminal.wait("Done.")
    assert re.search(r"2\s+-\s?two\n\s*2\s+\+\s?three", terminal.text), terminal.text
    assert file.read_text() == "one\nthree\n"
    terminal.enter("/undo")
    terminal.wait("restored")
    assert file.read_text() == "one\ntwo\n"


def test_thinking_is_folded_when_it_is_done(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(thinking="I wonder what that is.", text="It is this.")
    terminal = start("--thinking", "low")
    terminal.enter("what?")
    terminal.wait("It is this.")
    terminal.wait("thought for 0 s (5 words)")
    assert "I wonder" not in terminal.text


def test_a_failure_is_told_and_the_conversation_goes_on(start: Start, model: Model) -> None:
    model.answer = lambda body: Step(text="")
    terminal = start()
    terminal.enter("one")
    terminal.wait("the model gave an empty answer")
    model.answer = lambda body: Step(text="Better.")
    terminal.enter("two")
    terminal.wait("Better.")


def test_a_warning_of_a_source_is_shown_in_the_first_session_and_in_the_next(
    start: Start, model: Model, shell: Shell
) -> None:
    (shell.project / "stock.py").write_text("def content() -> str:\n    raise ValueError('the shelf is empty')\n")
    (shell.project / "ra.yaml").write_text(
        "agent: {context: {sourceBudget: 2000, sources: {stock: {python: stock.py, max: 100}}}}\n"
    )
    terminal = start("--trust", rows=40)
    terminal.enter("Anything in stock?")
    terminal.wait("Hello, world.")
    terminal.wait("Source 'stock' could not be read")
    terminal.enter("/clear")
    terminal.enter("And now?")
    terminal.wait(lambda: terminal.everything.count("Source 'stock' could not be read") == 2)
