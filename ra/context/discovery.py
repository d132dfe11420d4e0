"""Finds instruction files: the user's own, then a project's CLAUDE.md, AGENTS.md and the like, outermost first.

They stand in the system part, so what another user could have planted is not obeyed: a file must belong to us (or to
root), be a plain file, and lie inside the project, symlinks followed.
"""

import errno
import os
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path

from ra.core.model import Section
from ra.core.settings import INSTRUCTION_FILES
from ra.core.text import one_line, shown
from ra.core.value import Value
from ra.system.files import open_regular
from ra.system.secret_names import is_secret

MAX_BYTES = 32 * 1024
USER_FILES = ("AGENTS.md", "CLAUDE.md")  # in the folder of the user's own configuration
MAX_FOLDERS = 20_000  # in which a list of instruction files looks
MAX_MATCHES = 50  # files per directory that one pattern with a * may name

# A dependency's instructions are for those who work on the dependency.
FOREIGN = frozenset({".git", "node_modules", "site-packages", ".venv", "venv", "__pycache__"})

# Tag characters and direction marks: text that a person does not see and a model reads.
_INVISIBLE = re.compile("[\U000e0000-\U000e007f\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069]")


class Discovered(Value, frozen=True):
    """What was found, in order, and what was left out or looks odd, one line each.

    `repeated` was left out too, but nothing is lost by it: `CLAUDE.md` is often a link to `AGENTS.md`.
    """

    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()


class _Bounds(Value, frozen=True):
    """Where files may lie that are read for one another: a project, or what is the user's own.

    `prefix` stands before their names, which are counted from `folder`.
    """

    folder: Path
    prefix: str = ""

    def name(self, path: Path) -> str:
        return self.prefix + shown(os.path.relpath(path, self.folder))


def discover(
    cwd: Path,
    root: Path,
    patterns: Sequence[str] = INSTRUCTION_FILES,
    *,
    home: Path | None = None,
    settings_folder: Path | None = None,
    uid: int | None = None,
) -> Discovered:
    """The user's own files, if `home` and `settings_folder` say where they are, then those from the root to `cwd`."""
    cwd, root = Path(os.path.realpath(cwd)), Path(os.path.realpath(root))
    gathering = _Gathering((), home, uid)
    for path in user_files(home, settings_folder):
        gathering.file(path, _user_bounds(path, home))
    gathering.folders(_way(root, cwd), _Bounds(root), patterns)
    return gathering.discovered()


def nested(
    touched: Path,
    cwd: Path,
    root: Path,
    patterns: Sequence[str] = INSTRUCTION_FILES,
    *,
    given: Collection[Section],
    uid: int | None = None,
) -> Discovered:
    """The files of the directories down to what a tool has touched that are not among the `given` sections."""
    root = Path(os.path.realpath(root))
    try:
        path = Path(os.path.realpath(cwd / touched))
    except ValueError:  # a NUL or a lone surrogate: a model may name anything
        return Discovered()
    folder = path if os.path.isdir(path) else path.parent  # noqa: PTH112 - Path.is_dir raises on a name too long
    if not folder.is_relative_to(root) or FOREIGN.intersection(folder.relative_to(root).parts):
        return Discovered()
    gathering = _Gathering(given, None, uid)
    gathering.folders(_way(root, folder), _Bounds(root), patterns)
    return gathering.discovered()


def below(cwd: Path, root: Path, patterns: Sequence[str] = INSTRUCTION_FILES) -> list[tuple[str, str]]:
    """The instruction files of other directories, each with its directory: `nested` reads it once a tool goes there."""
    cwd, root = Path(os.path.realpath(cwd)), Path(os.path.realpath(root))
    files: list[tuple[str, str]] = []
    on_the_way = set(_way(root, cwd))
    for folder, subfolders, _ in islice(os.walk(root), MAX_FOLDERS):
        subfolders[:] = sorted(name for name in subfolders if name not in FOREIGN)
        if Path(folder) not in on_the_way:
            paths = [path for pattern in patterns for path in _matches(Path(folder), pattern, [])]
            files += [(os.path.relpath(path, root), os.path.relpath(folder, root)) for path in paths]
    return files


def user_files(home: Path | None, settings_folder: Path | None) -> list[Path]:
    """The instruction files that hold in every project of this user."""
    places = [settings_folder / name for name in USER_FILES] if settings_folder else []
    places += [home / ".claude" / "CLAUDE.md"] if home else []
    return [path for path in places if os.path.lexists(path)]


def _user_bounds(path: Path, home: Path | None) -> _Bounds:
    folder = Path(os.path.realpath(home)) if home else None
    if folder is not None and path.parent.is_relative_to(home or folder):
        return _Bounds(folder, "~/")
    return _Bounds(Path(os.path.realpath(path.parent)), f"{path.parent}/")


def _way(root: Path, folder: Path) -> list[Path]:
    """Root first, folder last; the folder alone when it does not lie in the root."""
    if not folder.is_relative_to(root):
        return [folder]
    steps = folder.relative_to(root).parts
    return [root.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]


