"""Finds what a command must not write or see in the project: hard links, protected names, secrets."""

import contextlib
import fnmatch
import os
import re
import time
from array import array
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ra.system.files import append_private, open_regular
from ra.system.secret_names import SECRET_DIRS, TOKEN_NAMES, fold, holds_token
from ra.tools.policy.paths import CONFIG_NAMES, EDITOR_NAMES, ROOT_NAMES, protected
from ra.tools.sandbox.disarm import is_repository, leads_inside
from ra.tools.sandbox.host import is_socket
from ra.tools.sandbox.layout import Layout
from ra.tools.sandbox.watch import Changes, Watch

_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
CHEAP_S = 0.005
_MEMORY_BYTES = 4_000_000
TICK_NS = 20_000_000
_JUST_NOW = -1
STALE_S = 30.0


class Findings(NamedTuple):
    """Absolute paths.

    `linked` files have another hard link, possibly outside the project; `guarded` are protected names; `repositories`
    are folders that git would take for one: `.git`, or a bare one; `sockets` lead to other programs. `closed` folders
    are unreadable, so their contents are unknown. `twins` are files with several names, all of them in the project:
    cargo, esbuild and pnpm create them.
    """

    linked: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    repositories: frozenset[str] = frozenset()
    sockets: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    twins: frozenset[frozenset[str]] = frozenset()

    def with_closed_twins(self, protected: Collection[str]) -> "Findings":
        """A file is as protected as each of its names: the others of a protected one are `linked`."""
        top = {*protected, *self.guarded, *self.secret, *self.repositories}
        shut = (names for names in self.twins if any(_lies_in(path, top) for path in names))
        return self._replace(linked=self.linked.union(*shut))


_NOTHING = Findings()
_PACKAGES = frozenset({"node_modules", "site-packages"})
_ENVIRONMENT = "pyvenv.cfg"


