"""Tab in a real bash; the other shells where they are installed, else their scripts as text."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ra.cli.completion import SCRIPTS, complete, install
from ra.core.errors import UsageError
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell, measured


def words(*typed: str, shell: Shell) -> list[str]:
    return [word for word, _ in complete(typed, shell.env, shell.project)]


def tab(shell: Shell, *typed: str) -> list[str]:
    """What bash would offer for these words, the last of which is being typed."""
    quoted = " ".join(f"'{word}'" for word in ("ra", *typed))
    there = f"source <(ra --show-completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(typed)}; _ra"
    program = there + '; printf "%s\\n" "${COMPREPLY[@]}"'
    env = shell.env | {"PATH": f"{Path(RA).parent}:{shell.env['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", program], env=env, cwd=shell.project, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_bash_completes_commands_flags_values_and_sessions(shell: Shell, hello: LoopbackServer) -> None:
    session = json.loads(shell.ra("--output-format", "json", "hi").stdout)["session"]
    assert tab(shell, "ses") == ["sessions"]
    assert tab(shell, "--output") == ["--output-format"]
    assert tab(shell, "--thinking", "m") == ["medium"]
    assert tab(shell, "--thinking", "=", "a") == ["adaptive"]
    assert tab(shell, "--resume", "") == [session]
    assert tab(shell, "-q", "sessions", "show", session[:3]) == [session]
    assert tab(shell, "permissions", "exp") == ["explain"]
    assert tab(shell, "sessions", "list", "--j") == ["--json"]


def test_where_files_belong_the_shell_is_left_to_offer_them(shell: Shell) -> None:
    for typed in (["--file", ""], ["--config", "r"], ["@", "s"], ["explain", "this", ""]):
        assert words(*typed, shell=shell) == []


def test_a_word_of_a_prompt_ends_the_commands_but_not_the_flags(shell: Shell) -> None:
    assert "sessions" in words("", shell=shell)
    assert "sessions" in words("--model", "x", "", shell=shell)
    assert words("hello", "s", shell=shell) == []
    assert words("--", "s", shell=shell) == []
    assert words("hello", "--dry", shell=shell) == ["--dry-run"]


def test_agents_and_models_are_completed(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agents:\n  devops-agent: {model: x}\n")
    assert words("--agent", "dev", shell=shell) == ["devops-agent"]
    assert "claude-sonnet-4-6" in words("-m", "claude-s", shell=shell)


def test_a_broken_configuration_or_store_offers_nothing_and_says_nothing(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agents: [\n")
    data = shell.home.parent / "data"
    data.mkdir()
    (data / "ra.db").write_bytes(b"rubbish" * 1000)
    for typed in (["--agent", ""], ["--resume", ""]):
        done = shell.ra("--complete", *typed)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_tab_does_not_import_typer(shell: Shell) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "ra", "--complete", "sessions", "list", "--"]
    env = {name: value for name, value in shell.env.items() if name not in measured()}
    done = subprocess.run(command, cwd=shell.project, env=env, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "--json" in done.stdout
    assert loaded & {"typer", "click", "rich", "pydantic", "sqlite3", "yaml"} == set()


@pytest.mark.parametrize(("program", "flag"), [("bash", "-n"), ("zsh", "-n"), ("fish", "-n")])
def test_scripts_are_valid(program: str, flag: str) -> None:
    text = SCRIPTS[program]
    assert "ra --complete" in text.replace('"${COMP_WORDS[0]}"', "ra").replace('"${words[1]}"', "ra").replace(
        "$words[1]", "ra"
    )
    if shutil.which(program):
        subprocess.run([program, flag], input=text, text=True, check=True)


def test_installing_is_done_once_and_bash_then_has_it(shell: Shell) -> None:
    for _ in range(2):
        assert shell.ra("--install-completion", "bash").returncode == 0
    rc = shell.home / ".bashrc"
    assert rc.read_text().count("# ra completion") == 1
    shown = subprocess.run(
        ["bash", "--norc", "-c", f"source {rc}; complete -p ra"],
        env=shell.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "complete -o default -F _ra ra\n"


def test_installing_knows_the_shell_and_keeps_what_the_files_hold(shell: Shell) -> None:
    (shell.home / ".zshrc").write_text("alias x=y")
    install("", shell.env | {"SHELL": "/usr/bin/zsh"})
    assert (shell.home / ".zshrc").read_text().splitlines()[0] == "alias x=y"
    assert install("fish", shell.env)[0] == shell.home / ".config/fish/completions/ra.fish"
    with pytest.raises(UsageError, match="bash, zsh, fish"):
        install("", shell.env | {"SHELL": "/bin/tcsh"})
    assert shell.ra("--show-completion", "csh").returncode == 2


def test_an_at_finds_a_file_anywhere_in_the_project_by_some_letters_of_it(shell: Shell) -> None:
    (shell.project / "src/cart").mkdir(parents=True)
    for name in ("parser.py", "spare_parts.py", "two words.py"):
        (shell.project / "src/cart" / name).write_text("")
    assert tab(shell, "explain", "@", "pars") == ["src/cart/parser.py"]  # as bash takes the word apart
    assert tab(shell, "explain", "@", "sr") == []  # it begins so: the shell offers it itself
    assert words("explain", "@pars", shell=shell) == ["@src/cart/parser.py"]
    assert words("explain", "@sr", shell=shell) == ["@src/", "@src/cart/parser.py", "@src/cart/spare_parts.py"]
    assert words("explain", "@/nosuch", shell=shell) == words("explain", "@", "/nosuch", shell=shell) == []
    assert words("explain", "@words", shell=shell) == []
