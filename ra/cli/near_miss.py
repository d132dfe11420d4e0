"""Answer words that were meant as a command, a flag, a file or a model, instead of paying for them as a prompt."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ra.cli import flags
from ra.core.value import Value

CLOSE = 0.72  # of difflib's ratio: modle is close to models, test is not close to trust
PREFIX = 4  # letters of a command that are enough to be taken for it: sess, perm

# Words that other programs have as commands, and what does the same here.
ELSEWHERE = {
    "ask": 'ra "your question"',
    "auth": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "budget": 'ra --max-cost 0.50 "your question"; ra cost shows what was spent',
    "chat": "ra, without a prompt",
    "clear": "ra, without a prompt, begins a new session",
    "commands": "ra --help",
    "commit": 'ra "commit the changes"',
    "completion": "ra --install-completion",
    "continue": "ra -c",
    "copy": "ra -c --fork",
    "debug": 'ra -v "your question", or ra doctor',
    "demo": "ra tour",
    "edit": 'ra "what to change in @file"; --edits auto does not ask',
    "exec": 'ra "your question"',
    "exit": "nothing: ra is not running. In the interactive prompt, /quit leaves",
    "export": "ra sessions export ID",
    "fork": "ra -c --fork",
    "history": "ra sessions list",
    "hooks": "ra --show-context, and agent.middleware in ra.yaml",
    "info": "ra doctor",
    "init": "ra config init",
    "install": "ra local install (the embedded model), or ra --install-completion",
    "interactive": "ra, without a prompt",
    "key": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "keys": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "list": "ra sessions list",
    "login": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "logout": "unset ANTHROPIC_API_KEY (or another provider's)",
    "ls": "ra sessions list",
    "man": "ra --help",
    "memory": "ra entry list",
    "new": "ra, without a prompt, begins a new session",
    "perms": "ra permissions",
    "plugin": "ra mcp, or agent.middleware in ra.yaml",
    "plugins": "ra mcp, or agent.middleware in ra.yaml",
    "price": 'ra models, or ra --dry-run "your question"',
    "prices": 'ra models, or ra --dry-run "your question"',
    "pricing": 'ra models, or ra --dry-run "your question"',
    "prompt": 'ra "your question"',
    "providers": "ra models, or ra doctor",
    "quit": "nothing: ra is not running. In the interactive prompt, /quit leaves",
    "ra": "ra, without a prompt",
    "repl": "ra, without a prompt",
    "resume": "ra -c (the latest session), or ra --resume ID; ra sessions list shows them",
    "review": 'git diff | ra "review this"',
    "run": 'ra "your question"',
    "save": "nothing: every session is stored; ra sessions list shows them",
    "search": "ra recall WORDS",
    "settings": "ra --show-config, or ra config",
    "setup": "ra doctor",
    "skill": "ra --show-context",
    "skills": "ra --show-context",
    "spend": "ra cost",
    "start": "ra, without a prompt",
    "stats": "ra cost",
    "status": "ra doctor",
    "tools": "ra permissions, or /tools in the interactive prompt",
    "tutorial": "ra tour",
    "uninstall": "pip uninstall ra-agent",
    "update": "pip install --upgrade ra-agent",
    "upgrade": "pip install --upgrade ra-agent",
    "usage": "ra cost",
    "whoami": "ra doctor",
}

# The commands of the interactive prompt: their table is too slow to load for a word on the command line.
SLASH = (
    *(
        "attach",
        "clear",
        "compact",
        "config",
        "context",
        "cost",
        "drop",
        "edits",
        "entries",
        "fork",
        "forget",
        "help",
        "keep",
        "model",
        "omit",
    ),
    *("permissions", "pin", "quit", "recall", "resume", "rewind", "said", "sessions", "strategy", "thinking", "tools"),
    *("undo",),
)

# What other programs call a command of the interactive prompt, and what does the same here.
SYNONYMS = {
    "agents": "!ra agent",
    "bug": "!ra doctor",
    "copy": "/fork",
    "doctor": "!ra doctor",
    "export": "!ra sessions export ID",
    "history": "/sessions, or Ctrl-R for earlier prompts",
    "hooks": "!ra --show-context",
    "init": "!ra config init",
    "load": "/resume",
    "login": "!ra doctor, which says what key is found",
    "logout": "!ra doctor, which says what key is found",
    "mcp": "!ra mcp list",
    "memory": "/entries; /pin TEXT adds one",
    "messages": "/context messages",
    "models": "/model",
    "new": "/clear",
    "pins": "/entries",
    "provider": "/model PROVIDER/NAME",
    "reset": "/clear",
    "restart": "/clear",
    "save": "nothing: every step is stored; /sessions lists the sessions",
    "search": "/recall WORDS",
    "settings": "/config",
    "skills": "!ra --show-context",
    "stats": "/cost",
    "status": "/context, or /cost",
    "summarize": "/compact",
    "tokens": "/context",
    "usage": "/cost",
    "version": "!ra --version",
    "whoami": "!ra doctor",
}
ALSO_PROMPTS = {"copy", "export", "load", "messages", "reset", "restart", "save", "search", "status", "summarize"}
"""Synonyms that, without a slash, may well be meant for the model."""

CONTINUES = ("-c", "--continue", "--resume")

FAMILIES = ("claude", "opus", "sonnet", "haiku", "gpt", "gemini")
SUBCOMMANDS = {"list", "ls", "show", "add", "rm", "remove", "delete", "get", "set", "status", "info"}
"""What any program's commands are followed by."""

