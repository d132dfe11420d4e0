"""Answer words that were meant as a command, a flag, a file or a model, instead of paying for them as a prompt."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ra.cli import flags
from ra.core.value import Value

# Words that other programs have as commands, and what does the same here.
ELSEWHERE = {
    "about": "ra --version, or ra doctor",
    "api-key": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "apikey": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "ask": 'ra "your question"',
    "auth": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "budget": 'ra --max-cost 0.50 "your question"; ra cost shows what was spent',
    "chat": "ra, without a prompt",
    "clear": "ra, without a prompt, begins a new session",
    "commands": "ra --help",
    "commit": 'ra "commit the changes"',
    "completion": "ra --install-completion",
    "configure": "ra config",
    "continue": "ra -c",
    "copy": "ra -c --fork",
    "daemon": "ra serve",
    "debug": 'ra -v "your question", or ra doctor',
    "demo": "ra tour",
    "edit": 'ra "what to change in @file"; --edits auto does not ask',
    "env": "ra --show-config, or ra doctor",
    "exec": 'ra "your question"',
    "exit": "nothing: ra is not running. In the interactive prompt, /quit leaves",
    "export": "ra sessions export ID",
    "fork": "ra -c --fork",
    "gui": "ra open, or ra serve",
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
    "shell": "ra, without a prompt",
    "signin": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "sign-in": "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it",
    "skill": "ra --show-context",
    "skills": "ra --show-context",
    "spend": "ra cost",
    "start": "ra, without a prompt",
    "stats": "ra cost",
    "status": "ra doctor",
    "tokens": "ra context, or ra cost",
    "tools": "ra permissions, or /tools in the interactive prompt",
    "tui": "ra, without a prompt",
    "tutorial": "ra tour",
    "ui": "ra, without a prompt, or ra open",
    "uninstall": "pip uninstall ra-agent",
    "update": "pip install --upgrade ra-agent",
    "upgrade": "pip install --upgrade ra-agent",
    "usage": "ra cost",
    "web": "ra open, or ra serve",
    "webui": "ra open, or ra serve",
    "whoami": "ra doctor",
    "yolo": 'ra --edits auto "your question"',
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
    "add": "/attach PATH, or @PATH in the prompt",
    "agents": "!ra agent",
    "approvals": "/edits, or /permissions",
    "ask": "the question without a command",
    "auto": "/edits auto",
    "bug": "!ra doctor",
    "bye": "/quit, or press Ctrl-D",
    "cd": "/quit, and start ra in that folder",
    "code": "what to do, without a command",
    "commit": "commit the changes, without a command",
    "copy": "/fork",
    "diff": "!git diff",
    "doctor": "!ra doctor",
    "export": "!ra sessions export ID",
    "history": "/sessions, or Ctrl-R for earlier prompts",
    "hooks": "!ra --show-context",
    "init": "!ra config init",
    "load": "/resume",
    "ls": "!ls",
    "login": "!ra doctor, which says what key is found",
    "logout": "!ra doctor, which says what key is found",
    "mcp": "!ra mcp list",
    "memory": "/entries; /pin TEXT adds one",
    "messages": "/context messages",
    "models": "/model",
    "mode": "/edits, /thinking or /strategy",
    "new": "/clear",
    "output": "/tools",
    "pins": "/entries",
    "plan": "/edits off, which makes no changes",
    "provider": "/model PROVIDER/NAME",
    "q": "/quit, or press Ctrl-D",
    "reset": "/clear",
    "restart": "/clear",
    "retry": "the prompt again: Up brings it back",
    "review": "review the changes, without a command",
    "run": "!COMMAND",
    "save": "nothing: every step is stored; /sessions lists the sessions",
    "search": "/recall WORDS",
    "settings": "/config",
    "skills": "!ra --show-context",
    "stats": "/cost",
    "status": "/context, or /cost",
    "shell": "!COMMAND",
    "summarize": "/compact",
    "terminal": "!COMMAND",
    "test": "run the tests, without a command; or !COMMAND",
    "theme": "/quit, and start ra with COLORFGBG=0;15 for a light background",
    "title": "nothing: a session is named by its first prompt",
    "rename": "nothing: a session is named by its first prompt",
    "tokens": "/context",
    "usage": "/cost",
    "version": "!ra --version",
    "vim": "nothing: the line is edited with the keys of Emacs; /help lists them",
    "web": "url:ADDRESS in the prompt",
    "whoami": "!ra doctor",
    "yolo": "/edits auto",
}
ALSO_PROMPTS = {
    *("add", "ask", "auto", "code", "commit", "copy", "diff", "export", "load", "messages", "mode", "output", "plan"),
    *("rename", "reset", "restart", "retry", "review", "run", "save", "search", "shell", "status", "summarize"),
    *("terminal", "test", "theme", "title", "web"),
}
"""Synonyms that, without a slash, may well be meant for the model."""

CONTINUES = ("-c", "--continue", "--resume")

KINDS = (".claude", ".ra")  # folders that hold commands/NAME.md

FAMILIES = ("claude", "opus", "sonnet", "haiku", "gpt", "gemini")
SUBCOMMANDS = {
    *("list", "ls", "show", "add", "rm", "remove", "delete", "get", "set", "status", "info"),
    *("resume", "edit", "export", "search"),
}
"""What any program's commands are followed by."""

