"""Plausible mistakes on the command line: none is paid, each says what to type."""

import pytest

from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

MISTAKES: list[tuple[list[str], str]] = [
    # commands
    (["sesions"], "ra sessions"),
    (["session"], "ra sessions"),
    (["session", "list"], "ra sessions list"),
    (["modles"], "ra models"),
    (["model"], "ra models"),
    (["contxt"], "ra context"),
    (["confg"], "ra config"),
    (["docter"], "ra doctor"),
    (["benhc"], "ra bench"),
    (["permision"], "ra permissions"),
    (["login"], "ra doctor"),
    (["auth"], "ra doctor"),
    (["init"], "ra config init"),
    (["resume"], "ra -c"),
    (["continue"], "ra -c"),
    (["chat"], "ra, without a prompt"),
    (["repl"], "ra, without a prompt"),
    (["update"], "pip install --upgrade"),
    (["upgrade"], "pip install --upgrade"),
    (["tools"], "ra permissions"),
    (["exit"], "/quit"),
    (["history"], "ra sessions list"),
    (["usage"], "ra cost"),
    (["/compact"], "interactive prompt"),
    (["/model"], "interactive prompt"),
    # flags
    (["--modle", "x", "hi"], "--model"),
    (["--contiue", "hi"], "--continue"),
    (["--promt", "hi"], "without a flag"),
    (["--yolo", "hi"], "--edits auto"),
    (["--max-costs", "1", "hi"], "--max-cost"),
    (["--edits", "yes", "hi"], "'ask', 'auto', 'off'"),
    (["--thinking", "hgih", "hi"], "off, low, medium, high"),
    (["--compaction", "sumarize", "hi"], "summarize"),
    (["--provider", "antropic", "hi"], "anthropic"),
    (["--max-cost", "cheap", "hi"], "--max-cost takes a number (dollars)"),
    (["--set", "agent.modle=x", "hi"], "did you mean model?"),
    (["--output-format", "xml", "hi"], "json"),
    # models
    (["gpt-5"], 'ra -m gpt-5 "your question"'),
    (["opus"], 'ra -m opus "your question"'),
    (["-m", "gpt5", "hi"], "gpt-5"),
    (["-m", "claude-sonet-5", "hi"], "claude-sonnet-5"),
    (["-m", "claude", "hi"], "claude-sonnet-5-5"),
    (["-m", "gemini-flash-2.5", "hi"], "gemini-2.5-flash"),
    # misspelt words of other programs, and commands of the interactive prompt without its slash
    (["hlep"], "ra --help"),
    (["verison"], "ra --version"),
    (["resum"], "ra -c"),
    (["perms"], "ra permissions"),
    (["rewind"], "/rewind"),
    (["entires"], "/entries"),
    (["pricing"], "ra models"),
    (["memory"], "ra entry list"),
    (["plugins"], "ra mcp"),
    (["skills"], "ra --show-context"),
    (["exprot"], "ra sessions export"),
    (["demo"], "ra tour"),
    (["model", "list"], "ra models"),
    (["sesion", "ls"], "ra sessions"),
    (["claude"], 'ra -m claude "your question"'),
    (["gemini-pro"], 'ra -m gemini-pro "your question"'),
    (["-m", "", "hi"], "the value is empty"),
    # other programs' commands, with what follows them
    (["exec", "fix the bug"], 'ra "fix the bug"'),
    (["chat", "hello there"], 'ra "hello there"'),
    (["resume", "last"], "ra -c"),
    (["session", "resume", "4f"], "ra --resume ID"),
    (["hlep", "sessions"], "ra sessions --help"),
    (["/model", "opus"], "start ra, then type /model"),
    (["/compact focus on the tests"], "start ra, then type /compact"),
    (["/modle", "opus"], "start ra, then type /model"),
    (["config", "set", "agent.model", "opus"], "ra --set KEY=VALUE"),
    (["sessions", "delete", "4f"], "ra sessions rm 4f"),
    (["sessions", "resume", "4f"], "ra --resume ID"),
    (["entry", "add", "style"], "ra entry set style"),
    (["mcp", "add", "github"], "agent.mcpServers"),
    (["permissions", "allow", "Bash"], "ra --allow RULE"),
    (["cost", "--today"], "ra cost --since 1d"),
    (["cost", "of", "living"], "ra -- cost of living"),
    (["recall"], "ra recall QUERY|REF"),
    # other programs' flags, and flags without what belongs to them
    (["-r"], "--resume ID"),
    (["-r", "4f", "hi"], "--resume ID"),
    (["-y", "hi"], "--edits auto"),
    (["-C", "src", "hi"], "cd FOLDER first"),
    (["-V"], "--version"),
    (["-help"], "--help?"),
    (["-version"], "--version?"),
    (["--Model", "opus", "hi"], "--model?"),
    (["--sessions"], "ra sessions"),
    (["--login"], "ra doctor"),
    (["--list-models"], "ra models"),
    (["--image", "a.png", "hi"], "--file PATH"),
    (["--effort", "high", "hi"], "--thinking LEVEL"),
    (["--format", "json", "hi"], "--output-format"),
    (["--dry", "hi"], "--dry-run"),
    (["--temperature", "0", "hi"], "--thinking LEVEL"),
    (["--api-key", "sk-x", "hi"], "export ANTHROPIC_API_KEY"),
    (["--resume"], "ra sessions list"),
    (["--continue=4f", "hi"], "--resume 4f"),
    (["--model"], "ra models lists them"),
    (["--provider", "ollama", "hi"], "OPENAI_BASE_URL=http://127.0.0.1:11434/v1"),
    (["--provider", "claude", "hi"], "--provider anthropic"),
    (["--deny", "Bsh(rm:*)", "hi"], "Bash(rm:*)"),
    (["--allow", "git", "hi"], "Bash(git:*)"),
    (["-m", "opus-4.5", "hi"], "claude-opus-4-5"),
    (["-m", "antropic/claude-opus-5", "hi"], "anthropic/claude-opus-5"),
    # two words of other programs, in another order, and behind the program's own name
    (["auth", "status"], "ra doctor"),
    (["keys", "list"], "export ANTHROPIC_API_KEY"),
    (["login", "openai"], "export ANTHROPIC_API_KEY"),
    (["list", "sessions"], "ra sessions list"),
    (["show", "config"], "ra config show"),
    (["switch", "to", "opus"], "ra -m opus"),
    (["ra", "sessions"], "ra sessions"),
    (["ra", "hello there"], 'ra "hello there"'),
    # what no language writes
    (["whats-new"], "ra --help"),
    (["qwen2.5-coder"], "ra -m qwen2.5-coder"),
    (["openai/gpt-5"], "ra -m openai/gpt-5"),
    (["https://example.com"], "summarize url:https://example.com"),
    (["--max-duration", "5m", "hi"], "--max-duration takes a number (seconds)"),
    (["-m", "anthropic", "hi"], "did you mean claude-sonnet"),
    # files and sessions
    (["notes.tx"], "@notes.txt"),
    (["@nots.txt"], "@notes.txt"),
    (["NOTES"], "@notes.txt"),
    (["folder"], "is a folder"),
    (["Makefile"], "is a file"),
    (["notes.txt"], 'ra "explain @notes.txt"'),
    (["./notes.txt"], "is a file"),
    (["-f", "nots.txt", "hi"], "notes.txt"),
    (["--config", "nosuch.yaml", "hi"], "nosuch.yaml"),
    (["--resume", "nosuch", "hi"], "nosuch"),
    (["--fork", "hi"], "-c or --resume"),
    (["-c", "hi"], "Start one"),
]


@pytest.mark.parametrize(
    ("words", "hint"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_mistake_is_not_paid_and_says_what_to_type(
    shell: Shell, hello: LoopbackServer, words: list[str], hint: str
) -> None:
    (shell.project / "notes.txt").write_text("notes")
    (shell.project / "Makefile").write_text("")
    (shell.project / "folder").mkdir()
    done = shell.ra(*words)
    assert (hello.requests, done.stdout) == ([], b"")
    assert done.returncode != 0
    assert hint in done.stderr.decode()
