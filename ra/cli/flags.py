"""Declares the flags of a run, for the parser, `ra --help`, shell completion and the reference.

The parser is argparse, because importing Typer takes longer than sending a request.
"""

import argparse
import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from ra.context.settings import COMPACTIONS, STRATEGIES
from ra.core.errors import UsageError
from ra.core.model import Level
from ra.core.value import Value
from ra.providers.vendors import BY_NAME, IN_PROCESS

COMMANDS = {
    "acp": "let an editor such as Zed use ra (Agent Client Protocol)",
    "agent": "list, show and change named agents",
    "bench": "compare what context strategies cost, on recorded or live sessions",
    "compact": "hide old messages from the model, or see first what that costs",
    "config": "show, check or create a configuration file",
    "context": "show what the model sees, by source, tokens and price",
    "cost": "show what you spent, by session, model, source, tool or day",
    "doctor": "check keys, model, sandbox, terminal, store, config and trust",
    "entry": "set, list and remove texts that stay in every request",
    "local": "install the embedded model, or check whether it is there",
    "mcp": "list MCP servers and their tools, or run ra as one",
    "models": "list models with windows and prices",
    "open": "show sessions in the browser, call by call",
    "permissions": "explain what the model may do, and list the rules",
    "recall": "search everything that was said, or read it back",
    "said": "list your rules and decisions, and whether the model still sees them",
    "serve": "serve agents over HTTP",
    "sessions": "list, show, export, import, fork, copy and delete sessions",
    "tour": "see what ra does in two minutes; no key or network needed",
    "trust": "trust this project's hooks, resolvers and commands",
    "wiki": "search folders of Markdown",
}
ALIASES = {"daemon": "serve"}  # agentx's name for it

DESCRIPTION = "Ask a model, and control every token that it sees."

EXAMPLES = {
    'ra "explain @src/auth.py"': "one answer, the file attached",
    'git diff | ra "review this"': "piped text follows the prompt",
    'ra -c "and the tests?"': "continue the latest session of this project",
    'ra --dry-run "explain @src/"': "what would be sent, by source, tokens and price",
    "ra": "the interactive prompt (on a terminal)",
}

SHELLS = ("bash", "zsh", "fish")

Kind = Literal["switch", "value", "list", "optional"]
"""`value` takes one value, `list` may be repeated, the value of `optional` may be missing."""

Dynamic = Literal["", "session", "model", "agent"]
"""The values that Tab looks up when it is pressed."""


class Flag(Value, frozen=True):
    """One flag of a run.

    `key` is the configuration key that it sets. `strict` refuses a value that is not among `choices`. `sets` is the
    value that a switch stores in `field` instead of true.
    """

    names: tuple[str, ...]
    help: str
    kind: Kind = "switch"
    value: str = ""
    choices: tuple[str, ...] = ()
    strict: bool = False
    default: str | None = None
    field: str = ""
    sets: str = ""
    key: str = ""
    number: bool = False
    lookup: Dynamic = ""

    @property
    def dest(self) -> str:
        """The name of the attribute of the parsed arguments."""
        return self.field or self.names[-1].removeprefix("--").replace("-", "_")


def _switch(*names: str, help: str, field: str = "", sets: str = "") -> Flag:
    return Flag(names, help, field=field, sets=sets)


def _setting(*names: str, key: str, value: str, help: str = "", choices: tuple[str, ...] = (), **more: Any) -> Flag:
    """A flag that sets a key of the configuration, which also validates the value."""
    return Flag(names, help or _listed(*choices), "value", value, choices, key=key, **more)


def _listed(*names: str) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


PROVIDERS = (*BY_NAME, *IN_PROCESS)
_LEVELS: tuple[str, ...] = get_args(Level)

