"""Recognizes words that were meant as a command, flag, file or model, instead of billing them as a prompt."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ra.cli import flags
from ra.core.value import Value

# The commands of the interactive prompt: their table is too slow to load for a word on the command line.
SLASH = (
    *("attach", "clear", "compact", "config", "context", "cost", "drop", "edits", "entries", "fork", "forget", "help"),
    *("keep", "model", "omit", "permissions", "pin", "quit", "recall", "resume", "rewind", "said", "sessions"),
    *("strategy", "thinking", "tools", "undo"),
)

CONTINUES = ("-c", "--continue", "--resume")

KINDS = (".claude", ".ra")  # folders that hold commands/NAME.md

FAMILIES = ("claude", "opus", "sonnet", "haiku", "gpt", "gemini")

SUBCOMMANDS = {
    *("list", "ls", "show", "add", "rm", "remove", "delete", "get", "set", "status", "info"),
    *("resume", "edit", "export", "search", "login", "logout"),
}
"""Subcommands that follow commands in any program."""

ALSO_NOUNS = {"status", "info", "search", "edit", "export", "show", "login", "logout", "resume", *flags.PROVIDERS}
"""Subcommands and providers that may also end a short prompt: `web search`, `review status`, `fix login`."""

LOOKING = ("list", "ls", "show", "view")

BEFORE_A_SENTENCE = ("ask", "chat", "exec", "prompt", "query", "ra")
"""Words that precede the quoted prompt in other programs."""

USE_WORDS = 3  # switch to opus

LATEST = ("last", "latest", "session")

FILES = {
    *("c", "cfg", "conf", "cpp", "css", "csv", "go", "h", "html", "ini", "ipynb", "java", "json", "jsonl", "jsx"),
    *("kt", "log", "md", "pdf", "php", "png", "py", "rb", "rs", "sh", "sql", "swift", "toml", "ts", "tsx", "txt"),
    *("xml", "yaml", "yml"),
}
"""Endings that mark a word as a file name; `node.js` may be a prompt."""

SHELL_WORDS = {
    *("ls", "pwd", "cd", "cat", "git", "make", "pip", "npm", "pytest", "top", "ps", "vim", "nano", "man"),
    *("bash", "sh", "zsh"),
}


class Meant(Value, frozen=True):
    """The intended meaning of a line: `run` are the words to run instead; otherwise `words` say what to type."""

    words: str = ""
    run: tuple[str, ...] = ()


def on_command_line(argv: Sequence[str], program: str = "ra", *, piped: bool = False) -> Meant | None:
    """The intended meaning of these arguments; None for a prompt. `piped`: the prompt may be about piped text."""
    if "--" in argv:
        return None
    words = [word for _, word in flags.prompt_words(argv)]
    if not words:
        return None
    anyway = _anyway(" ".join(words), program)
    if hint := _slash_command(" ".join(words), program) or _before_a_sentence(words, program):
        return Meant(f"{hint} {anyway}")
    if any(len(word.split()) != 1 for word in words[:2]):
        return None  # a quoted sentence is a prompt
    first = words[0].lower()
    if first == "help" and len(words) <= 2 and (len(words) == 1 or words[1] in flags.COMMANDS):
        return Meant(run=(*words[1:], "--help"))
    if first == "help" and len(words) == 2 and (topic := _close(words[1], flags.COMMANDS)):
        return Meant(f"There is no command {words[1]}; did you mean {program} help {topic}? {anyway}")
    if first == "version" and len(words) == 1:
        return Meant(run=("--version",))
    if not words[0].strip("?") and len(words) == 1:
        return Meant(run=("--help",))
    if len(words) > 1:
        hint = _several([word.lower() for word in words], program)
    else:
        hint = _single(words[0], program, about=piped or any(word in CONTINUES for word in argv))
    return Meant(f"{hint} {anyway}") if hint else None


def _anyway(prompt: str, program: str) -> str:
    quoted = f'"{prompt}"' if " " in prompt else prompt
    return f"To ask the model just that: {program} -- {quoted}"


def _slash_command(prompt: str, program: str) -> str:
    """`/compact the plan`: a command of the interactive prompt with its argument."""
    name = re.match(r"/([a-z]+) +\S", prompt.lower())
    if name is None or _exists(f"/{name[1]}"):
        return ""
    near = name[1] if name[1] in SLASH else _close(name[1], SLASH) if prompt.count(" ") == 1 else None
    if near is None or (near != name[1] and _is_own_command(name[1])):
        return ""
    return f"/{name[1]} is a command of the interactive prompt: start {program}, then type /{near} there."


def _is_own_command(name: str) -> bool:
    """Whether the user or the project has a command file of this name, here or in a parent folder."""
    here = Path.cwd()
    return any(
        _exists(f"{folder}/{kind}/commands/{name}.md") for folder in (here, *here.parents, "~") for kind in KINDS
    )


def _before_a_sentence(words: Sequence[str], program: str) -> str:
    """`exec "fix the bug"`."""
    if len(words) != 2 or words[0].lower() not in BEFORE_A_SENTENCE or len(words[1].split()) < 2:
        return ""
    return f'{words[0]} is not a command here; write the prompt alone: {program} "{words[1]}".'


def _several(words: Sequence[str], program: str) -> str:
    """`session list`: a near miss of a command, followed by one of its subcommands; `resume ID`; `use opus`."""
    (first, second), last, alone = words[:2], words[-1], len(words) == 2
    none = f"There is no command {first};"
    if first in ("use", "set", "switch") and len(words) <= USE_WORDS and is_model(last):
        return f'{none} write: {program} -m {last} "your question".'
    if first in ("resume", "continue") and re.fullmatch(r"[0-9a-f]{6,}", second):
        return f"{none} write: {program} --resume {second}."
    if first in ("resume", "continue") and second in LATEST and alone:
        return f"{none} write: {program} -c."
    if alone and (other := _other_order(first, second)):
        return f"{none} write: {program} {other}."
    command = _close(first, flags.COMMANDS)
    if command is not None and first not in flags.COMMANDS:
        if second in _subcommands(command):
            return f"{none} write: {program} {command} {second}."
        if command == "sessions" and second in ("resume", "continue"):
            return f"{none} write: {program} --resume ID, or {program} -c for the latest."
        if second in SUBCOMMANDS:
            return f"{none} did you mean {program} {command}? {program} {command} --help explains it."
    if alone and (second in SUBCOMMANDS or second in flags.PROVIDERS):
        return _elsewhere(first, program, sure=second in ALSO_NOUNS)
    return ""


def _other_order(first: str, second: str) -> str:
    """`list sessions`, `hlep sessions`, and `ra sessions` after the program's own name."""
    command = next((name for name in (second, f"{second}s") if name in flags.COMMANDS), "")
    if not command:
        return ""
    if _close(first, ("help",)):
        return f"{command} --help"
    if first in _subcommands(command):
        return f"{command} {first}"
    return command if first in (*LOOKING, "ra", "agentx") else ""