class ProtectedState:
    """The protected paths before a command, to distinguish what it adds from what the user does meanwhile.

    An existing path was read-only in the sandbox: if its folder is still the same, the change came from outside.
    """

    def __init__(self, layout: Layout, findings: Findings) -> None:
        self._watched = (*layout.own, *layout.watched)
        self._root = layout.root
        names = (*self._watched, *findings.guarded, *findings.repositories)
        self._was = {path: (_identity(path), _identity(os.path.dirname(path))) for path in names}
        self._known = {identity for identity, _ in self._was.values() if identity}
        # Kept open, so that no other file gets the inode number of one that is deleted meanwhile.
        self._held = [handle for path in self._was if (handle := _hold(path)) is not None]

    def release(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def new_names(self, now: Findings) -> list[str]:
        """The protected names that the command added."""
        watched = [path for path in self._watched if os.path.basename(path) != ".git" or not os.path.isdir(path)]
        new_paths = sorted(path for path in {*watched, *now.guarded} if self._is_new(path))
        return [path for path in new_paths if os.path.basename(path) != ".git" or not leads_inside(path, self._root)]

    def new_repositories(self, now: Findings) -> list[str]:
        return sorted(path for path in now.repositories if self._is_new(path))

    def replaced(self, closed: Sequence[str]) -> list[str]:
        """Protected files that were replaced.

        A mount disappears with the file that it covers, so the command could write the new one: only whoever replaced
        it knows its intended contents. `closed`: everything in these folders was read-only, whatever appeared there.
        """
        changed = []
        for path, (was, _) in self._was.items():
            now = _identity(path)
            if was and now and now != was and not os.path.isdir(path) and not _lies_in(path, set(closed)):
                changed.append(path)
        return sorted(changed)

    def _is_new(self, path: str) -> bool:
        identity = _identity(path)
        if identity is None or identity in self._known:
            return False  # missing, or only moved
        was, folder = self._was.get(path, (None, None))
        return was is None or folder != _identity(os.path.dirname(path))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _hold(path: str) -> int | None:
    try:
        return os.open(path, _PATH_ONLY)
    except OSError:
        return None


def _remembered(memory: str) -> set[tuple[int, int]]:
    try:
        with open_regular(memory) as file:
            rows = [line.split() for line in file.read(_MEMORY_BYTES).splitlines()]
    except OSError:
        return set()
    return {(int(row[0]), int(row[1])) for row in rows if len(row) == 2 and row[0].isdigit() and row[1].isdigit()}


class _Name(NamedTuple):
    """One name of a file that has several. A folder that is mounted twice shows the same name twice."""

    path: str
    file: tuple[int, int]
    folder: tuple[int, int]


class _Folder(NamedTuple):
    changed_ns: int
    installed: bool  # belongs to packages of other authors
    folders: tuple[str, ...]
    names: tuple[_Name, ...]  # of files that have several
    inodes: "array[int]"  # of the other files
    findings: Findings


class Scan:
    """Looks at every file once; later only into folders whose contents changed.

    A link that is created elsewhere to a file here does not change its folder, so everything is scanned again when that
    is cheap, and every half minute.

    Installed packages (node_modules, virtual environments) are full of hard links to a store: those that existed at the
    first scan are harmless. They are known by their inodes: by name, a command could turn a folder into such a package,
    and move protected files there. `memory` is a file that keeps, from one session to the next, the inodes that were
    once protected: otherwise what was moved in this session would exist at the first scan of the next.
    """

    def __init__(self, root: str, instructions: tuple[str, ...], memory: str = "") -> None:
        self._root = root
        self._instructions = instructions
        self._folders: dict[str, _Folder] = {}
        self._closed: set[str] = set()
        self._whole_at = -STALE_S
        self._whole_took = 0.0
        self._installed: set[tuple[int, int]] = set()
        self._memory = memory
        self._once_special = _remembered(memory)
        self._newly_special: set[tuple[int, int]] = set()
        self._outer: set[tuple[int, int]] = set()  # files whose other names were searched for here
        self._first = True
        self._watch = Watch()
        names = (
            ".ra",
            ".git",
            *CONFIG_NAMES,
            *ROOT_NAMES,
            *(os.path.basename(name) for name in (*EDITOR_NAMES, *instructions)),
            *TOKEN_NAMES,
            *SECRET_DIRS,
        )
        self._specials = re.compile("|".join(fnmatch.translate(name.lower()) for name in names))

    def look(self) -> Findings:
        began = time.monotonic()
        walk_all = self._whole_took < CHEAP_S or began - self._whole_at > STALE_S
        changes = self._watch.changes()
        # If opened again, they are not news: none of their files has changed.
        closed, self._closed = self._closed, set()
        for path in closed:
            self._folders = {inner: folder for inner, folder in self._folders.items() if not _lies_in(inner, {path})}
        if walk_all or changes is None:
            self._walk_all(anew=walk_all)
        else:
            changes.folders |= closed
            self._walk_changed(changes)
        if walk_all:
            self._whole_at, self._whole_took = began, time.monotonic() - began
        self._first = False
        parts = [folder.findings for folder in self._folders.values() if folder.findings is not _NOTHING]
        if self._closed:
            parts.append(Findings(closed=frozenset(self._closed)))
        parts.append(self._several_names())
        self._remember()
        return Findings(*(frozenset().union(*kind) for kind in zip(*parts, strict=True)))

    def _several_names(self) -> Findings:
        """The files with several names: `linked` if one of them is not in the project."""
        names_of = self._names_of()
        linked = {file for file, names in names_of.items() if not _are_all(names)}
        if missing := {inode for device, inode in linked - self._outer}:
            # They had one name when their folder was read, and a link that is created elsewhere does not change that
            # folder.
            for path, folder in list(self._folders.items()):
                if not missing.isdisjoint(folder.inodes):
                    del self._folders[path]
                    self._walk([(path, folder.installed)], self._folders)
            names_of = self._names_of()
            linked = self._outer = {file for file, names in names_of.items() if not _are_all(names)}
        for folder in self._folders.values():
            for name in folder.names:
                if name.file in linked:
                    self._note_special(name.file, installed=folder.installed)
        return Findings(
            linked=frozenset(name.path for file in linked for name in names_of[file]),
            twins=frozenset(frozenset(name.path for name in names_of[file]) for file in names_of.keys() - linked),
        )

    def _names_of(self) -> dict[tuple[int, int], list[_Name]]:
        names_of: dict[tuple[int, int], list[_Name]] = {}
        for folder in self._folders.values():
            for name in folder.names:
                names_of.setdefault(name.file, []).append(name)
        return names_of

    def _walk_all(self, *, anew: bool) -> None:
        """Visits every folder, and reads its contents if they changed, or if `anew`."""
        if not self._watch.works:
            self._watch = Watch()
        folders_before, self._folders = self._folders, {}
        self._walk([(self._root, False)], {} if anew else folders_before)

    def _walk_changed(self, changes: Changes) -> None:
        if changes.replaced:
            self._folders = {
                path: folder for path, folder in self._folders.items() if not _lies_in(path, changes.replaced)
            }
        for path in changes.folders:
            if path in self._folders or path == self._root:
                self._folders.pop(path, None)
        missing = {*changes.folders, *changes.replaced, *([] if self._root in self._folders else [self._root])}
        for path in sorted(missing):
            above = self._folders.get(os.path.dirname(path))
            if path not in self._folders and (path == self._root or (above and path in above.folders)):
                self._walk([(path, bool(above and above.installed))], self._folders)

    def _walk(self, stack: list[tuple[str, bool]], known: dict[str, _Folder]) -> None:
        while stack:
            path, installed = stack.pop()
            folder = self._folder(path, known.get(path), installed=installed)
            if folder is None:
                continue
            new_folders = [
                inner for inner in folder.folders if known is not self._folders or inner not in self._folders
            ]
            self._folders[path] = folder
            stack += [(inner, folder.installed) for inner in new_folders]

    def _folder(self, path: str, known: _Folder | None, *, installed: bool) -> _Folder | None:
        try:
            status = os.lstat(path)
            changed_ns = status.st_ctime_ns  # mtime can be set back
            if known and known.changed_ns == changed_ns:
                return known
            self._watch.add(path)
            if time.time_ns() - changed_ns < TICK_NS:
                changed_ns = _JUST_NOW  # a change within the same tick would go unnoticed
            with os.scandir(path) as entries:
                identity = (status.st_dev, status.st_ino)
                return self._read(path, identity, changed_ns, list(entries), installed=installed)
        except PermissionError:
            self._closed.add(path if _identity(path) else os.path.dirname(path))
            return None
        except OSError:
            return None  # gone

    def _read(
        self,
        path: str,
        identity: tuple[int, int],
        changed_ns: int,
        entries: list["os.DirEntry[str]"],
        *,
        installed: bool,
    ) -> _Folder:
        folders, several, guarded, secret, sockets = [], [], [], [], []
        inodes = array("Q")
        names = {entry.name for entry in entries}
        installed = installed or os.path.basename(path) in _PACKAGES or (_ENVIRONMENT in names and path != self._root)
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder:
                folders.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                if is_socket(entry.path):
                    sockets.append(entry.path)
            elif (status := _linked(entry)) and not self._is_installed(status, installed=installed):
                several.append(_Name(entry.path, (status.st_dev, status.st_ino), identity))
            else:
                inodes.append(entry.inode())
            if not self._special(entry.name):
                continue
            name = fold(entry.name)
            if (name in SECRET_DIRS if is_folder else holds_token(name)) and not (
                installed and self._is_installed(entry.stat(follow_symlinks=False), installed=True)
            ):
                secret.append(entry.path)
                status = entry.stat(follow_symlinks=False)
                self._note_special((status.st_dev, status.st_ino), installed=installed)
            if self._is_guarded(entry.path, is_folder=is_folder):
                guarded.append(entry.path)
        findings = Findings(
            guarded=frozenset(guarded),
            secret=frozenset(secret),
            repositories=frozenset([path] if is_repository(names) else []),
            sockets=frozenset(sockets),
        )
        findings = findings if any(findings) else _NOTHING
        return _Folder(changed_ns, installed, tuple(folders), tuple(several), inodes, findings)

    def _is_installed(self, status: os.stat_result, *, installed: bool) -> bool:
        """Whether a file belonged to an installed package at the first scan."""
        identity = (status.st_dev, status.st_ino)
        if self._first and installed and identity not in self._once_special:
            self._installed.add(identity)
        return identity in self._installed

    def _note_special(self, file: tuple[int, int], *, installed: bool) -> None:
        if not installed and file not in self._once_special:
            self._newly_special.add(file)

    def _remember(self) -> None:
        if self._newly_special and self._memory:
            lines = [f"{device} {inode}\n" for device, inode in sorted(self._newly_special)]
            with contextlib.suppress(OSError):  # a full disk: only this session knows them
                append_private(self._memory, "".join(lines).encode())
        self._once_special |= self._newly_special
        self._newly_special.clear()

    def _special(self, name: str) -> bool:
        """Whether the name may need a judgement. Fast, because it is called for every file."""
        return not name.isascii() or bool(self._specials.match(name.lower()))

    def _is_guarded(self, path: str, *, is_folder: bool) -> bool:
        """Whether the name is protected. Not below a protected name, nor a repository: `git init` is harmless here.

        A `.git` that is not a folder leads git to one, wherever that is.
        """
        if fold(os.path.basename(path)) == ".git":
            return not is_folder
        relative = os.path.relpath(path, self._root)
        if not _PACKAGES.isdisjoint(relative.split("/")):
            return False
        above = protected(os.path.dirname(relative), self._instructions)
        return not above and bool(protected(relative, self._instructions))


def _lies_in(path: str, folders: set[str]) -> bool:
    """Whether a path is one of these, or below one."""
    while len(path) > 1:
        if path in folders:
            return True
        path = os.path.dirname(path)
    return False


def _are_all(names: Sequence[_Name]) -> bool:
    """Whether the file has no other names than these at present."""
    different = {(name.folder, os.path.basename(name.path)) for name in names}
    try:
        status = os.lstat(names[0].path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino, status.st_nlink) == (*names[0].file, len(different))


def _linked(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """The status of a file that has another hard link."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # gone meanwhile
    return status if status.st_nlink > 1 else None


class Outer:
    """Hard links in the folders outside the project that a sandbox may write: those of a worktree's repository."""

    def __init__(self) -> None:
        self._scans: dict[str, Scan] = {}

    def linked(self, folders: tuple[str, ...]) -> frozenset[str]:
        scans = [self._scans.setdefault(folder, Scan(folder, ())) for folder in folders]
        return frozenset(path for scan in scans for path in scan.look().linked)