GROUPS: dict[str, tuple[Flag, ...]] = {
    "Model": (
        _setting("--provider", key="agent.provider", value="NAME", choices=PROVIDERS),
        _setting(
            "-m", "--model", key="agent.model", value="NAME", help="the model's name, or a .gguf file", lookup="model"
        ),
        Flag(("--agent",), "a named agent from the configuration", "value", "ID", lookup="agent"),
        Flag(
            ("--agent-file",), "an agent written in Python: a file with `async def handler(ctx, wake)`", "value", "FILE"
        ),
        _setting("--system-prompt", key="agent.systemPrompt", value="TEXT", help="replace the built-in system prompt"),
        _setting("--thinking", key="agent.thinking", value="LEVEL", choices=_LEVELS),
        _setting(
            "--thinking-budget-cap",
            key="agent.thinkingBudgetCap",
            value="N",
            help="at most this many tokens of thinking",
            number=True,
        ),
        _setting(
            "--context-strategy",
            key="session.contextStrategy",
            value="NAME",
            help=f"what the model sees: {_listed(*STRATEGIES, 'a Python file')}",
            choices=STRATEGIES,
        ),
        _setting(
            "--compaction",
            key="agent.compaction.strategy",
            value="NAME",
            help=f"how old messages are hidden: {_listed(*COMPACTIONS)}",
            choices=COMPACTIONS,
        ),
    ),
    "Limits of a run (0 = no limit)": (
        _setting("--max-iterations", key="agent.maxIterations", value="N", help="model calls", number=True),
        _setting(
            "--max-token-budget",
            key="agent.maxTokenBudget",
            value="N",
            help="tokens, input and output together",
            number=True,
        ),
        _setting("--max-cost", key="agent.maxCost", value="DOLLARS", help="dollars", number=True),
        _setting("--max-duration", key="agent.maxDuration", value="S", help="seconds", number=True),
    ),
    "Input and sessions": (
        Flag(("-f", "--file"), "attach a text file, image or PDF; repeatable", "list", "PATH"),
        _switch("-c", "--continue", help="continue the latest session of this project", field="go_on"),
        Flag(("--resume",), "continue this session", "value", "ID", lookup="session"),
        _switch("--fork", help="with -c or --resume: continue in a copy"),
        _switch("--no-session", help="store nothing on disk"),
        Flag(("--config",), "read one more configuration file", "value", "FILE"),
        Flag(("--set",), "set one configuration key for this run; repeatable", "list", "KEY=VALUE"),
    ),
    "Permissions": (
        _switch("--no-tools", help="give the model no tools"),
        Flag(("--allow",), "allow calls, such as 'Bash(git diff:*)'; repeatable", "list", "RULE"),
        Flag(("--deny",), "deny calls, even those that another rule allows; repeatable", "list", "RULE"),
        Flag(
            ("--sandbox",),
            "off: run commands without a sandbox, so that each one asks",
            "value",
            choices=("auto", "off"),
            strict=True,
        ),
        Flag(
            ("--edits",),
            "changes to files: ask, make them (auto) or refuse them (off); default: ask on a terminal, else off",
            "value",
            choices=("ask", "auto", "off"),
            strict=True,
        ),
        _switch("--write", help="the same as --edits auto", field="edits", sets="auto"),
        _switch("--no-write", help="the same as --edits off", field="edits", sets="off"),
        _switch("--trust", help="trust this project's hooks and commands, now and later"),
        _switch("--ignore-untrusted", help="run without the parts of this project that are not trusted"),
    ),
    "Output": (
        _switch(
            "-p", "--print", help="accepted for compatibility; a prompt on the command line is always answered once"
        ),
        Flag(
            ("--output-format",),
            "text, json or stream-json",
            "value",
            "FORMAT",
            choices=("text", "json", "stream-json"),
            strict=True,
            default="text",
        ),
        Flag(
            ("--json-schema",), "answer with JSON that fits this schema (a file, or the JSON itself)", "value", "SCHEMA"
        ),
        _switch("-q", "--quiet", help="print only the answer and errors"),
        _switch("-v", "--verbose", help="print thinking, tool output and usage to stderr"),
        _switch("--strict", help="if an @file or url: cannot be read, send nothing and exit with 2"),
        _switch("--plain", help="no Markdown, no colours, no spinner"),
        _switch("--dry-run", help="show what would be sent and what it costs; send nothing"),
        _switch("--show-config", help="print the configuration, and where each value comes from"),
        _switch("--show-context", help="list the instruction files, and the files that the prompt refers to"),
        _switch("--version", help="print the version"),
        Flag(
            ("--install-completion",),
            "set up completion with Tab in your shell, or in SHELL",
            "optional",
            "SHELL",
            SHELLS,
        ),
        Flag(("--show-completion",), "print the completion script", "value", "SHELL", SHELLS),
        _switch("-h", "--help", help="show this help"),
    ),
}

