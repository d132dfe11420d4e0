"""Which flags does a run have, and what do they mean? argparse, because importing Typer costs more than a request."""

import argparse
import difflib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from ra.context.settings import COMPACTIONS, STRATEGIES
from ra.core.errors import UsageError
from ra.core.model import Level
from ra.providers.vendors import BY_NAME, IN_PROCESS

COMMANDS = {
    "agent": "named agents: list, show, capability",
    "bench": "compare context strategies, live or on recorded transcripts",
    "compact": "compact a session, or show what that would do",
    "config": "show, check or start a configuration file",
    "context": "what the next request holds, token by token",
    "cost": "what was spent, by session, model, source, tool or day",
    "doctor": "check keys, model, sandbox, terminal, store, config and trust",
    "entry": "durable entries of a session: set, rm, list, show",
    "local": "the embedded model: install, status",
    "mcp": "Model Context Protocol: list servers and tools, or serve ra itself",
    "models": "known models with windows and prices",
    "permissions": "explain what a call would be allowed to do",
    "recall": "search or read back anything that was ever said",
    "serve": "the HTTP API",
    "sessions": "list, show, export, import, prune, rm, fork",
    "trust": "trust this project's hooks, resolvers and commands",
    "wiki": "query folders of Markdown",
}

DESCRIPTION = "Ask a model, with every token under your control."