def _single(word: str, program: str, *, about: bool) -> str:
    """A single word that is meant as something other than a prompt, exact or misspelt.

    `about`: the prompt is about a text or a conversation, so one word may well be all of it.
    """
    lower = word.lower().rstrip("?!.").removesuffix("()")
    none = f"There is no command {word};"
    first, _, second = re.sub("[-_:]", " ", lower, count=1).partition(" ")
    if second and first in flags.COMMANDS and second in _subcommands(first):
        return f"{none} write: {program} {first} {second}."
    if hint := _elsewhere(lower, program, sure=about):
        return hint
    if lower.startswith("/") and _close(lower[1:], SLASH):
        return f"{word} is a command of the interactive prompt: start {program}, then type it there."
    if command := _close(lower, flags.COMMANDS):
        return f"{none} did you mean {program} {command}?"
    if not (about and word.isalpha()) and (hint := _thing(word, program)):  # in `git diff | ra tests`, no folder
        return hint
    if flag := _close(lower, ("help", "version")):
        return f"{none} did you mean {program} --{flag}?"
    if about:
        return ""
    if lower in SHELL_WORDS:
        return f"{word} is a command of your shell; here it would be a prompt."
    if lower not in SLASH and (elsewhere := _one_slip(lower)):
        return f"{none} for {elsewhere}: {_row(elsewhere)}."
    if slash := _close(lower, SLASH):
        return f"{none} /{slash} is one of the interactive prompt: start {program}."
    if re.fullmatch(r"[a-z]+(-[a-z\d]+)+", word):  # as names are written, and no language is
        return f"{none} {program} --help lists them."
    return ""


