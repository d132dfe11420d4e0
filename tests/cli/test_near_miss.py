"""A word that was meant as a command, file or model is answered and never sent; `ra --help` is drawn from the flags."""

import pytest

from ra.cli import flags, near_miss
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sesions"], "ra sessions"),
        (["session", "list"], "ra sessions list"),
        (["modle", "forget"], "ra models forget"),
        (["contxt", "diff"], "ra context diff"),
        (["login"], "ra doctor"),
        (["init"], "ra config init"),
        (["resume"], "ra -c"),
        (["update"], "pip install --upgrade"),
        (["chat"], "ra, without a prompt"),
        (["exit"], "/quit"),
        (["tools"], "ra permissions"),
        (["/compact"], "interactive prompt"),
        (["notes.txt"], 'ra "explain @notes.txt"'),
        (["--modle", "x", "hi"], "--model"),
    ],
)
def test_a_near_miss_is_exit_2_and_never_sent(shell: Shell, hello: LoopbackServer, words: list[str], hint: str) -> None:
    (shell.project / "notes.txt").write_text("notes")

    done = shell.ra(*words)

    assert (done.returncode, done.stdout, hello.requests) == (2, b"", [])
    assert hint in done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        ["hello"],
        ["why", "not"],
        ["explain this"],
        ["--", "sesions"],
        ["test"],
        ["thanks"],
        ["second"],
        ["-c", "continue"],
    ],
)
def test_a_prompt_stays_a_prompt(words: list[str]) -> None:
    assert near_miss.on_command_line(words) is None


@pytest.mark.parametrize("word", ["review", "summarize", "commit", "explain"])
def test_one_word_about_piped_text_is_a_prompt(word: str) -> None:
    assert near_miss.on_command_line([word], piped=True) is None


@pytest.mark.parametrize("word", ["login", "sesions", "exit"])
def test_behind_a_pipe_too_a_command_is_no_prompt(word: str) -> None:
    assert near_miss.on_command_line([word], piped=True) is not None


def test_help_and_version_do_what_is_meant(shell: Shell) -> None:
    assert shell.ra("version").stdout == shell.ra("--version").stdout
    assert shell.ra("help").stdout == shell.ra("--help").stdout
    assert b"ra sessions" in shell.ra("help", "sessions").stdout


def test_the_help_names_every_flag_and_command(shell: Shell) -> None:
    text = shell.ra("--help", env={"COLUMNS": "120"}).stdout.decode()

    missing = [flag.names[-1] for flag in flags.ALL if flag.names[-1] not in text]
    assert (missing, [name for name in flags.COMMANDS if name not in text]) == ([], [])
