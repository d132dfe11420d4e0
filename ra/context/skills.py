"""Finds skills: folders with a SKILL.md. Name and description stand in the window, the body when it is used."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from ra.context import frontmatter
from ra.core.model import Section
from ra.core.text import one_line, shown
from ra.core.value import Value
from ra.system.files import owned_text

FOLDERS = (".ra/skills", ".agents/skills", ".claude/skills")
FILE = "SKILL.md"

MAX_SKILLS = 200
MAX_BYTES = 256 * 1024
MAX_DESCRIPTION = 1024  # characters; the most that the format allows
ALL_DESCRIPTIONS = 8000  # characters, about 2 000 tokens: what all skills together may take in every request
MAX_LISTED = 60  # files of a skill that are told along with its body

_NOT_USED = ("model", "allowed-tools", "hooks", "agent", "context")

_NAME = re.compile(r"[\w][\w.:-]{0,63}")

Origin = Literal["project", "user"]

HOW_TO = "When a task matches one of these skills, call Skill with its name first, and follow what it says."


class Skill(Value, frozen=True):
    """`listed`: the model is told of it. `typed`: a person can use it, as /name. `bounds` is what may be read.

    `unused` are keys of its head that say what only rules and flags of the user may say.
    """

    name: str
    description: str
    folder: str
    bounds: str
    origin: Origin
    listed: bool = True
    typed: bool = True
    unused: tuple[str, ...] = ()
    clipped: bool = False  # its description is left out, because all of them would be too long


class Skills(Value, frozen=True):
    """What was found, and what was left out or looks odd, one line each."""

    skills: tuple[Skill, ...] = ()
    notes: tuple[str, ...] = ()

    def sections(self) -> tuple[Section, ...]:
        """What every request says of them: nothing where there are none."""
        listed = [skill for skill in self.skills if skill.listed]
        if not listed:
            return ()
        lines = (Section(f"skill {skill.name}", "stable", _line(skill)) for skill in listed)
        return (Section("skills", "stable", HOW_TO), *lines)

    def find(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)


def folders(
    way: Sequence[Path], root: Path, home: Path | None, settings_folder: Path | None
) -> list[tuple[Path, Path, Origin]]:
    """The folders that hold skills, the strongest first, with what they must lie in. `way` leads from the root down."""
    user = [(settings_folder / "skills", home or settings_folder)] if settings_folder else []
    user += [(home / name, home) for name in FOLDERS] if home else []
    project = [(folder / name, root) for folder in reversed(way) for name in FOLDERS]
    found: dict[str, tuple[Path, Path, Origin]] = {}
    for place, bounds in project:
        if place.is_dir():
            found.setdefault(os.path.realpath(place), (place, bounds, "project"))
    for place, bounds in user:
        if place.is_dir():
            found.setdefault(os.path.realpath(place), (place, bounds, "user"))
    return list(found.values())


def find(places: Iterable[tuple[Path, Path, Origin]], *, uid: int | None = None) -> Skills:
    """The skills of these folders; of two with one name the first counts."""
    skills: dict[str, Skill] = {}
    notes: list[str] = []
    for place, bounds, origin in places:
        for folder in _skill_folders(place, notes):
            label = shown(os.path.join(place.parent.name, place.name, folder.name, FILE))  # noqa: PTH118 - a name to show
            try:
                skill = _read(folder, bounds, origin, os.geteuid() if uid is None else uid)
            except (OSError, ValueError) as error:
                notes.append(f"{label}: {getattr(error, 'strerror', None) or error}; the skill is left out")
                continue
            if skill.name in skills:
                if _file(folder) != _file(Path(skills[skill.name].folder)):
                    notes.append(f"{label}: another skill is named {skill.name} and comes first; left out")
            elif len(skills) >= MAX_SKILLS:
                notes.append(f"{label}: more than {MAX_SKILLS} skills; left out")
            else:
                skills[skill.name] = skill
    return Skills(tuple(_fitted(sorted(skills.values(), key=lambda skill: skill.name), notes)), tuple(notes))


def body(skill: Skill) -> str:
    """What a skill says, where its files are, and which there are. Raises OSError and ValueError."""
    _, text = frontmatter.split(owned_text(Path(skill.folder) / FILE, bounds=skill.bounds, max_bytes=MAX_BYTES))
    names = sorted(islice(_files(Path(skill.folder)), MAX_LISTED))
    files = f"\nIts files (read them with Skill and `file`): {', '.join(names)}" if names else ""
    return f'<skill name="{skill.name}" folder="{shown(skill.folder)}">\n{text}\n</skill>{files}'


def file_of(skill: Skill, name: str) -> str:
    """The text of one more file of a skill. Raises OSError and ValueError."""
    path = Path(skill.folder) / name
    folder = Path(os.path.realpath(skill.folder))
    if not Path(os.path.realpath(path)).is_relative_to(folder):
        raise ValueError(f"{shown(name)} does not lie in the skill's folder")
    return owned_text(path, bounds=folder, max_bytes=MAX_BYTES)


def _line(skill: Skill) -> str:
    return f"- {skill.name}" if skill.clipped else f"- {skill.name}: {skill.description}"


def _fitted(skills: Sequence[Skill], notes: list[str]) -> Iterator[Skill]:
    """The skills, with names alone from where their descriptions would take too much of every request."""
    room, clipped = ALL_DESCRIPTIONS, 0
    for skill in skills:
        if skill.listed:
            room -= len(_line(skill))
        too_long = skill.listed and room < 0
        clipped += too_long
        yield msgspec.structs.replace(skill, clipped=True) if too_long else skill
    if clipped:
        notes.append(
            f"the descriptions of {clipped} of {len(skills)} skills are left out: together they take more than "
            f"{ALL_DESCRIPTIONS:,} characters of every request"
        )


def _skill_folders(place: Path, notes: list[str]) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in islice(entries, 10 * MAX_SKILLS) if entry.is_dir())
    except OSError as error:
        notes.append(f"{shown(str(place))}: {error.strerror}; its skills are left out")
        return []
    return [place / name for name in names if os.path.lexists(place / name / FILE)]


def _read(folder: Path, bounds: Path, origin: Origin, uid: int) -> Skill:
    fields, text = frontmatter.split(owned_text(folder / FILE, bounds=bounds, max_bytes=MAX_BYTES, uid=uid))
    name = fields.get("name") or folder.name
    if not _NAME.fullmatch(name):
        raise ValueError(f"its name {name[:60]!r} must be of letters, digits, - and _, at most 64")
    paragraph = next((part for part in text.split("\n\n") if part.strip() and not part.startswith("#")), "")
    description = one_line(fields.get("description") or paragraph, MAX_DESCRIPTION)
    if not description:
        raise ValueError("it has no description, so a model would not know when to use it")
    listed = fields.get("disable-model-invocation", "").lower() != "true"
    typed = fields.get("user-invocable", "").lower() != "false"
    return Skill(name, description, str(folder), str(bounds), origin, listed, typed, unused(fields))


def unused(fields: Mapping[str, str]) -> tuple[str, ...]:
    """Which keys of a head are not used: no file of a project grants rights or chooses what is paid for."""
    return tuple(key for key in _NOT_USED if fields.get(key))


def _file(folder: Path) -> str:
    return os.path.realpath(folder / FILE)


def _files(folder: Path) -> Iterator[str]:
    """What else lies in the folder, links not followed."""
    for path, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            if name != FILE and not name.startswith("."):
                yield shown(os.path.relpath(os.path.join(path, name), folder))  # noqa: PTH118 - names of any bytes
