"""Plans what a sandbox may see and write; each mechanism implements this one plan."""

import os
import re
from typing import NamedTuple

from ra.tools.policy.paths import CONFIG_NAMES, CREDENTIALS, Project

MAX_MOUNTS = 64
_CONFIG_CHARACTERS = 100_000
SYSTEM_SECRETS = (
    *(
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/ssl/private",
    ),
    *("/etc/ssh", "/etc/krb5.keytab", "/etc/docker/key.json", "/etc/kubernetes", "/var/lib/docker", "/var/lib/kubelet"),
    *("/var/spool/cron", "/var/lib/private", "/boot/efi", "/etc/NetworkManager", "/etc/wireguard", "/etc/openvpn"),
)


class Repository(NamedTuple):
    """The repository of a worktree outside the project: readable, and writable as far as a commit needs.

    `fixed` is in a writable folder and redirects git; the paths in `absent` would, if they existed.
    """

    common: str
    writable: tuple[str, ...]
    fixed: tuple[str, ...]
    absent: tuple[str, ...]


class Layout(NamedTuple):
    """The project and its special paths.

    `own` paths are protected by name, whether they exist or not. `watched` must not appear, and cannot be mounted over:
    git obeys them as soon as they exist. `hidden` exist and must not be seen.
    """

    root: str
    writable: bool
    own: tuple[str, ...]
    watched: tuple[str, ...]
    hidden: tuple[str, ...]
    repository: Repository | None = None


def plan(place: Project, hidden: tuple[str, ...]) -> Layout:
    root = place.real(place.root)
    home = place.real(place.home) if place.home else ""
    # A home directory is not a project: its files (.bashrc, .profile) would run outside the sandbox.
    is_home = bool(home) and (home == root or home.startswith(root.rstrip("/") + "/"))
    writable = not (place.read_only or root == "/" or is_home)
    git = _git_paths(root)
    names = [".ra", *_instructions(place, root), *CONFIG_NAMES, *git]
    own_paths = [os.path.join(root, name) for name in names]
    runs = [path for path in place.runs if path not in place.programs]
    own_paths += collapse(frozenset(path for path in runs if path.startswith(root.rstrip("/") + "/")), root)
    own_paths = [
        path for path in dict.fromkeys(map(_in_real_folder, own_paths)) if path.startswith(root.rstrip("/") + "/")
    ]
    secrets = [*SYSTEM_SECRETS, *hidden, *(os.path.join(home, name) for name in CREDENTIALS if home)]
    readable_secrets = [place.real(path) for path in secrets if os.access(path, os.R_OK)]
    inside_out = [
        path for path in dict.fromkeys(readable_secrets) if not root.startswith(path.rstrip("/") + "/") and path != root
    ]
    watched = [os.path.join(root, name) for name in _git_obeys(git)]
    # If even the folder is missing (.github), nothing can be mounted without obstructing commands.
    watched += [path for path in own_paths if not os.path.isdir(os.path.dirname(path))]
    mounted = tuple(path for path in own_paths if path not in watched)
    repository = worktree(root) if writable else None
    watched += repository.absent if repository else ()
    return Layout(root, writable, mounted, tuple(watched), tuple(topmost(inside_out)), repository)