ALL: tuple[Flag, ...] = tuple(itertools.chain.from_iterable(GROUPS.values()))
BY_FLAG: dict[str, Flag] = {name: flag for flag in ALL for name in flag.names}


class UnreadableFlags(UsageError):
    """The parser refused a line; the text is the parser's. `flag_hints.explain` says what to type instead."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UnreadableFlags(message)


def parser(program: str = "ra") -> argparse.ArgumentParser:
    """The fast parser; its own help is never shown."""
    arguments = _Parser(prog=program, allow_abbrev=False, add_help=False)
    arguments.add_argument("words", nargs="*", metavar="prompt")
    for flag in ALL:
        options: dict[str, Any] = {"dest": flag.dest}
        match flag.kind:
            case "switch" if flag.sets:
                options |= {"action": "store_const", "const": flag.sets}
            case "switch":
                options |= {"action": "store_true"}
            case "list":
                options |= {"action": "append", "default": []}
            case "optional":
                options |= {"nargs": "?", "const": ""}
            case "value":
                options |= {"default": flag.default}
        if flag.strict:
            options["choices"] = flag.choices
        arguments.add_argument(*flag.names, **options)
    return arguments


def settings(args: argparse.Namespace) -> dict[str, tuple[Any, str]]:
    """The settings from flags: dotted key → (value, flag). The configuration parses the text as the key's type."""
    values: dict[str, tuple[Any, str]] = {}
    for flag in ALL:
        value = getattr(args, flag.dest) if flag.key else None
        if value is not None:
            values[flag.key] = (_number(value, flag) if flag.number else value, flag.names[-1])
    return values


def _number(text: str, flag: Flag) -> int | float:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    raise UsageError(f"{flag.names[-1]} takes a number ({flag.help}), not {text!r}.")


MAY_BE_EMPTY = {"system_prompt"}


def parse(argv: Sequence[str], program: str = "ra") -> argparse.Namespace:
    args = parser(program).parse_intermixed_args([clean(word) for word in argv])
    for flag in ALL:
        if flag.kind == "value" and getattr(args, flag.dest) == "" and flag.dest not in MAY_BE_EMPTY:
            raise UsageError(f"Argument {'/'.join(flag.names)}: the value is empty. Is a shell variable not set?")
    if args.provider is not None and args.provider not in PROVIDERS:
        raise UnreadableFlags(f"unknown provider: {args.provider}")
    return args


def clean(word: str) -> str:
    """Replaces lone surrogates, Python's form of bytes that are not UTF-8: they can be neither stored nor sent."""
    return os.fsencode(word).decode("utf-8", "replace") if any("\ud800" <= c <= "\udfff" for c in word) else word


def wants_json(argv: Sequence[str]) -> bool:
    """Whether a script asked for JSON, even in a line that cannot be parsed otherwise."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    forms = {"json", "stream-json"}
    spaced = any(flag == "--output-format" and form in forms for flag, form in itertools.pairwise(words))
    return spaced or any(word.removeprefix("--output-format=") in forms for word in words if "=" in word)


def takes_value(word: str) -> bool:
    """Whether the next word is this flag's value."""
    flag = BY_FLAG.get(word)
    return flag is not None and flag.kind in ("value", "list")


def may_take_value(word: str) -> bool:
    """Whether the next word is this flag's value, unless it is a flag itself."""
    flag = BY_FLAG.get(word)
    return flag is not None and flag.kind != "switch"


def prompt_words(argv: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The words that are neither flags nor their values, with their positions; after `--`, all words are."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if word == "--":
            yield from enumerate(argv[index + 1 :], index + 1)
            return
        if not word.startswith("-"):
            yield index, word
        followed = index + 1 < len(argv) and not argv[index + 1].startswith("-")
        index += 2 if takes_value(word) or (followed and may_take_value(word)) else 1


def command_in(argv: Sequence[str]) -> int | None:
    """The position of a command in argv: the first word, if only flags of a run precede it."""
    index, word = next(prompt_words(argv), (0, ""))
    return index if (word in COMMANDS or word in ALIASES) and "--" not in argv[:index] else None


def attachments(args: argparse.Namespace) -> list[Path]:
    return [Path(name) for name in args.file]
