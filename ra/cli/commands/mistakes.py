"""Suggests a correction for a command line that Typer refused."""

import re
import shlex
from collections.abc import Sequence

from ra.cli import flags, spelling
from ra.cli.completion import subcommands

SYNONYMS = {
    "add": ("set", "import"),
    "cat": ("show",),
    "create": ("set", "init"),
    "del": ("rm", "forget", "revoke"),
    "delete": ("rm", "forget", "revoke"),
    "get": ("show",),
    "info": ("show",),
    "ls": ("list",),
    "new": ("set", "init"),
    "read": ("show",),
    "remove": ("rm", "forget", "revoke"),
    "view": ("show",),
}
"""Other programs' names of subcommands, and their names here."""

INSTEAD = {
    "agent add": "an agent is a few lines under agents: in ra.yaml; ra config init writes an example",
    "agent create": "an agent is a few lines under agents: in ra.yaml; ra config init writes an example",
    "agent new": "an agent is a few lines under agents: in ra.yaml; ra config init writes an example",
    "config edit": "$EDITOR the file that `ra config path` prints, or ra.yaml in the project",
    "config get": "ra config show",
    "config list": "ra config show",
    "config ls": "ra config show",
    "config set": 'ra --set KEY=VALUE "your question" for one run; for good, the key in ra.yaml (ra config init)',
    "cost month": "ra cost --since 30d",
    "cost today": "ra cost --since 1d",
    "cost week": "ra cost --since 7d",
    "cost yesterday": "ra cost --since 2d --by day",
    "mcp add": "name the server under agent.mcpServers in ra.yaml, or in .mcp.json of the project",
    "mcp remove": "take the server out of agent.mcpServers in ra.yaml, or out of .mcp.json",
    "mcp rm": "take the server out of agent.mcpServers in ra.yaml, or out of .mcp.json",
    "permissions add": "ra --allow RULE for one run; for good, agent.permissions.rules in ra.yaml",
    "permissions allow": "ra --allow RULE for one run; for good, agent.permissions.rules in ra.yaml",
    "permissions deny": "ra --deny RULE for one run; for good, agent.permissions.rules in ra.yaml",
    "sessions continue": "ra --resume ID, or ra -c for the latest",
    "sessions open": "ra --resume ID continues it; ra open ID shows it in the browser",
    "sessions resume": "ra --resume ID, or ra -c for the latest",
    "sessions search": "ra recall WORDS",
}


def explained(message: str, words: Sequence[str], program: str) -> str:
    """Typer's message about `words`, a command and its arguments, with what to type instead."""
    command = words[0]
    asked = f". To ask the model just that: {program} -- {shlex.join(words)}" if _is_sentence(words) else ""
    if unknown := re.match(r"No such command '(.*?)'", message):
        return _no_subcommand(flags.ALIASES.get(command, command), unknown[1], words, program) + asked
    if option := re.match(r"No such option: (\S+)", message):
        if option[1] in flags.BY_FLAG:
            return f"{option[1]} goes before the command: {program} {option[1]} … {command}"
        if advice := INSTEAD.get(f"{command} {option[1].removeprefix('--')}"):
            return f"{message}; what you want is: {advice}"
    if missing := re.match(r"Missing argument '(.*?)'", message):
        return f"{message}; write: {program} {shlex.join(words)} {missing[1]}"
    return f"{message}; see {program} {command} --help{asked or '.'}"


def _no_subcommand(command: str, word: str, words: Sequence[str], program: str) -> str:
    line = f"There is no {program} {command} {word}"
    if advice := INSTEAD.get(f"{command} {word}"):
        return f"{line}; what you want is: {advice}"
    names = subcommands(command)
    meant = next((name for name in SYNONYMS.get(word, ()) if name in names), None) or spelling.nearest(word, names)
    if meant:
        rest = [shlex.quote(other) for other in words[words.index(word) + 1 :]]
        return f"{line}; write: {' '.join([program, command, meant, *rest])}"
    return f"{line}; what there is: {', '.join(sorted(names))}. See {program} {command} --help"


def _is_sentence(words: Sequence[str]) -> bool:
    """Three words without a flag may well be a prompt: `cost of living`."""
    return len(words) > 2 and all(word.isalpha() for word in words)
