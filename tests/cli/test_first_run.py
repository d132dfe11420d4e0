"""A newcomer with no key and no model: six lines, and on a terminal the offer of the embedded model."""

import pytest

from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal


def test_on_a_terminal_the_embedded_model_is_offered_and_no_is_taken(shell: Shell) -> None:
    with PtyTerminal([RA], env=shell.env, cwd=shell.project) as terminal:
        terminal.wait("Install the tiny model now? y/n:")
        seen = terminal.raw.decode()
        assert len(seen.splitlines()) == 7
        assert "ANTHROPIC_API_KEY" in seen
        terminal.enter("n")
        assert terminal.wait_exit() == 2


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 2)])
def test_leaving_the_question_ends_its_line(shell: Shell, key: str, code: int) -> None:
    with PtyTerminal([RA], env=shell.env, cwd=shell.project) as terminal:
        terminal.wait("Install the tiny model now? y/n:")
        terminal.type(key)
        assert terminal.wait_exit() == code
        assert terminal.raw.endswith(b"\n")


def test_yes_installs_it_and_a_failure_says_why(shell: Shell) -> None:
    shell.env |= {"PIP_NO_INDEX": "1"}
    with PtyTerminal([RA, "hello"], env=shell.env, cwd=shell.project) as terminal:
        terminal.wait("Install the tiny model now? y/n:")
        terminal.enter("y")
        terminal.wait("could not be downloaded")
        assert terminal.wait_exit() == 1


def test_scripts_are_not_asked(shell: Shell) -> None:
    for flags in ([], ["--output-format", "json"]):
        done = shell.ra(*flags, "hi")
        assert done.returncode == 2
        assert b"y/n" not in done.stdout + done.stderr