BEFORE_A_SENTENCE = ("ask", "chat", "exec", "prompt", "query")
"""Commands of other programs that are followed by the prompt, in quotes."""

LATEST = ("last", "latest", "session")

OTHER_AGENTS = ("claude", "codex", "gemini", "aider", "opencode")

NEED_MORE = {"attach", "drop", "forget", "keep", "omit", "pin"}
"""Commands that want an argument: without one, and without a slash, they are words to the model."""

ARGUMENTS = {
    "context": {"all", "diff", "messages"},
    "cost": {"day", "model", "session", "source", "tool"},
    "edits": {"ask", "auto", "off"},
    "strategy": {"layered", "planner", "timeline"},
    "thinking": {"adaptive", "high", "low", "medium", "off"},
}
"""Words that make a command of a line even without its slash."""

NUMBERED = ("keep", "omit", "rewind", "tools")
"""Commands that a number makes of a line without its slash."""

EVERY_TOOL_HAS = {"chat", "exit", "init", "login", "logout", "quit", "resume", "tools", "update", "upgrade"}
"""Words that are no prompt even behind a pipe or in a conversation, where `review` and `continue` are."""

FILES = {
    *("c", "cfg", "conf", "cpp", "css", "csv", "go", "h", "html", "ini", "ipynb", "java", "json", "jsonl", "jsx"),
    *("kt", "log", "md", "pdf", "php", "png", "py", "rb", "rs", "sh", "sql", "swift", "toml", "ts", "tsx", "txt"),
    *("xml", "yaml", "yml"),
}
"""Endings that make a file's name of a word; `node.js` may be a prompt."""

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
    if not words:
        return None
    if meant := _slash_command(" ".join(words), program) or _before_a_sentence(words, program):
        return meant
    if any(len(word.split()) != 1 for word in words[:2]):
        return None  # a quoted sentence is a prompt
    first = words[0].lower()
    if first == "help" and len(words) <= 2 and (len(words) == 1 or words[1] in flags.COMMANDS):
        return Meant(run=(*words[1:], "--help"))
    if len(words) > 1:
        return _two_words(first, words[1], program, alone=len(words) == 2)
    return _single(words[0], program, about=piped or any(word in CONTINUES for word in argv))


def _slash_command(prompt: str, program: str) -> Meant | None:
    """`/compact the plan`: a command of the interactive prompt with what belongs to it."""
    name = re.match(r"/([a-z]+) +\S", prompt.lower())
    if name is None or _exists(f"/{name[1]}"):
        return None
    near = name[1] if name[1] in SLASH else _close(name[1], SLASH) if prompt.count(" ") == 1 else None
    if near is None or (near != name[1] and _is_own_command(name[1])):
        return None
    there = f"start {program}, then type /{near}"
    return Meant(f"/{name[1]} is a command of the interactive prompt: {there} there. {_anyway(prompt, program)}")