def _in_real_folder(path: str) -> str:
    """The path below its folder's real path: a command may have replaced the folder with a link out of the project."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def worktree(root: str) -> Repository | None:
    """The repository of a worktree, if the repository itself lists the worktree.

    A `.git` file alone proves nothing: whoever packed the folder wrote it, and could name any other repository.
    """
    try:
        git_dir = os.path.realpath(os.path.join(root, _line(os.path.join(root, ".git")).removeprefix("gitdir: ")))
        common = os.path.realpath(os.path.join(git_dir, _line(os.path.join(git_dir, "commondir"))))
        named = os.path.realpath(_line(os.path.join(git_dir, "gitdir")))
    except (OSError, ValueError):
        return None
    if named != os.path.join(root, ".git") or os.path.dirname(git_dir) != os.path.join(common, "worktrees"):
        return None
    parts = tuple(os.path.join(common, name) for name in ("objects", "refs", "logs"))
    fixed = tuple(os.path.join(git_dir, name) for name in ("commondir", "gitdir"))
    absent = os.path.join(git_dir, "config.worktree")
    if os.path.lexists(absent):
        return Repository(common, (git_dir, *parts), (*fixed, absent), ())
    return Repository(common, (git_dir, *parts), fixed, (absent,))


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(4096).strip()


def _instructions(place: Project, root: str) -> list[str]:
    """The names of instruction files here. A pattern comes from the project, so it must not point elsewhere."""
    paths = []
    for pattern in place.instructions:
        name = os.path.normpath(pattern)
        if os.path.isabs(name) or name.split("/")[0] in ("..", "."):
            continue
        if "*" in name:
            import glob  # start-up time: hardly anybody has one

            paths += glob.glob(name, root_dir=root, include_hidden=True)[:MAX_MOUNTS]
        else:
            paths.append(name)
    return paths


def _git_paths(root: str) -> list[str]:
    """What git would run or obey. A `.git` that is a file, a link or missing is protected, and so is its target."""
    git = os.path.join(root, ".git")
    # The project itself can be a bare repository, which git uses without a usable `.git`.
    bare = all(os.path.isdir(os.path.join(root, name)) for name in ("objects", "refs"))
    itself = _in_repository(root, ".") if bare else []
    if os.path.isdir(git) and not os.path.islink(git):
        return [*_in_repository(root, ".git"), *itself]
    led = os.path.relpath(_led_to(git), root)
    return [".git", *(_in_repository(root, led) if led.split("/")[0] not in ("..", ".", ".git") else []), *itself]


def _in_repository(root: str, git: str) -> list[str]:
    there = [name for name in ("modules", "worktrees") if os.path.lexists(os.path.join(root, git, name))]
    paths = [os.path.normpath(f"{git}/{name}") for name in ("hooks", "config", *there)]
    return [*paths, *_other_hooks(root, os.path.join(root, git, "config"))]


def _other_hooks(root: str, config: str) -> list[str]:
    """The folder of the project that `core.hooksPath` names, as hook managers set it."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            named = re.findall(
                r"^\s*hookspath\s*=\s*\"?([^\"\n]+)", file.read(_CONFIG_CHARACTERS), re.IGNORECASE | re.MULTILINE
            )
    except OSError:
        return []
    paths = [os.path.relpath(os.path.join(root, os.path.expanduser(path.strip())), root) for path in named]
    return [path for path in paths if path.split("/")[0] not in ("..", ".", ".git")]


def _led_to(git: str) -> str:
    """The repository behind a link or a file with `gitdir: …`, as in worktrees and separate git directories."""
    if os.path.islink(git):
        return os.path.realpath(git)
    try:
        with open(git, "rb") as file:
            word, _, path = os.fsdecode(file.read(4096)).partition("gitdir:")
    except OSError:
        return git
    return git if word or not path.strip() else os.path.realpath(os.path.join(os.path.dirname(git), path.strip()))


def _git_obeys(protected: list[str]) -> list[str]:
    """What git would obey as soon as it exists; an existing `modules` is protected already."""
    folders = [os.path.dirname(path) for path in protected if os.path.basename(path) == "hooks"]
    names = [os.path.join(folder, name) for folder in folders for name in ("commondir", "config.worktree", "modules")]
    return [name for name in names if name not in protected]


def collapse(paths: frozenset[str], root: str, most: int = MAX_MOUNTS) -> list[str]:
    """At most `most` paths that cover all of these: a folder replaces its files if there are many."""
    covered = set(paths)
    while len(covered) > most:
        deepest = max(path.count("/") for path in covered)
        folders = {os.path.dirname(path) if path.count("/") == deepest else path for path in covered}
        if root in folders:
            return [root]
        covered = folders
    return topmost(covered)


def topmost(paths: "set[str] | list[str]") -> list[str]:
    """Drops the paths that are below another one."""
    top: list[str] = []
    for path in sorted(paths):
        if not top or not path.startswith(top[-1].rstrip("/") + "/"):
            top.append(path)
    return top


def masked(path: str) -> list[str]:
    """Mounts that empty a path. A missing path needs none: bubblewrap refuses to mask what does not exist."""
    if not os.path.lexists(path):
        return []
    return ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
