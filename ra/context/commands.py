"""Finds the user's own slash commands, files such as `.claude/commands/review.md`, and fills in their arguments."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ra.context import frontmatter, skills
from ra.context.skills import Origin, Skill
from ra.core.text import one_line
from ra.core.value import Value
from ra.system.files import owned_text

FOLDERS = (".ra/commands", ".claude/commands")
MAX_BYTES = 64 * 1024
MAX_COMMANDS = 500

_TYPED = re.compile(r"/([A-Za-z0-9_][\w.:-]*)(?:\s+(.*))?$", re.DOTALL)
_PLACES = re.compile(r"\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS|\$(\d)(?!\d)|\$\{ARGUMENTS\}")
_ARGUMENTS = re.compile(r"\$ARGUMENTS\b(?!\[)|\$\{ARGUMENTS\}")
_SHELL = re.compile(r"!`([^`\n]+)`")


class CustomCommand(Value, frozen=True):
    """`name` has the folders below `commands` in it: `git/pr.md` is `git:pr`, and `pr` means it too."""

    name: str
    file: str
    bounds: str
    origin: Origin

    @property
    def short(self) -> str:
        return self.name.rpartition(":")[2]


class CommandPrompt(Value, frozen=True):
    """What a command says with its arguments filled in, and what the user should know of it."""

    text: str
    origin: Origin
    notes: tuple[str, ...] = ()


def folders(
    way: Sequence[Path], root: Path, home: Path | None, settings_folder: Path | None
) -> list[tuple[Path, Path, Origin]]:
    """The folders that hold commands, the strongest first. `way` leads from the project's root down."""
    project: list[tuple[Path, Path, Origin]] = [
        (folder / name, root, "project") for folder in reversed(way) for name in FOLDERS
    ]
    user: list[tuple[Path, Path, Origin]] = []
    if settings_folder:
        user.append((settings_folder / "commands", home or settings_folder, "user"))
    if home:
        user += [(home / name, home, "user") for name in FOLDERS]
    return [place for place in (*project, *user) if place[0].is_dir()]


def find(places: Sequence[tuple[Path, Path, Origin]]) -> tuple[CustomCommand, ...]:
    """All commands by name; of two with one name the first counts. Nothing is read yet."""
    commands: dict[str, CustomCommand] = {}
    for place, bounds, origin in places:
        for path in islice(_markdown(place), MAX_COMMANDS):
            name = ":".join(path.relative_to(place).with_suffix("").parts)
            if name.isprintable() and " " not in name:
                commands.setdefault(name, CustomCommand(name, str(path), str(bounds), origin))
    return tuple(sorted(commands.values(), key=lambda command: command.name))


def typed(text: str) -> tuple[str, str] | None:
    """The name and the arguments of a prompt that may be a command: `/review src/` is ("review", "src/")."""
    match = _TYPED.match(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def choose(commands: Sequence[CustomCommand], name: str) -> CustomCommand | None:
    """The command of this name, or the only one whose last part it is."""
    exact = next((command for command in commands if command.name == name), None)
    short = [command for command in commands if command.short == name]
    return exact or (short[0] if len(short) == 1 else None)


def describe(command: CustomCommand) -> str:
    """One line on what it does; what is wrong with its file, if it cannot be used."""
    try:
        fields, text = frontmatter.split(_text(command))
    except (OSError, ValueError) as error:
        return f"cannot be used: {getattr(error, 'strerror', None) or error}"
    return one_line(fields.get("description") or text, 100)


def fill(command: CustomCommand, arguments: str) -> CommandPrompt:
    """The prompt that a command stands for. Raises OSError and ValueError that say what is wrong with its file."""
    fields, text = frontmatter.split(_text(command))
    return _prompt(command.name, command.origin, filled(text, arguments), skills.unused(fields))


def fill_skill(skill: Skill, arguments: str) -> CommandPrompt:
    """The prompt of a skill that is called like a command. Raises OSError and ValueError.

    Its `$1` stay as they are: skills hold scripts.
    """
    text = skills.body(skill)
    prompt = _ARGUMENTS.sub(lambda _: arguments, text)
    if prompt == text or not arguments:
        prompt = f"{prompt}\n\n{arguments or 'Do what this skill says.'}"
    return _prompt(skill.name, skill.origin, prompt, skill.unused)


def _prompt(name: str, origin: Origin, prompt: str, unused: Sequence[str]) -> CommandPrompt:
    notes = [f"/{name}: `{key}` in its front matter is not used; your flags and rules decide" for key in unused]
    if _SHELL.search(prompt):
        # What a file says must not run by itself: the model may run it, under the rules that hold for it.
        prompt = _SHELL.sub(r"(run this first: `\1`)", prompt)
        notes.insert(0, f"/{name}: its !`commands` are not run for you; the model runs them by your rules")
    return CommandPrompt(prompt, origin, tuple(notes))


def filled(text: str, arguments: str) -> str:
    """`$ARGUMENTS` and `$1` to `$9` replaced; arguments that have no place stand at the end."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # an apostrophe in a sentence
        words = arguments.split()

    def word(place: int) -> str:
        return words[place] if 0 <= place < len(words) else ""

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return word(int(match[1]))
        return word(int(match[2]) - 1) if match[2] else arguments

    if not _PLACES.search(text):
        return f"{text}\n\nArguments: {arguments}" if arguments else text
    return _PLACES.sub(replaced, text)


def _markdown(place: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(place):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if name.endswith(".md"))


def _text(command: CustomCommand) -> str:
    text = owned_text(command.file, bounds=command.bounds, max_bytes=MAX_BYTES)
    if not text.strip():
        raise ValueError("it is empty")
    return text