EVERY_TOOL_HAS = {"chat", "exit", "init", "login", "logout", "quit", "resume", "tools", "update", "upgrade"}
"""Words that are no prompt even behind a pipe or in a conversation, where `review` and `continue` are."""

SHELL_WORDS = {"ls", "pwd", "cd", "cat", "git", "make", "pytest", "top", "ps", "vim", "nano", "man"}


class Meant(Value, frozen=True):
    """What a line was meant as: `run` are words to run in its place, else `words` say what to type."""

    words: str = ""
    run: tuple[str, ...] = ()


def on_command_line(argv: Sequence[str], program: str = "ra", *, piped: bool = False) -> Meant | None:
    """What these arguments were meant as; None for a prompt. `piped`: there is text for the prompt to be about."""
    if "--" in argv:
        return None
    places = list(flags.prompt_words(argv))
    words = [word for _, word in places]
    if not words or any(len(word.split()) != 1 for word in words[:2]):
        return None  # a quoted sentence is a prompt
    first = words[0].lower()
    if first == "help" and len(words) <= 2 and (len(words) == 1 or words[1] in flags.COMMANDS):
        return Meant(run=(*words[1:], "--help"))
    if len(words) > 1:
        return _subcommand(first, words[1], program)
    return _single(words[0], program, about=piped or any(word in CONTINUES for word in argv))


def _subcommand(first: str, second: str, program: str) -> Meant | None:
    """`session list`: a near miss of a command, followed by one of its subcommands."""
    command = close(first, flags.COMMANDS)
    if command is None or first in flags.COMMANDS:
        return None
    if second in _subcommands(command):
        return Meant(f"There is no command {first}; write: {program} {command} {second}")
    if second in SUBCOMMANDS:
        return Meant(f"There is no command {first}; did you mean {program} {command}? {program} {command} --help")
    return None


def _subcommands(command: str) -> set[str]:
    from ra.cli.completion import subcommands  # the generated table; only a near miss needs it

    return subcommands(command)


