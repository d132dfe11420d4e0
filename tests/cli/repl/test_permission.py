"""May it run? Asked inline, answered by one key that was pressed for it."""

import re
from typing import Any

import pytest

from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.cli.repl.conftest import Model, Start

QUESTION = "Run it?  n no · y once · s this session · p this project · e edit"


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
    terminal.wait("1 + be good")  # exactly what would be written
    terminal.look(0.3)
    terminal.type(key)
    if key == "n":
        terminal.wait("Why, for the model?")
        terminal.type("\r")
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
    terminal.wait("Why, for the model?")
    terminal.type("\r")
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
    terminal.wait("edit › be good")
    assert "running" not in terminal.text  # nothing moves while a person writes
    terminal.type("\x7f" * 10 + "be better\r")
    terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").read_text() == "be better"
    assert "1 + be better" in terminal.text  # what is shown is what was done


def test_the_users_own_editor_has_the_text_of_an_edit(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110, env={"EDITOR": "sed -i s/good/kind/"})
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.look(0.3)
    terminal.type("e")
    terminal.wait("Finished.")
    assert (shell.project / "CLAUDE.md").read_text() == "be kind\n"


CART = """import os


def total(items):
    result = 0
    for item in items:
        result += item
    return result
"""


def editing(*edits: dict[str, Any]) -> Any:
    """A model that makes these edits, one after the other."""

    def answer(body: dict[str, Any]) -> Step:
        blocks = [block for message in body["messages"] for block in message["content"]]
        made = sum(block["type"] == "tool_result" for block in blocks)
        return Step(calls=(Call("Edit", edits[made]),)) if made < len(edits) else Step(text="Finished.")

    return answer


PRICE = {"path": "cart.py", "old_string": "result += item\n", "new_string": "result += item.price\n"}
IMPORT = {"path": "cart.py", "old_string": "import os", "new_string": "import sys"}


def test_an_edit_is_shown_as_the_files_own_difference(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "cart.py").write_text(CART)
    model.answer = editing(PRICE)
    terminal = start(columns=110)
    terminal.enter("change it")
    terminal.wait("Edit cart.py?  n no · y yes · a all edits this session · e edit")
    shown = [line.rstrip() for line in terminal.text.splitlines()]
    begin = shown.index("Edit cart.py  +1 -1 (edits are set to ask)")
    assert shown[begin + 1 : begin + 7] == [
        "    4   def total(items):",
        "    5       result = 0",
        "    6       for item in items:",
        "    7 -         result += item",
        "    7 +         result += item.price",
        "    8       return result",
    ]
    assert re.search(rb"\x1b\[[\d;]*94[\d;]*mfor", terminal.raw)  # the colours of the language


def test_a_no_can_carry_a_reason_for_the_model(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "cart.py").write_text(CART)
    model.answer = editing(PRICE)
    terminal = start(columns=110)
    terminal.enter("change it")
    terminal.wait("Edit cart.py?")
    terminal.look(0.3)
    terminal.type("n")
    terminal.wait("Why, for the model?")
    terminal.type("use a Decimal\r")
    terminal.wait("Finished.")
    assert "The user said no: use a Decimal" in str(model.bodies[-1]["messages"])
    assert (shell.project / "cart.py").read_text() == CART


def test_one_answer_allows_all_edits_of_the_session(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "cart.py").write_text(CART)
    model.answer = editing(PRICE, IMPORT)
    terminal = start(columns=110)
    terminal.wait("edits ask")
    terminal.enter("change it")
    terminal.wait("Edit cart.py?")
    terminal.look(0.3)
    terminal.type("a")
    terminal.wait("Finished.")
    terminal.wait("edits auto")
    assert (shell.project / "cart.py").read_text().startswith("import sys")
    assert "    1 + import sys" in terminal.text  # what was not asked about is shown when it is done
    terminal.type("\x1b[Z")  # Shift-Tab
    terminal.wait("edits off")
    terminal.enter("/edits ask")
    terminal.wait("You are asked before a file is changed.")


def test_an_edit_that_does_not_fit_is_not_asked_about(start: Start, model: Model, shell: Shell) -> None:
    (shell.project / "cart.py").write_text(CART)
    model.answer = editing({"path": "cart.py", "old_string": "not there", "new_string": "x"})
    terminal = start(columns=110)
    terminal.enter("change it")
    terminal.wait("Finished.")
    assert "Edit cart.py?" not in terminal.everything


def test_ctrl_c_at_a_question_stops_the_turn(start: Start, model: Model, shell: Shell) -> None:
    model.answer = writing()
    terminal = start(columns=110)
    terminal.enter("write it")
    terminal.wait(QUESTION)
    terminal.type("\x03")
    terminal.wait("stopped; what was said is kept")
    assert not (shell.project / "CLAUDE.md").exists()
    assert terminal.process.poll() is None