def _before_a_sentence(words: Sequence[str], program: str) -> Meant | None:
    """`exec "fix the bug"`."""
    if len(words) != 2 or words[0].lower() not in BEFORE_A_SENTENCE or len(words[1].split()) < 2:
        return None
    return Meant(
        f'{words[0]} is not a command here; write the prompt alone: {program} "{words[1]}". '
        f"{_anyway(' '.join(words), program)}"
    )


def _is_own_command(name: str) -> bool:
    """Whether the user or the project has a command file of this name, here or in a folder above."""
    here = Path.cwd()
    return any(
        _exists(f"{folder}/{kind}/commands/{name}.md") for folder in (here, *here.parents, "~") for kind in KINDS
    )


def _anyway(prompt: str, program: str) -> str:
    quoted = f'"{prompt}"' if " " in prompt else prompt
    return f"To ask the model just that: {program} -- {quoted}"


def _two_words(first: str, second: str, program: str, *, alone: bool) -> Meant | None:
    """`session list`: a near miss of a command, followed by one of its subcommands; `resume ID`.

    `alone`: nothing follows these two.
    """
    if first in ("resume", "continue") and re.fullmatch(r"[0-9a-f]{6,}", second):
        return Meant(f"There is no command {first}; write: {program} --resume {second}")
    if first in ("resume", "continue") and second in LATEST and alone:
        return Meant(f"There is no command {first}; write: {program} -c. {_anyway(f'{first} {second}', program)}")
    if second in flags.COMMANDS and alone and _close(first, ("help",)):
        return Meant(f"There is no command {first}; write: {program} {second} --help")
    command = _close(first, flags.COMMANDS)
    if command is None or first in flags.COMMANDS:
        return None
    if second in _subcommands(command):
        return Meant(f"There is no command {first}; write: {program} {command} {second}")
    if command == "sessions" and second in ("resume", "continue"):
        return Meant(f"There is no command {first}; write: {program} --resume ID, or {program} -c for the latest")
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
    lower = word.lower().rstrip("?!.").removesuffix("()")
    anyway = _anyway(word, program)
    first, _, second = re.sub("[-_:]", " ", lower, count=1).partition(" ")
    if second and first in flags.COMMANDS and second in _subcommands(first):
        return Meant(f"There is no command {word}; write: {program} {first} {second}. {anyway}")
    if lower == "version":
        return Meant(run=("--version",))
    if not word.strip("?"):
        return Meant(run=("--help",))
    if lower in (EVERY_TOOL_HAS if about else ELSEWHERE):
        return Meant(f"{word} is not a command here; what you want is: {ELSEWHERE[lower]}. {anyway}")
    if lower.startswith("/") and _slash(lower[1:]):
        return Meant(f"{word} is a command of the interactive prompt: start {program}, then type it there. {anyway}")
    if command := _close(lower, flags.COMMANDS):
        return Meant(f"There is no command {word}; did you mean {program} {command}? {anyway}")
    if (
        word != "@" and not (about and word.isalpha()) and _exists(word.removeprefix("@"))
    ):  # `git diff | ra tests` is no folder
        name = word.removeprefix("@")
        kind = "folder" if Path(name).expanduser().is_dir() else "file"
        return Meant(f'{name} is a {kind}; say what to do with it: {program} "explain @{name}". {anyway}')
    if "." in word[1:-1] and lower.rpartition(".")[2] in FILES:
        return Meant(f"There is no file {word} here. {anyway}")
    if _is_model(lower):
        return Meant(f'{word} is a model; write: {program} -m {word} "your question". {anyway}')
    if flag := _close(lower, ("help", "version")):
        return Meant(f"There is no command {word}; did you mean {program} --{flag}? {anyway}")
    if about:
        return None
    if lower in SHELL_WORDS:
        return Meant(f"{word} is a command of your shell; here it would be a prompt. {anyway}")
    if lower not in SLASH and (elsewhere := _one_slip(lower)):
        return Meant(f"There is no command {word}; for {elsewhere}: {ELSEWHERE[elsewhere]}. {anyway}")
    if slash := _close(lower, SLASH):
        return Meant(
            f"There is no command {word}; /{slash} is one of the interactive prompt: start {program}. {anyway}"
        )
    return None