EPILOG = """\
examples:
  ra "explain @src/auth.py"              one answer, the file attached
  git diff | ra "review this"            piped text follows the prompt
  ra -c "and the tests?"                 go on with the latest session of this project
  ra --dry-run "explain @src/"           what would be sent, by source, tokens and price
  ra                                     the interactive prompt (on a terminal)

commands (ra COMMAND --help):
""" + "\n".join(f"  {name:<13}{what}" for name, what in COMMANDS.items())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            flag = unknown.split()[0].split("=")[0]
            near = difflib.get_close_matches(flag, self._option_string_actions, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else "; see ra --help."
            raise UsageError(f"Unknown flag {flag}{hint} A prompt that begins with a dash goes after `--`.")
        raise UsageError(f"{message[:1].upper()}{message[1:]}; see ra --help.")


def parser(program: str = "ra") -> argparse.ArgumentParser:
    made = _Parser(
        prog=program,
        usage=f"{program} [flags] [prompt]\n       {program} COMMAND …",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("words", nargs="*", metavar="prompt", help="what to ask; piped text is added to it")
    _add_model(made.add_argument_group("model"))
    _add_limits(made.add_argument_group("limits (0 = none)"))
    _add_input(made.add_argument_group("input and sessions"))
    _add_rights(made.add_argument_group("what it may do"))
    _add_output(made.add_argument_group("output"))
    return made


def _add_model(group: Any) -> None:
    group.add_argument("--provider", help=_choices(*BY_NAME, *IN_PROCESS))
    group.add_argument("-m", "--model", help="the model's name, or a .gguf file")
    group.add_argument("--agent", metavar="ID", help="a named agent of the configuration")
    group.add_argument("--agent-file", metavar="FILE", help="a Python file with `async def handler(ctx, wake)`")
    group.add_argument("--system-prompt", metavar="TEXT", help="instead of ours")
    group.add_argument("--thinking", metavar="LEVEL", help=_choices(*get_args(Level)))
    group.add_argument("--thinking-budget-cap", metavar="N", help="at most so many tokens of thinking")
    group.add_argument("--context-strategy", metavar="NAME", help=_choices(*STRATEGIES, "a Python file"))
    group.add_argument("--compaction", metavar="NAME", help=_choices(*COMPACTIONS))


def _choices(*names: str) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _add_limits(group: Any) -> None:
    group.add_argument("--max-iterations", metavar="N", help="model calls")
    group.add_argument("--max-token-budget", metavar="N", help="tokens, input and output")
    group.add_argument("--max-cost", metavar="DOLLARS", help="dollars")
    group.add_argument("--max-duration", metavar="S", help="seconds")


def _add_input(group: Any) -> None:
    group.add_argument("-f", "--file", action="append", default=[], metavar="PATH", help="attach text, image or PDF")
    group.add_argument("-c", "--continue", dest="go_on", action="store_true", help="the project's latest session")
    group.add_argument("--resume", metavar="ID", help="go on with this session")
    group.add_argument("--fork", action="store_true", help="go on in a copy (with -c or --resume)")
    group.add_argument("--no-session", action="store_true", help="keep nothing on disk")
    group.add_argument("--config", metavar="FILE", help="a further configuration file")
    group.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set one key; repeatable")


def _add_rights(group: Any) -> None:
    group.add_argument("--no-tools", action="store_true", help="text only")
    group.add_argument("--allow", action="append", default=[], metavar="RULE", help="such as 'Bash(git diff:*)'")
    group.add_argument("--deny", action="append", default=[], metavar="RULE", help="stronger than any allow")
    group.add_argument("--sandbox", choices=("auto", "off"), default=None, help="off: Bash asks instead")
    group.add_argument("--write", action=argparse.BooleanOptionalAction, default=None, help="file tools may write here")
    group.add_argument("--trust", action="store_true", help="trust this project's hooks and commands for this run")
    group.add_argument("--ignore-untrusted", action="store_true", help="go on without what is not trusted")


def _add_output(group: Any) -> None:
    group.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    group.add_argument("-q", "--quiet", action="store_true", help="only the answer and errors")
    group.add_argument("-v", "--verbose", action="store_true", help="more on stderr: thinking, tool output, usage")
    group.add_argument("--plain", action="store_true", help="no Markdown, no colours, no moving parts")
    group.add_argument("--dry-run", action="store_true", help="show what would be sent and what it costs; send nothing")
    group.add_argument("--show-config", action="store_true", help="the resolved configuration with origins")
    group.add_argument("--show-context", action="store_true", help="discovered files and resolved references")
    group.add_argument("--version", action="store_true", help="print the version")
    group.add_argument(
        "--install-completion", nargs="?", const="", metavar="SHELL", help="bash, zsh or fish; else yours"
    )
    group.add_argument("--show-completion", metavar="SHELL", help="print the completion script of bash, zsh or fish")


# Flag → key of the configuration; the value's text is read as the key's type by the configuration itself.
_KEYS = {
    "provider": "agent.provider",
    "model": "agent.model",
    "system_prompt": "agent.systemPrompt",
    "thinking": "agent.thinking",
    "thinking_budget_cap": "agent.thinkingBudgetCap",
    "context_strategy": "session.contextStrategy",
    "compaction": "agent.compaction.strategy",
    "max_iterations": "agent.maxIterations",
    "max_token_budget": "agent.maxTokenBudget",
    "max_cost": "agent.maxCost",
    "max_duration": "agent.maxDuration",
}
_NUMBERS = {"thinking_budget_cap", "max_iterations", "max_token_budget", "max_cost", "max_duration"}


def settings(args: argparse.Namespace) -> dict[str, tuple[Any, str]]:
    """What the flags set: dotted key → (value, flag)."""
    chosen: dict[str, tuple[Any, str]] = {}
    for name, key in _KEYS.items():
        value = getattr(args, name)
        if value is not None:
            chosen[key] = (_number(value) if name in _NUMBERS else value, "--" + name.replace("_", "-"))
    return chosen


def _number(text: str) -> int | float | str:
    """A number if it is one; else the text, which the configuration refuses with the right words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse(argv: Sequence[str], program: str = "ra") -> argparse.Namespace:
    return parser(program).parse_intermixed_args([clean(word) for word in argv])


def names() -> set[str]:
    """Every flag of a run, as it is typed."""
    return {flag for action in parser()._actions for flag in action.option_strings}


def clean(word: str) -> str:
    """Bytes that are no UTF-8 come from the system as lone surrogates, which nothing can store or send."""
    return os.fsencode(word).decode("utf-8", "replace") if any("\ud800" <= c <= "\udfff" for c in word) else word


def wants_json(argv: Sequence[str]) -> bool:
    """Whether a script asked for JSON, even in a line that cannot be read otherwise."""
    said = argv[: argv.index("--")] if "--" in argv else argv
    forms = {"json", "stream-json"}
    spaced = any(flag == "--output-format" and form in forms for flag, form in itertools.pairwise(said))
    return spaced or any(word.removeprefix("--output-format=") in forms for word in said if "=" in word)


def command_in(argv: Sequence[str]) -> int | None:
    """Where in argv a command stands: the first word, with nothing but flags of a run before it."""
    takes_value = {
        flag
        for action in parser()._actions
        if action.option_strings and action.nargs is None
        for flag in action.option_strings
    }
    index = 0
    while index < len(argv):
        word = argv[index]
        if word == "--":
            return None
        if not word.startswith("-"):
            return index if word in COMMANDS or word == "daemon" else None
        index += 2 if word in takes_value else 1
    return None


def attachments(args: argparse.Namespace) -> list[Path]:
    return [Path(name) for name in args.file]
