"""May it run? Asked inline, answered by one key that was pressed for it."""

from typing import Any

import pytest

from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.cli.repl.conftest import Model, Start

QUESTION = "Run it?  y once · s this session · p this project · n no · e edit"


def writing(path: str = "CLAUDE.md") -> Any:
    """A model that wants to change an instruction file, which always asks, and then says what it got."""

    def answer(body: dict[str, Any]) -> Step:
        blocks = [block for message in body["messages"] for block in message["content"]]
        results = [block for block in blocks if block["type"] == "tool_result"]
        if len(results) == sum(block.get("text", "").startswith("write it") for block in blocks):
            return Step(text="Finished.")
        return Step(calls=(Call("Write", {"path": path, "content": "be good\n"}),))

    return answer


@pytest.mark.parametrize(("key", "written"), [("y", True), ("n", False), ("\x1b", False)])
def test_a_key_answers(start: Start, model: Model, shell: Shell, key: str, written: bool) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.wait("+be good")  # exactly what would be written
    terminal.look(0.3)
    terminal.type(key)
    terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").exists() == written


def test_keys_typed_ahead_do_not_answer(start: Start, model: Model, shell: Shell) -> None:
    model.answer = lambda body: Step(**(_fields(writing()(body)) | {"delay_s": 0.4}))
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.type("yes")
    terminal.wait(QUESTION)
    terminal.type("y")
    terminal.look(0.5)
    assert not (shell.project / "CLAUDE.md").exists()
    assert "› yesy" in terminal.text  # it went on being what it was: typing
    terminal.look(1.0)
    terminal.type("n")
    terminal.wait("Finished.")
    assert not (shell.project / "CLAUDE.md").exists()


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in Step.__struct_fields__}


@pytest.mark.parametrize("pasted", ["\x1b[200~y\x1b[201~", "\x1b[200~y\r\x1b[201~", "yyyy", "yes\r"])
def test_a_paste_does_not_answer(start: Start, model: Model, shell: Shell, pasted: str) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.look(0.4)
    terminal.type(pasted)
    terminal.look(0.4)
    assert not (shell.project / "CLAUDE.md").exists()
    assert QUESTION in terminal.text


def test_for_this_session_is_not_asked_again(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.look(0.3)
    terminal.type("s")
    terminal.wait("Finished.")
    (shell.project / "CLAUDE.md").unlink()
    terminal.enter("write it again")
    terminal.wait(lambda: terminal.everything.count("Finished.") == 2)
    assert (shell.project / "CLAUDE.md").exists()


def test_for_this_project_is_not_asked_again_in_a_later_process(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.look(0.3)
    terminal.type("p")
    terminal.wait("Finished.")
    (shell.project / "CLAUDE.md").unlink()
    again = start(columns=110)
    again.enter("write it")
    again.wait("Finished.")
    assert (shell.project / "CLAUDE.md").exists()


def test_edit_changes_what_runs(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.look(0.3)
    terminal.type("e")
    terminal.wait('edit › {"path":"CLAUDE.md","content":"be good\\n"}')
    terminal.type("\x15not json\r")
    terminal.wait("That is no JSON object.")
    terminal.look(1.2)
    terminal.type("e")
    terminal.wait(lambda: terminal.text.count('edit › {"path"') == 1)
    terminal.type('\x15{"path": "CLAUDE.md", "content": "be better\\n"}\r')
    terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").read_text() == "be better\n"
    assert "+be better" in terminal.text  # what is shown is what was done


def test_ctrl_c_at_a_question_stops_the_turn(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.type("\x03")
    terminal.wait("stopped; what was said is kept")
    assert not (shell.project / "CLAUDE.md").exists()
    assert terminal.process.poll() is None