def _close(word: str, names: Iterable[str]) -> str | None:
    from ra.cli import spelling  # only for a word that stands alone

    return spelling.close(word, names)


def _one_slip(word: str) -> str | None:
    from ra.cli import spelling  # as above

    return spelling.one_slip(word, ELSEWHERE)


def _slash(name: str) -> bool:
    return _close(name, SLASH) is not None


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_model(name: str) -> bool:
    """A family, or one with a version behind it; else a name of the catalog."""
    if name in FAMILIES or re.match(rf"({'|'.join(FAMILIES)})(-|\d)", name):
        return True  # a run with -m says what the catalog has in its place
    if not re.search(r"[-\d]", name):
        return False
    from ra.providers import catalog  # the run would load it a moment later

    return any(row.info.id == name for row in catalog.rows())


def in_conversation(text: str, names: Sequence[str] = SLASH) -> str:
    """What to say about a line of the interactive prompt that was meant as a command; "" for a prompt."""
    words = text.lower().split()
    first = words[0] if words else ""
    if name := _other_prefix(text.lower(), names):
        return f"Type /{name}."
    if len(words) == 1:
        return _one_word(first.rstrip("?!."), names)
    if len(words) == 2 and _is_argument(first, words[1], names):
        return f"Type /{' '.join(words)} for the command."
    if first.startswith("-"):
        return _flag(first, names)
    if first in ("ra", "agentx") and (words[1] in flags.COMMANDS or words[1] in flags.BY_FLAG):
        there = f" Type /{words[1]}, or" if words[1] in names else " Type"
        return f"You are in ra already.{there} !{text.strip()} to run it in your shell."
    if first in OTHER_AGENTS and words[1].startswith("-"):
        return f"You are in ra. Type !{text.strip()} to run it in your shell."
    return ""


def _other_prefix(line: str, names: Sequence[str]) -> str:
    """The command behind another program's sign: `:q!`, `\\compact`, `.exit`, `//model`. Else nothing."""
    prefixed = re.match(r"(?::|\\|\.|//)([a-z]+)!?(?:\s|$)", line)
    if prefixed is None:
        return ""
    name = {"q": "quit", "qa": "quit", "wq": "quit", "x": "quit", "exit": "quit"}.get(prefixed[1], prefixed[1])
    return name if name in names else ""


def _is_argument(command: str, word: str, names: Sequence[str]) -> bool:
    """Whether a word makes a command of a line without its slash."""
    if command in NUMBERED:
        return re.fullmatch(r"#?\d+", word) is not None
    if command == "help":
        return word.removeprefix("/") in names
    return word in ARGUMENTS.get(command, ()) or (command == "model" and _is_model(word))


def _one_word(word: str, names: Sequence[str]) -> str:
    if word.startswith("-"):
        return _flag(word, names)
    if word == "@":
        return "Type @ and the beginning of a file's name."
    if word in names:
        return "" if word in NEED_MORE else f"Type /{word} for the command."
    if word in SYNONYMS:
        return "" if word in ALSO_PROMPTS else f"Type {SYNONYMS[word]}."
    if word in SHELL_WORDS:
        return f"Type !{word} to run it in your shell."
    if word in FAMILIES:
        return f"Type /model {word} to go on with it."
    if not word.startswith("@") and (name := _close(word, names)):
        return f"Did you mean /{name}?"
    return ""


def _flag(word: str, names: Sequence[str]) -> str:
    flag = flags.BY_FLAG.get(word.partition("=")[0])
    if flag is None:
        return ""
    name = flag.names[-1].removeprefix("--")
    there = f"Type /{name} here." if name in names else "Leave with /quit, and start ra with the flag."
    return f"Flags belong on the command line. {there}"
