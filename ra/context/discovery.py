"""Which instruction files of the project does the model get? CLAUDE.md, AGENTS.md and the like, outermost first.

They stand in the system part, so what another user could have planted is not obeyed: a file must belong to us (or to
root), be a plain file, and lie inside the project, symlinks followed.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path

from ra.core.model import Section
from ra.core.settings import INSTRUCTION_FILES
from ra.core.text import shown
from ra.core.value import Value

MAX_BYTES = 32 * 1024
MAX_MATCHES = 50  # files per directory that one pattern with a * may name

# A dependency's instructions are for those who work on the dependency.
FOREIGN = frozenset({".git", "node_modules", "site-packages", ".venv", "venv", "__pycache__"})

# Tag characters and direction marks: text that a person does not see and a model reads.
_INVISIBLE = re.compile("[\U000e0000-\U000e007f\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069]")


class Discovered(Value, frozen=True):
    """What was found, in order, and what was left out or looks odd, one line each."""

    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()


def discover(
    cwd: Path, root: Path, patterns: Sequence[str] = INSTRUCTION_FILES, *, uid: int | None = None
) -> Discovered:
    """The files from the project's root down to `cwd`."""
    cwd, root = Path(os.path.realpath(cwd)), Path(os.path.realpath(root))
    return _gather(_way(root, cwd), root, patterns, given=(), uid=uid)


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
    return _gather(_way(root, folder), root, patterns, given=given, uid=uid)


def _way(root: Path, folder: Path) -> list[Path]:
    """Root first, folder last; the folder alone when it does not lie in the root."""
    if not folder.is_relative_to(root):
        return [folder]
    steps = folder.relative_to(root).parts
    return [root.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]


def _gather(
    folders: Iterable[Path], root: Path, patterns: Sequence[str], *, given: Collection[Section], uid: int | None
) -> Discovered:
    sections: list[Section] = []
    notes: list[str] = []
    names = {section.name for section in given}
    contents = {_body(section) for section in given}
    for folder in folders:
        for pattern in patterns:
            for path in _matches(folder, pattern, notes):
                name = shown(os.path.relpath(path, root))
                if name in names:
                    continue
                names.add(name)
                section = _read(path, name, root, os.geteuid() if uid is None else uid, notes)
                if section is None:
                    continue
                if _body(section) in contents:
                    notes.append(f"{name}: the same text as a file before it, left out")
                    continue
                contents.add(_body(section))
                sections.append(section)
    return Discovered(tuple(sections), tuple(notes))


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
        notes.append(f"{name}: leads out of the project to {shown(real)}, not read")
        return None
    try:
        data, size = _bytes(real, uid)
    except OSError as error:
        notes.append(f"{name}: {error.strerror}, not read")
        return None
    return _section(name, data, size, notes)


def _bytes(real: str, uid: int) -> tuple[bytes, int]:
    """The beginning of a plain file of ours, and its size. Raises OSError with the reason."""
    # Not blocking: a FIFO may have no writer. Not following: it was resolved, so a link here is a race.
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        if status.st_uid not in (uid, 0):
            raise OSError(errno.EPERM, f"belongs to another user (uid {status.st_uid})")
        return os.read(descriptor, MAX_BYTES + 1), status.st_size
    finally:
        os.close(descriptor)


def _section(name: str, data: bytes, size: int, notes: list[str]) -> Section | None:
    if b"\0" in data:
        notes.append(f"{name}: not text, not read")
        return None
    cut = ""
    if len(data) > MAX_BYTES:
        data = data[:MAX_BYTES]
        data = data[: data.rfind(b"\n") + 1 or MAX_BYTES]
        cut = f"the first {len(data)} of {size} bytes; read {name} for the rest"
        notes.append(f"{name}: {cut}")
    text = data.decode("utf-8-sig", "ignore" if cut else "replace").strip()
    if not text:
        return None
    if hidden := len(_INVISIBLE.findall(text)):
        notes.append(f"{name}: contains {hidden} invisible characters that the model reads and you do not see")
    marker = f"\n[… {cut}]" if cut else ""
    return Section(name, "stable", f"{_HEADING.format(name)}{text}{marker}", cut=cut)


_HEADING = "Instructions from {}:\n\n"


def _body(section: Section) -> str:
    """What the file says, without our heading: the same text under another name is the same text."""
    return section.content.removeprefix(_HEADING.format(section.name))
