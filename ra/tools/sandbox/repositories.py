"""Takes the programs out of a repository that a command left in the project: nothing is deleted, nothing runs."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Sequence

from ra.system.files import hold_folder, open_resolved
from ra.tools.policy.paths import shown
from ra.tools.sandbox.find import Host
from ra.tools.sandbox.guard import exists, free_name
from ra.tools.sandbox.host import expanded

_CONFIG_BYTES = 1_000_000
EXCLUDES_KEY = "core.excludesfile"
_SAFE = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode"},
    "branch": {"remote", "merge", "rebase"},
    "remote": {"fetch"},
    "user": {"name", "email"},
    "init": {"defaultbranch"},
}
"""What a configuration may say without naming a program, a file to include, or a transport."""


_QUIET = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("diff.external", ""),
    ("submodule.recurse", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),
)
"""Nothing that git would start besides itself."""


def git_env(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What git is told in a box: these settings, and to start nothing."""
    every = (*settings, *_QUIET)
    return {"GIT_CONFIG_COUNT": str(len(every))} | {
        f"GIT_CONFIG_{kind}_{number}": text
        for number, pair in enumerate(every)
        for kind, text in zip(("KEY", "VALUE"), pair, strict=True)
    }


class IgnoredNames:
    """The file of names that git passes over in a box: the user's own ones, and what is masked there."""

    def __init__(self, file: str, identity: Sequence[tuple[str, str]], host: Host, home: str) -> None:
        self._file = file
        above = host.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        names = [value for key, value in identity if key == EXCLUDES_KEY] or [os.path.join(above, "git/ignore")]
        try:
            with open_resolved(expanded(names[-1], home)) as opened:
                self._users = opened.read(_CONFIG_BYTES)
        except (OSError, ValueError):
            self._users = b""
        self._content: bytes | None = None

    def written(self, masked: Iterable[str], root: str) -> str:
        """The file's name. It is written anew when other paths are masked."""
        names = [os.path.relpath(path, root) for path in sorted(masked)]
        lines = [os.fsencode("/" + re.sub(r"([\\*?\[])", r"\\\1", name)) for name in names if "\n" not in name]
        content = b"\n".join([self._users, *lines, b""])
        if content != self._content:
            with open(f"{self._file}.new", "wb") as file:
                file.write(content)
            os.replace(f"{self._file}.new", self._file)
            self._content = content
        return self._file


def disarm(path: str) -> str:
    """Make a new repository harmless: its configuration says only what is safe, and its hooks cannot run."""
    changed = []
    with contextlib.suppress(OSError), hold_folder(path) as folder:
        for name in ("config", "config.worktree", "commondir"):
            if name != "config" and exists(name, folder):
                os.rename(name, free_name(name, folder), src_dir_fd=folder, dst_dir_fd=folder)
                changed.append(name)
        if _clean_config(folder):
            changed.append("config")
        if _stop_hooks(folder):
            changed.append("hooks")
    where = shown(path)
    if not changed:
        return f"A git repository was made in {where}. Tell the user."
    return f"A git repository was made in {where}; what in its {', '.join(changed)} could run programs was disarmed."


def _clean_config(folder: int) -> bool:
    """Keep the safe lines. Whatever is no plain file is moved aside."""
    if not exists("config", folder):
        return False
    try:
        handle = os.open("config", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            regular = stat.S_ISREG(os.fstat(handle).st_mode)
            text = file.read(_CONFIG_BYTES).decode("utf-8", "replace") if regular else ""
    except OSError:
        text = ""
    safe = safe_config(text)
    if safe == text:
        return False
    os.rename("config", free_name("config", folder), src_dir_fd=folder, dst_dir_fd=folder)
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open("config", how, 0o644, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(safe)
    return True


def safe_config(text: str) -> str:
    """The lines of a git configuration that name no program and lead nowhere else."""
    lines = []
    allowed: set[str] = set()
    continued = False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if continued:  # belongs to the line before, which was kept only if it was complete
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
