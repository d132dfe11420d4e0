"""What in the project must a command not write or see? Hard links, protected names, secrets; found anew cheaply."""

import fnmatch
import os
import re
import time
from typing import NamedTuple

from ra.tools.paths import CONFIG_NAMES, SECRET_DIRS, TOKEN_NAMES, fold, holds_token, protected

CHEAP_S = 0.005
STALE_S = 30.0


class Findings(NamedTuple):
    """Absolute paths. `linked` files have another hard link; `guarded` are protected names below the top folder."""

    linked: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()

    def __or__(self, other: "Findings") -> "Findings":
        return Findings(self.linked | other.linked, self.guarded | other.guarded, self.secret | other.secret)


class _Folder(NamedTuple):
    changed_ns: int
    folders: tuple[str, ...]
    found: Findings


class Scan:
    """Looks at every file once; later only into folders whose content changed.

    A link made elsewhere to a file here does not change its folder, so all is looked at anew when that is cheap, and
    every half minute.
    """

    def __init__(self, root: str, instructions: tuple[str, ...]) -> None:
        self._root = root
        self._instructions = instructions
        self._folders: dict[str, _Folder] = {}
        self._whole_at = -STALE_S
        self._whole_took = 0.0
        names = (".ra", *CONFIG_NAMES, *(os.path.basename(name) for name in instructions), *TOKEN_NAMES, *SECRET_DIRS)
        self._specials = re.compile("|".join(fnmatch.translate(name.lower()) for name in names))

    def look(self) -> Findings:
        began = time.monotonic()
        whole = self._whole_took < CHEAP_S or began - self._whole_at > STALE_S
        fresh: dict[str, _Folder] = {}
        stack = [self._root]
        total = Findings()
        while stack:
            path = stack.pop()
            folder = self._folder(path, None if whole else self._folders.get(path))
            if folder is None:
                continue
            fresh[path] = folder
            stack += folder.folders
            if any(folder.found):
                total |= folder.found
        self._folders = fresh
        if whole:
            self._whole_at, self._whole_took = began, time.monotonic() - began
        return total

    def _folder(self, path: str, known: _Folder | None) -> _Folder | None:
        try:
            changed_ns = os.lstat(path).st_mtime_ns
            if known and known.changed_ns == changed_ns:
                return known
            with os.scandir(path) as entries:
                return self._read(path, changed_ns, list(entries))
        except OSError:
            return None  # gone, or not ours to read: then a command of ours cannot write there either

    def _read(self, path: str, changed_ns: int, entries: list["os.DirEntry[str]"]) -> _Folder:
        folders, linked, guarded, secret = [], [], [], []
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder:
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and _links(entry) > 1:
                linked.append(entry.path)
            if not self._special(entry.name):
                continue
            name = fold(entry.name)
            if name in SECRET_DIRS if is_folder else holds_token(name):
                secret.append(entry.path)
            elif path != self._root and self._is_guarded(entry.path):
                guarded.append(entry.path)
        return _Folder(changed_ns, tuple(folders), Findings(frozenset(linked), frozenset(guarded), frozenset(secret)))

    def _special(self, name: str) -> bool:
        """Whether the name may be one to judge: quick, for it is asked of every file."""
        return not name.isascii() or bool(self._specials.match(name.lower()))

    def _is_guarded(self, path: str) -> bool:
        """A protected name, but nothing below one, and no repository: `git init` in a subfolder is harmless here."""
        relative = os.path.relpath(path, self._root)
        above = protected(os.path.dirname(relative), self._instructions)
        return not above and fold(os.path.basename(path)) != ".git" and bool(protected(relative, self._instructions))


def _links(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_nlink
    except OSError:
        return 0  # gone meanwhile


class Outer:
    """Hard links among the folders outside the project that a box may write: those of a worktree's repository."""

    def __init__(self) -> None:
        self._scans: dict[str, Scan] = {}

    def linked(self, folders: tuple[str, ...]) -> frozenset[str]:
        scans = [self._scans.setdefault(folder, Scan(folder, ())) for folder in folders]
        return frozenset(path for scan in scans for path in scan.look().linked)
