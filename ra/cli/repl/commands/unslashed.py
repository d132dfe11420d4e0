"""Recognizes a prompt that was meant as a command, instead of billing it as a prompt."""

import re

from ra.cli import flags, near_miss, other_programs
from ra.cli.repl.commands import TABLE, Command
from ra.cli.spelling import close

OTHER_AGENTS = ("claude", "codex", "gemini", "aider", "opencode")

LEAVING = ("q", "qa", "wq", "x", "exit")  # from editors and database shells

ANSWERS = ("drop",)  # may answer a model's question, though the command needs no argument

COMMANDS = {command.name: command for command in TABLE}


def hint(text: str) -> str:
    """What to type instead of this line; "" for a prompt."""
    line = text.lower()
    words = line.split()
    first = words[0] if words else ""
    if name := _other_prefix(line):
        return f"Type /{name}."
    if first.startswith("-"):
        return _flag(first)
    if len(words) == 1:
        return _one_word(first.rstrip("?!."))
    if len(words) == 2 and first in COMMANDS and _takes(COMMANDS[first], words[1]):
        return f"Type /{' '.join(words)} for the command."
    if first in ("ra", "agentx") and (words[1] in flags.COMMANDS or words[1] in flags.BY_FLAG):
        there = f" Type /{words[1]}, or" if words[1] in COMMANDS else " Type"
        return f"You are in ra already.{there} !{text.strip()} to run it in your shell."
    if first in OTHER_AGENTS and words[1].startswith("-"):
        return f"You are in ra. Type !{text.strip()} to run it in your shell."
    return ""


def _other_prefix(line: str) -> str:
    """The command behind another program's sign: `:q!`, `\\compact`, `.exit`, `//model`. Else nothing."""
    prefixed = re.match(r"(?::|\\|\.|//)([a-z]+)!?(?:\s|$)", line)
    if prefixed is None:
        return ""
    name = "quit" if prefixed[1] in LEAVING else prefixed[1]
    return name if name in COMMANDS else ""


def _takes(command: Command, word: str) -> bool:
    """Whether the word is an argument that marks the line as a command without its slash."""
    if command.name == "help":
        return word.removeprefix("/") in COMMANDS
    if command.name == "model":
        return near_miss.is_model(word)
    numbered = re.search(r"#N|\[N|NUMBER", command.argument) is not None
    return word in command.words or (numbered and re.fullmatch(r"#?\d+", word) is not None)


def _one_word(word: str) -> str:
    if word == "@":
        return "Type @ and the first letters of a file's name."
    if command := COMMANDS.get(word):
        is_prompt = command.needs_argument or word in ANSWERS
        return "" if is_prompt else f"Type /{word} for the command."
    if word in other_programs.SURE and (advice := other_programs.BY_WORD[word].slash):
        return f"Type {advice}."
    if word in near_miss.SHELL_WORDS:
        return f"Type !{word} to run it in your shell."
    if word in near_miss.FAMILIES:
        return f"Type /model {word} to continue with it."
    if word not in other_programs.BY_WORD and not word.startswith("@") and (name := close(word, COMMANDS)):
        return f"Did you mean /{name}?"
    return ""


def _flag(word: str) -> str:
    flag = flags.BY_FLAG.get(word.partition("=")[0])
    if flag is None:
        return ""
    name = flag.names[-1].removeprefix("--")
    there = f"Type /{name} here." if name in COMMANDS else "Leave with /quit, and start ra with the flag."
    return f"Flags belong on the command line. {there}"