class _Gathering:
    """Sections in the order in which they are found; what stands there already is left out."""

    def __init__(self, given: Collection[Section], home: Path | None, uid: int | None) -> None:
        self._sections: list[Section] = []
        self._notes: list[str] = []
        self._repeated: list[str] = []
        self._names = {section.name for section in given}
        self._contents = {_body(section) for section in given}
        self._home = home
        self._uid = os.geteuid() if uid is None else uid

    def discovered(self) -> Discovered:
        return Discovered(tuple(self._sections), tuple(self._notes), tuple(self._repeated))

    def folders(self, folders: Iterable[Path], bounds: _Bounds, patterns: Sequence[str]) -> None:
        for folder in folders:
            for pattern in patterns:
                for path in _matches(folder, pattern, self._notes):
                    self.file(path, bounds)

    def file(self, path: Path, bounds: _Bounds) -> None:
        """One instruction file, and what it imports."""
        name = bounds.name(path)
        section = self._add(path, name, bounds)
        if section is not None and "@" in section.content:
            self._imports(path, name, section, bounds)

    def _imports(self, path: Path, name: str, section: Section, bounds: _Bounds) -> None:
        from ra.context import imports  # most instruction files import nothing

        waiting = [(path, name, section, 1)]
        count = 0
        incomplete: set[str] = set()
        while waiting:
            importer, importer_name, section, depth = waiting.pop(0)
            for written in dict.fromkeys(imports.named_in(_body(section))):
                place = imports.target(written, importer, self._home)
                label = f"{importer_name}: imports @{shown(one_line(written, 100))}"
                if place is None or not os.path.isfile(place):  # noqa: PTH113 - any text may stand here
                    if imports.is_missed(written):
                        self._notes.append(f"{label}, which is not there")
                    continue
                if why := imports.refusal(place, bounds.folder):
                    self._notes.append(f"{label}, which {why}, not read")
                    continue
                real = Path(os.path.realpath(place))
                imported = bounds.name(real)
                if imported in self._names:
                    continue
                count += 1
                if depth > imports.MAX_DEPTH or count > imports.MAX_IMPORTS:
                    if importer_name not in incomplete:
                        limit = f"{imports.MAX_DEPTH} deep and {imports.MAX_IMPORTS} in all"
                        self._notes.append(f"{label}, beyond {limit}; not read, nor what it imports after that")
                    incomplete.add(importer_name)
                    continue
                added = self._add(real, imported, bounds)
                if added is not None:
                    waiting.append((real, imported, added, depth + 1))

    def _add(self, path: Path, name: str, bounds: _Bounds) -> Section | None:
        if name in self._names:
            return None
        self._names.add(name)
        section = _read(path, name, bounds.folder, self._uid, self._notes)
        if section is None:
            return None
        if _body(section) in self._contents:
            self._repeated.append(f"{name}: the same text as a file before it, left out")
            return None
        self._contents.add(_body(section))
        self._sections.append(section)
        return section


def _matches(folder: Path, pattern: str, notes: list[str]) -> list[Path]:
    if "*" not in pattern:
        path = folder / pattern
        # A socket holds the name of a file that is not there, while a command runs in a box or after ra was killed.
        return [path] if os.path.lexists(path) and not path.is_socket() else []
    if "**" in pattern or Path(pattern).is_absolute():
        note = f"pattern {pattern!r}: ** and absolute paths are not supported here; a pattern is for one directory"
        if note not in notes:
            notes.append(note)
        return []
    return sorted(islice((path for path in folder.glob(pattern) if not path.is_socket()), MAX_MATCHES))


def _read(path: Path, name: str, root: Path, uid: int, notes: list[str]) -> Section | None:
    """One file as a section; None, and a note, when it must not or cannot be one."""
    real = os.path.realpath(path)  # not Path.resolve, which raises on a loop of links
    if not Path(real).is_relative_to(root):
        notes.append(f"{name}: leads out of {_place(name)} to {shown(real)}, not read")
        return None
    if is_secret(os.path.relpath(path, root)) or is_secret(os.path.relpath(real, root)):
        notes.append(f"{name}: may hold secrets, not read")  # a pattern of the project's own file may name anything
        return None
    try:
        content, size = _bytes(real, uid)
    except OSError as error:
        notes.append(f"{name}: {error.strerror}, not read")
        return None
    return _section(name, content, size, notes)


def _bytes(real: str, uid: int) -> tuple[bytes, int]:
    """The beginning of a plain file of ours, and its size. Raises OSError with the reason."""
    with open_regular(real) as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (uid, 0):
            raise OSError(errno.EPERM, f"belongs to another user (uid {status.st_uid})")
        return file.read(MAX_BYTES + 1), status.st_size


def _section(name: str, content: bytes, size: int, notes: list[str]) -> Section | None:
    if b"\0" in content:
        notes.append(f"{name}: not text, not read")
        return None
    cut = ""
    if len(content) > MAX_BYTES:
        content = content[:MAX_BYTES]
        content = content[: content.rfind(b"\n") + 1 or MAX_BYTES]
        cut = f"the first {len(content)} of {size} bytes; read {name} for the rest"
        notes.append(f"{name}: {cut}")
    text = content.decode("utf-8-sig", "ignore" if cut else "replace").strip()
    if not text:
        return None
    if hidden := len(_INVISIBLE.findall(text)):
        notes.append(f"{name}: contains {hidden} invisible characters that the model reads and you do not see")
    marker = f"\n[… {cut}]" if cut else ""
    return Section(name, "stable", f"{_HEADING.format(name)}{text}{marker}", cut=cut)


def _place(name: str) -> str:
    return "your home" if name.startswith("~/") else "the project"


_HEADING = "Instructions from {}:\n\n"


def _body(section: Section) -> str:
    """What the file says, without our heading: the same text under another name is the same text."""
    return section.content.removeprefix(_HEADING.format(section.name))