def _single(word: str, program: str, *, about: bool) -> Meant | None:
    """One word that is meant as something else than a prompt: as it stands, or misspelt.

    `about`: the prompt is about a text or a conversation, so that one word may well be all of it.
    """
    lower = word.lower().rstrip("?!.")
    anyway = f"To ask the model just that: {program} -- {word}"
    if lower == "version":
        return Meant(run=("--version",))
    if word == "?":
        return Meant(run=("--help",))
    if lower in (EVERY_TOOL_HAS if about else ELSEWHERE):
        return Meant(f"{word} is not a command here; what you want is: {ELSEWHERE[lower]}. {anyway}")
    if lower.startswith("/") and _slash(lower[1:]):
        return Meant(f"{word} is a command of the interactive prompt: start {program}, then type it there. {anyway}")
    if command := close(lower, flags.COMMANDS):
        return Meant(f"There is no command {word}; did you mean {program} {command}? {anyway}")
    if _exists(word.removeprefix("@")):
        name = word.removeprefix("@")
        kind = "folder" if Path(name).expanduser().is_dir() else "file"
        return Meant(f'{name} is a {kind}; say what to do with it: {program} "explain @{name}". {anyway}')
    if _is_model(lower):
        return Meant(f'{word} is a model; write: {program} -m {word} "your question". {anyway}')
    if flag := close(lower, ("help", "version")):
        return Meant(f"There is no command {word}; did you mean {program} --{flag}? {anyway}")
    if about:
        return None
    if lower not in SLASH and (elsewhere := one_typo(lower, ELSEWHERE)):
        return Meant(f"There is no command {word}; for {elsewhere}: {ELSEWHERE[elsewhere]}. {anyway}")
    if slash := close(lower, SLASH):
        return Meant(
            f"There is no command {word}; /{slash} is one of the interactive prompt: start {program}. {anyway}"
        )
    return None


def close(word: str, names: Iterable[str]) -> str | None:
    """The name that a misspelt word is near to; a beginning or a longer form of it counts."""
    word, choices = word.lower(), list(names)
    if len(word) < 3:
        return None
    for name in choices:
        longer = len(name) >= PREFIX and word.startswith(name) and len(word) - len(name) <= 2
        if len(word) >= PREFIX and (longer or name.startswith(word)):
            return name
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=CLOSE)), None)


def one_typo(word: str, names: Iterable[str]) -> str | None:
    """The name that differs by one letter, or by two that changed places: other words of a language are farther off."""
    return next((name for name in names if len(word) > PREFIX and _is_one_typo(word, name)), None)


def _is_one_typo(word: str, name: str) -> bool:
    if abs(len(word) - len(name)) > 1 or word == name:
        return False
    start = next((at for at, (left, right) in enumerate(zip(word, name, strict=False)) if left != right), None)
    if start is None:
        return True  # one letter more, or less, at the end
    left, right = word[start:], name[start:]
    swapped = left[:2] == right[1::-1] and left[2:] == right[2:]
    return swapped or left[1:] == right[1:] or left[1:] == right or left == right[1:]


def _slash(name: str) -> bool:
    return close(name, SLASH) is not None


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_model(name: str) -> bool:
    if name in FAMILIES:
        return True
    if "-" not in name:
        return False
    if name.startswith(tuple(f"{family}-" for family in FAMILIES)):
        return True  # a run with -m says what the catalog has in its place
    from ra.providers import catalog  # the run would load it a moment later

    return any(row.info.id == name for row in catalog.rows())


def in_conversation(text: str, names: Sequence[str] = SLASH) -> str:
    """What to say about a line of the interactive prompt that was meant as a command; "" for a prompt."""
    words = text.split()
    first = words[0].lower() if words else ""
    if len(words) == 1 and first in names:
        return f"Type /{first} for the command."
    if len(words) == 1 and (name := close(first, names)) and not first.startswith("@"):
        return f"Did you mean /{name}?"
    if len(words) == 1 and first in SYNONYMS and first not in ALSO_PROMPTS:
        return f"Type {SYNONYMS[first]}."
    if len(words) == 1 and first in SHELL_WORDS:
        return f"Type !{first} to run it in your shell."
    if first.startswith("-") and first.partition("=")[0] in flags.BY_FLAG:
        flag = flags.BY_FLAG[first.partition("=")[0]].names[-1].removeprefix("--")
        there = f"Type /{flag} here." if flag in names else "Leave with /quit, and start ra with the flag."
        return f"Flags belong on the command line. {there}"
    if first in ("ra", "agentx") and len(words) > 1 and (words[1] in flags.COMMANDS or words[1] in flags.BY_FLAG):
        there = f" Type /{words[1]}, or" if words[1] in names else " Type"
        return f"You are in ra already.{there} !{text.strip()} to run it in your shell."
    return ""