def _elsewhere(word: str, program: str, *, sure: bool = False) -> str:
    """What to type for another program's command."""
    from ra.cli import other_programs  # start-up time: only for one or two words

    if sure and word not in other_programs.SURE:
        return ""
    advice = _row(word)
    return f"{word} is not a command here; what you want is: {advice}." if advice else ""


def _row(word: str) -> str:
    from ra.cli import other_programs  # start-up time: as above

    row = other_programs.BY_WORD.get(word)
    return row.shell if row is not None else ""


def _thing(word: str, program: str) -> str:
    """What to do with a file, page or model without any other words."""
    lower, name = word.lower(), word.removeprefix("@")
    if name and _exists(name):
        kind = "folder" if Path(name).expanduser().is_dir() else "file"
        return f'{name} is a {kind}; say what to do with it: {program} "explain @{name}".'
    if re.match(r"(url:)?https?://\S", lower):
        page = word.removeprefix("url:")
        return f'{page} is a page; say what to do with it: {program} "summarize url:{page}".'
    if is_model(lower):
        return f'{word} is a model; write: {program} -m {word} "your question".'
    if near := _file_near(name):
        return f'There is no file {name} here; did you mean {program} "explain @{near}"?'
    ends_as_file = "." in word[1:-1] and lower.rpartition(".")[2] in FILES and not word.startswith("@")
    if ends_as_file or re.fullmatch(r"@[\w./-]+", word):  # @*.py and @app.py:1-9 are more than a name
        return f"There is no file {name} here."
    return ""


def _file_near(name: str) -> str:
    """The file here that a name with an ending or capitals resembles: `notes.tx`, `README`."""
    if not re.fullmatch(r"[\w-]*\.\w+|[A-Z][A-Z_]+", name):
        return ""
    names = [path.name for path in Path.cwd().iterdir()] if _exists(".") else []
    from ra.cli import spelling  # start-up time: only for a single word

    stems = (file for file in names if file.lower() == name.lower() or file.rpartition(".")[0].lower() == name.lower())
    return next(stems, spelling.one_slip(name, names) or "")


def is_model(name: str) -> bool:
    """Whether it is a family, alone or with a version; a provider's; or a family of the catalog with a version."""
    if name in FAMILIES or re.match(rf"({'|'.join(FAMILIES)})(-|\d)", name):
        return True  # a run with -m lists the catalog's alternatives
    if name.partition("/")[0] in flags.PROVIDERS and name.partition("/")[2]:
        return True
    if not re.search(r"[a-z].*\d", name):
        return False
    from ra.providers import catalog  # the run would load it a moment later

    ids = [row.info.id for row in catalog.rows()]
    stem = re.match(r"[a-z]+(?=-?\d|-[a-z\d.-]*\d)", name)
    return name in ids or (stem is not None and any(re.match(rf"{stem[0]}[-\d]", id) for id in ids))


def _close(word: str, names: Iterable[str]) -> str | None:
    from ra.cli import spelling  # start-up time: as above

    return spelling.close(word, names)


def _subcommands(command: str) -> set[str]:
    from ra.cli.completion import subcommands  # start-up time: only for a near miss

    return subcommands(command)


def _one_slip(word: str) -> str | None:
    from ra.cli import other_programs, spelling  # start-up time: as above

    return spelling.one_slip(word, [name for name, row in other_programs.BY_WORD.items() if row.shell])


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
