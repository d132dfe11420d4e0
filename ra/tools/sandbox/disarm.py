"""Makes whatever a command wrote for git harmless: deletes nothing, and prevents all of it from running.

A list of what is data decides what git may obey, not a list of what is dangerous.
"""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from ra.system.files import hold_folder
from ra.tools.policy.paths import shown
from ra.tools.sandbox.guard import exists, free_name, set_aside

_CONFIG_BYTES = 1_000_000
_SAFE = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode"},
    "branch": {"remote", "merge", "rebase"},
    "remote": {"fetch"},
    "user": {"name", "email"},
    "init": {"defaultbranch"},
}
"""Keys of a configuration that name no program, no file to include, and no transport."""

_DATA = (
    *("HEAD", "*_HEAD", "index", "sharedindex.*", "next-index-*", "*.lock", "packed-refs", "shallow", "AUTO_MERGE"),
    *("*_MSG", "*_EDITMSG", "MERGE_*", "BISECT_*", "NOTES_MERGE_*", "*.patch", "gc.log", "gc.pid", "description"),
    *("objects", "refs", "logs", "info", "reftable", "lfs", "rr-cache", "worktrees"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
"""Files of a repository that a command may leave in it. Other names wait for the user."""

_MERGES = frozenset({"ort", "recursive", "resolve", "octopus", "ours", "subtree"})
_PLAN = "git-rebase-todo"


def is_repository(names: Collection[str]) -> bool:
    """Whether git could take a folder with these names for a repository, or for the part that contains its settings."""
    return {"objects", "refs"} <= set(names) or {"HEAD", "commondir"} <= set(names)


def leads_inside(pointer: str, root: str) -> bool:
    """Whether a `.git` that is a file or a link points into the project, where all repositories are known."""
    try:
        if os.path.islink(pointer):
            target = os.path.realpath(pointer)
        else:
            with open(pointer, "rb") as file:
                word, _, path = os.fsdecode(file.read(4096)).partition("gitdir:")
            target = os.path.realpath(os.path.join(os.path.dirname(pointer), path.strip())) if not word else ""
    except (OSError, ValueError):
        return False
    return target.startswith(root.rstrip("/") + "/")


class OwnRepository:
    """The project's own repository before a command that may write it.

    Its settings and hooks are mounted read-only. This covers the rest: existing files stay, and so does data.
    """

    def __init__(self, folders: tuple[str, ...]) -> None:
        """The first folder is the repository itself; the others contain parts of it."""
        self._folders = folders
        self._names = frozenset(_listed(folders[0]))
        self._links = {link for folder in folders for link in _links(folder)}
        self._plan = _plan_of(folders[0])

    def undo_planted(self) -> list[str]:
        """One line for each path that was moved aside."""
        folder = self._folders[0]
        new_names = sorted(name for name in _listed(folder) if name not in self._names and not _is_data(name))
        paths = [os.path.join(folder, name) for name in new_names]
        paths += sorted({link for each in self._folders for link in _links(each)} - self._links)
        notes = [set_aside(path) for path in paths]
        stopped = _stop_rebase(folder, self._plan)
        return [*notes, *(f"{shown(path)} names programs, which were taken out of it." for path in stopped)]


def disarm(path: str) -> str:
    """Makes a new repository harmless: its configuration contains only safe keys, and its hooks cannot run."""
    changed = []
    with contextlib.suppress(OSError), hold_folder(path) as folder:
        for name in ("config.worktree", "commondir"):
            if exists(name, folder) and not (name == "commondir" and _is_worktree(path)):
                os.rename(name, free_name(name, folder), src_dir_fd=folder, dst_dir_fd=folder)
                changed.append(name)
        if _clean_config(folder):
            changed.append("config")
        if _stop_hooks(folder):
            changed.append("hooks")
    links = [link for link in _links(path) if os.path.lexists(link)]
    for link in links:
        set_aside(link)
    changed += ["links"] if links else []
    changed += [os.path.relpath(file, path) for file in _stop_rebase(path, frozenset())]
    where = shown(path)
    if not changed:
        return f"A git repository was made in {where}. Tell the user."
    return f"A git repository was made in {where}; what in its {', '.join(changed)} could run programs was disarmed."


def _is_worktree(path: str) -> bool:
    """Whether a folder was created by `git worktree add` in a repository, whose settings apply to it."""
    above, name = os.path.split(os.path.dirname(path))
    try:
        with hold_folder(path) as folder:
            handle = os.open("commondir", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                leads_to = os.fsdecode(file.read(4096)).strip()
    except OSError:
        return False
    return name == "worktrees" and os.path.realpath(os.path.join(path, leads_to)) == os.path.realpath(above)


def _is_data(name: str) -> bool:
    plain = re.sub(r"\.set-aside\d*$", "", name)
    return plain != name or any(fnmatchcase(name, pattern) for pattern in _DATA)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _links(folder: str) -> Iterator[str]:
    """Links in a repository: git would write its log, or an object, to their targets."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        if not fnmatchcase(entry.name, "*.set-aside*"):
                            yield entry.path
                    # There are many loose objects, and git only reads them.
                    elif entry.is_dir() and not (len(entry.name) == 2 and os.path.basename(here) == "objects"):
                        waiting.append(entry.path)
        except OSError:
            continue  # gone meanwhile, or unreadable: then git cannot write there either


# --- operations in progress ---


def _stop_rebase(folder: str, plan_before: Collection[str]) -> list[str]:
    """`git rebase --continue` runs the rest of its plan; lines from before the command are the user's."""
    plan = os.path.join(folder, "rebase-merge", _PLAN)
    lines = _lines(plan)
    remaining = [line for line in lines if not _names_program(line) or line in plan_before]
    stopped = [plan] if remaining != lines and _replace(plan, "".join(remaining)) else []
    for file, strategy in (("rebase-merge/strategy", _whole_line), ("sequencer/opts", _strategy_setting)):
        path = os.path.join(folder, file)
        if not all(name in _MERGES for line in _lines(path) if (name := strategy(line))):
            set_aside(path)
            stopped.append(path)
    return stopped


def _plan_of(folder: str) -> frozenset[str]:
    return frozenset(_lines(os.path.join(folder, "rebase-merge", _PLAN)))


def _names_program(line: str) -> bool:
    return line.split(maxsplit=1)[:1] in (["exec"], ["x"])


def _whole_line(line: str) -> str:
    return line.strip()


def _strategy_setting(line: str) -> str:
    key, _, value = line.partition("=")
    return value.strip() if key.strip().casefold() == "strategy" else ""


def _lines(path: str) -> list[str]:
    folder, name = os.path.split(path)
    try:
        with hold_folder(folder) as handle:
            return _text(name, handle).splitlines(keepends=True)
    except OSError:
        return []


def _replace(path: str, text: str) -> bool:
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError), hold_folder(folder) as handle:
        _renew(name, text, handle)
        return True
    return False


def _clean_config(folder: int) -> bool:
    """Keeps the safe lines. Moves aside whatever is not a plain file."""
    try:
        mode = os.stat("config", dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        return False  # git cannot read it
    text = _text("config", folder) if stat.S_ISREG(mode) else ""
    safe = safe_config(text)
    if safe == text and stat.S_ISREG(mode):
        return False
    _renew("config", safe, folder)
    return True


def _text(name: str, folder: int) -> str:
    """The text of a plain file. Raises OSError."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        return file.read(_CONFIG_BYTES).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(handle).st_mode) else ""


def _renew(name: str, text: str, folder: int) -> None:
    """Moves a file aside and writes another one in its place. Raises OSError."""
    os.rename(name, free_name(name, folder), src_dir_fd=folder, dst_dir_fd=folder)
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, how, 0o644, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(text)


def safe_config(text: str) -> str:
    """The lines of a git configuration that neither name a program nor point elsewhere."""
    lines = []
    allowed: set[str] = set()
    continued = False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if continued:  # belongs to the previous line, which was kept only if it was complete
            continued = stripped.endswith("\\")
            continue
        if stripped.startswith("["):
            header, _, behind = stripped[1:].partition("]")
            section = header.partition('"')[0].strip().casefold()
            allowed = _SAFE.get(section, set())
            if allowed and not behind.strip():
                lines.append(line)
            elif allowed:
                lines.append(f"[{header}]\n")
            continue
        continued = stripped.endswith("\\")
        key = stripped.partition("=")[0].strip().casefold()
        if key in allowed and not continued:
            lines.append(line)
    return "".join(lines)


def _stop_hooks(folder: int) -> bool:
    stopped = False
    try:
        hooks = os.open("hooks", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        os.rename("hooks", free_name("hooks", folder), src_dir_fd=folder, dst_dir_fd=folder)
        return True
    except OSError:
        return False
    try:
        for name in os.listdir(hooks):
            mode = os.stat(name, dir_fd=hooks, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                os.rename(name, free_name(name, hooks), src_dir_fd=hooks, dst_dir_fd=hooks)
                stopped = True
            elif stat.S_ISREG(mode) and mode & 0o111:
                os.chmod(name, stat.S_IMODE(mode) & ~0o111, dir_fd=hooks)
                stopped = stopped or not name.endswith(".sample")
    finally:
        os.close(hooks)
    return stopped
