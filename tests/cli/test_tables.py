"""Can the tables of commands be read on a terminal of any width?"""

import pytest

from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal


def shown(shell: Shell, *args: str, columns: int) -> str:
    with PtyTerminal([RA, *args], env=shell.env, cwd=shell.project, rows=200, columns=columns) as terminal:
        assert terminal.wait_exit() == 0
        return terminal.text


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", ["context", "cost", "sessions list"])
def test_no_word_is_torn_apart(shell: Shell, hello: LoopbackServer, command: str, columns: int) -> None:
    shell.ra("hi")
    text = shown(shell, *command.split(), columns=columns)
    words = {"context": "conversation volatile", "cost": "claude-sonnet-5-5", "sessions list": "claude-sonnet-5-5"}
    assert [word for word in words[command].split() if word not in text] == []


def test_eighty_columns_are_enough_for_the_names_of_providers(shell: Shell) -> None:
    text = shown(shell, "models", columns=80)
    assert text.count("openai-chat") > 10
    assert "model claude" not in text  # a table, not paragraphs
