"""A word that was meant as a command, file or model is answered and never sent; `ra --help` is drawn from the flags."""

import pytest

from ra.cli import flags, near_miss
from ra.cli.repl.commands import TABLE, unslashed
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
        (["--continue-session", "hi"], "--continue?"),
        (["mcp-list"], "ra mcp list"),
        (["resume", "f1f447ef20"], "ra --resume f1f447ef20"),
        (["cart.py"], "There is no file cart.py here"),
        (["gpt5"], "ra -m gpt5"),
        (["opus-4"], "ra -m opus-4"),
        (["signin"], "ra doctor"),
        (["apikey"], "ANTHROPIC_API_KEY"),
        (["tokens"], "ra context"),
        (["git"], "command of your shell"),
        (["cnotext"], "ra context"),
        (["license"], "MIT"),
        (["feedback"], "ra doctor"),
        (["bash"], "command of your shell"),
        (["help", "contxt"], "ra help context"),
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
        ["/etc/hosts", "is", "wrong"],
        ["/login returns 500"],
        ["/s means sarcasm?"],
        ["resume", "work"],
        ["session", "start", "fails"],
        ["chat", "about", "it"],
        ["exec", "summary", "of", "README"],
        ["run", "npm test"],
        ["help", "me"],
        ["opus", "magnum"],
        ["review", "status"],
        ["fix", "login"],
        ["edit", "resume"],
        ["search", "google"],
        ["search", "engines"],
        ["use", "async", "here"],
        ["show", "me"],
        ["start", "over"],
        ["@*.py"],
        ["@notes.txt:1-9"],
        ["k8s"],
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


REAL_PROMPTS = """
next commit confirm think retry clean content contents print reset edit recap remind quiet patch match plain point work
really learn linear state test tests fix explain why? warum weiter danke erkläre prüfen übersetze kürzer held hell
继续 为什么 解释 修复 なぜ продолжай résume résumé resumen continuer continua corrige gracias node.js
"""


@pytest.mark.parametrize("word", REAL_PROMPTS.split())
def test_a_word_of_a_language_is_no_misspelt_command(word: str) -> None:
    assert near_miss.on_command_line([word], piped=True) is None
    assert unslashed.hint(word) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "keep",
        "drop",
        "forget",
        "yes",
        "no",
        "the second",
        "option 2",
        "keep it",
        "thinking",
        ".env is missing",
        ":) thanks",
        "\\d+ matches what?",
        "help me",
        "rewind it",
        "undo that",
        "git status",
        "-1",
        "-- a comment",
    ],
)
def test_an_answer_to_the_model_is_sent_unless_it_is_a_whole_command(answer: str) -> None:
    assert bool(unslashed.hint(answer)) == (answer == "thinking")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("edits auto", "Type /edits auto"),
        ("thinking high", "Type /thinking high"),
        ("model opus", "Type /model opus"),
        ("context all", "Type /context all"),
        ("cost?", "Type /cost"),
        ("sonnet", "Type /model sonnet"),
        ("bye", "Type /quit"),
        ("cmopact", "Did you mean /compact?"),
        ("sesions", "Did you mean /sessions?"),
        ("stratgey", "Did you mean /strategy?"),
        ("udno", "Did you mean /undo?"),
        ("permisions", "Did you mean /permissions?"),
        (":q!", "Type /quit"),
        (":help", "Type /help"),
        (".exit", "Type /quit"),
        ("\\compact", "Type /compact"),
        ("//compact the plan", "Type /compact"),
        ("help compact", "Type /help compact"),
        ("rewind 2", "Type /rewind 2"),
        ("omit #3", "Type /omit #3"),
        ("claude --resume", "You are in ra"),
        ("@", "first letters of a file's name"),
    ],
)
def test_a_command_without_its_slash_is_no_prompt(line: str, hint: str) -> None:
    assert hint in unslashed.hint(line)


def test_the_command_line_knows_the_commands_of_the_interactive_prompt() -> None:
    assert sorted(near_miss.SLASH) == sorted(command.name for command in TABLE)


def test_help_and_version_do_what_is_meant(shell: Shell) -> None:
    assert shell.ra("version").stdout == shell.ra("--version").stdout
    assert shell.ra("help").stdout == shell.ra("--help").stdout
    assert b"ra sessions" in shell.ra("help", "sessions").stdout


def test_the_help_names_every_flag_and_command(shell: Shell) -> None:
    text = shell.ra("--help", env={"COLUMNS": "120"}).stdout.decode()

    missing = [flag.names[-1] for flag in flags.ALL if flag.names[-1] not in text]
    assert (missing, [name for name in flags.COMMANDS if name not in text]) == ([], [])
