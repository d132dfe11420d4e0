"""Selects what of the machine a sandbox contains: programs and toolchains, never a key, a socket or another project."""

import contextlib
import os
import stat
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator

from ra.system.environment import CERTIFICATES
from ra.system.secret_names import fold, holds_token
from ra.tools.policy.paths import program
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.guard import parents


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SYSTEM = _words("/bin /sbin /lib /lib32 /lib64 /libx32 /usr /etc /opt /nix /gnu /snap")
"""Installed software. Homes, /srv, /mnt, /var and other folders of users are missing unless they are named."""

_PARTS = _words("/var/lib/gems /var/lib/ghc /var/lib/texmf")
"""Each mount costs every command 0.2 ms, so only what programs are known to read."""

TOOLCHAINS = _words(
    ".pyenv .nvm .rustup .cargo/bin .cargo/env go/bin sdk .asdf .sdkman .rbenv .rvm .goenv .jenv .nodenv .volta .fnm "
    ".deno/bin .bun/bin .bun/install .ghcup .opam .elan .juliaup .julia/juliaup .dotnet .gem/ruby .linuxbrew "
    ".nix-profile .nix-defexpr .local/state/nix miniconda3 anaconda3 miniforge3 mambaforge micromamba .poetry .phpenv "
    ".local/bin .local/lib .local/pipx .local/share/pipx .local/share/uv .local/share/mise .local/share/fnm "
    ".local/share/pnpm .local/share/virtualenvs .local/share/rtx .virtualenvs .cache/ms-playwright .cache/puppeteer "
    ".cache/pypoetry/virtualenvs .foundry/bin .wasmtime/bin .swiftly .mix .cabal/bin"
)
"""Below the home directory, at their real paths and read-only."""

CACHES = _words(
    ".cargo/registry .cargo/git go/pkg/mod .m2/repository .nuget/packages .ivy2/cache .hex/packages .pub-cache "
    ".cabal/packages"
)
"""Downloaded packages: the user's, until a command with a network has downloaded its own."""

_NAMES_TOOLCHAIN = _words(
    "VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOPATH GOROOT RUSTUP_HOME NVM_DIR PYENV_ROOT RBENV_ROOT DOTNET_ROOT "
    "ANDROID_HOME SDKMAN_DIR ASDF_DATA_DIR VOLTA_HOME"
)
_PREFIX_SIGNS = _words("lib lib64 libexec include pyvenv.cfg")
_GIT_KEYS = (
    r"^(user\.(name|email|useconfigonly)|safe\.directory|core\.(excludesfile|hookspath)|init\.defaultbranch"
    r"|commit\.gpgsign)$"
)
_TELLS_OF_ALL = _words("keys latency_stats sched_debug timer_list timer_stats")
_MOST_ENTRIES = 20_000


def system_folders() -> Iterator[str]:
    """The folders that contain programs, on anyone's machine."""
    yield from (path for path in SYSTEM if os.path.lexists(path))
    yield from (path for path in _PARTS if os.path.isdir(path))


def toolchains(host: Host, home: str, root: str) -> list[str]:
    """What else is readable at its real path: by name below the home directory, by PATH and by its variables."""
    named = [os.path.join(home, name) for name in TOOLCHAINS] if home else []
    for folder in host.env.get("PATH", "").split(os.pathsep):
        if os.path.isabs(folder):
            named += [folder, *_prefix(os.path.realpath(folder), home)]
    named += [host.env[name] for name in _NAMES_TOOLCHAIN if os.path.isabs(host.env.get(name, ""))]
    named += [path for name in CERTIFICATES for path in host.env.get(name, "").split(":") if os.path.isabs(path)]
    named += [expanded(path, home) for path in host.readable]
    named += _environment_home(root)
    every = dict.fromkeys(path for name in named for path in (os.path.normpath(name), os.path.realpath(name)))
    return [path for path in every if os.path.exists(path) and not _holds(path, home) and not _holds(path, root)]


class Shadows:
    """Programs in those folders of PATH that are in the project, under names that programs elsewhere have.

    Packages install commands there; a new `git` or another `python` would run as the user.
    """

    def __init__(self, folders: tuple[str, ...], host: Host) -> None:
        self._folders = folders
        self._elsewhere: frozenset[str] = frozenset()
        if folders:
            path = [folder for folder in host.env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
            outer = [folder for folder in (*path, *os.defpath.split(":")) if os.path.realpath(folder) not in folders]
            self._elsewhere = frozenset(entry.name for folder in outer for entry in _entries(folder))

    def look(self) -> set[str]:
        entries = (entry for folder in self._folders for entry in _entries(folder))
        return {entry.path for entry in entries if entry.name in self._elsewhere}


def expanded(path: str, home: str) -> str:
    return os.path.join(home, path[2:]) if path.startswith("~/") else path


def _holds(path: str, inner: str) -> bool:
    """Whether mounting a path would show all of another."""
    return bool(inner) and f"{inner.rstrip('/')}/".startswith(path.rstrip("/") + "/")


def _prefix(folder: str, home: str) -> list[str]:
    """The folder where programs were installed, with their libraries beside them. Never a repository."""
    above = os.path.dirname(folder)
    if os.path.basename(folder) not in ("bin", "sbin", "shims", "condabin") or above in ("/", home):
        return []
    if os.path.basename(above) == ".local" or os.path.lexists(os.path.join(above, ".git")):
        return []
    return [above] if any(os.path.exists(os.path.join(above, name)) for name in _PREFIX_SIGNS) else []


def _environment_home(root: str) -> Iterator[str]:
    """Where the Python of the project's environment is, according to the environment's own file, if it is one."""
    for name in (".venv", "venv", "env"):
        try:
            with open(os.path.join(root, name, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
                pairs = [line.partition("=") for line in file.read(4096).splitlines()]
        except OSError:
            continue
        folders = [value.strip() for key, _, value in pairs if key.strip() == "home"]
        for folder in folders:
            above = os.path.dirname(os.path.realpath(folder))
            if os.path.isabs(folder) and os.access(os.path.join(folder, "python3"), os.X_OK):
                yield from (path for path in _entries_named(above, ("bin", "lib", "lib64", "include")))


def _entries_named(folder: str, names: Iterable[str]) -> Iterator[str]:
    if any(entry.name.startswith("python3") for entry in _entries(os.path.join(folder, "lib"))):
        yield from (path for name in names if os.path.isdir(path := os.path.join(folder, name)))


def closed_to_others(folder: str = "/etc", depth: int = 3) -> Iterator[str]:
    """What in a system folder not everybody may read: commands may not either, whoever runs them."""
    for entry in _entries(folder):
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:
            continue
        is_folder = stat.S_ISDIR(mode)
        if (is_folder or stat.S_ISREG(mode)) and not mode & (stat.S_IXOTH if is_folder else stat.S_IROTH):
            if os.access(entry.path, os.R_OK) and (is_folder or entry.stat().st_size):
                yield entry.path
        elif is_folder and depth > 1:
            yield from closed_to_others(entry.path, depth - 1)


def closed_programs(spared: Iterable[str]) -> Iterator[str]:
    """The same for files beside installed programs, such as a service's `.env`; the folders stay.

    `spared`: what was named as a toolchain.
    """
    spared = tuple(f"{path}/" for path in spared)
    waiting = deque([("/opt", 6), ("/usr/local/etc", 3)])
    entries_seen = 0
    while waiting and entries_seen < _MOST_ENTRIES:
        folder, depth = waiting.popleft()
        for entry in _entries(folder):
            entries_seen += 1
            if entry.is_dir(follow_symlinks=False):
                waiting += [(entry.path, depth - 1)] if depth > 1 else []
            elif entry.is_file(follow_symlinks=False) and not entry.path.startswith(spared):
                with contextlib.suppress(FileNotFoundError):  # a lock, or a file that an update replaces
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if not mode & (stat.S_IROTH | stat.S_IXUSR) and os.access(entry.path, os.R_OK):
                        yield entry.path


def tokens_in(folder: str, depth: int = 3) -> Iterator[str]:
    """Files beside a toolchain that hold credentials, judging by their names, as with uv."""
    for entry in _entries(folder):
        is_folder = entry.is_dir(follow_symlinks=False)
        if holds_token(fold(entry.name)) and (depth > 1 or not is_folder):
            yield entry.path
        elif is_folder and depth > 1:
            yield from tokens_in(entry.path, depth - 1)


def closed_in_proc() -> list[str]:
    """What the kernel reveals about the whole machine: to everybody, or to root alone, even in a sandbox."""
    closed = []
    for entry in _entries("/proc"):
        if not entry.name.isdigit() and entry.is_file(follow_symlinks=False):
            for_root = not entry.stat().st_mode & stat.S_IROTH
            if (for_root or entry.name in _TELLS_OF_ALL) and os.access(entry.path, os.R_OK):
                closed.append(entry.path)
    return closed


def sockets_below(folder: str) -> list[str]:
    """Unix sockets below a folder under their present names, as far as it is readable."""
    sockets: list[str] = []
    waiting, entries_seen = deque([folder]), 0
    while waiting and entries_seen < _MOST_ENTRIES:
        for entry in _entries(waiting.popleft()):
            entries_seen += 1
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif not entry.is_file(follow_symlinks=False) and is_socket(entry.path):
                sockets.append(entry.path)
    return sockets


def listening_sockets(*, everywhere: bool = False, every_name: bool = False) -> list[str]:
    """Unix sockets with a path, through which a program without a network could reach one that has it.

    `everywhere`: of all visible network namespaces. `every_name`: also relative and deleted names.
    """
    paths = set()
    for file in _socket_tables() if everywhere else ["/proc/net/unix"]:
        try:
            with open(file, "rb") as table:
                rows = table.read().splitlines()[1:]
        except OSError:
            continue
        paths |= {os.fsdecode(columns[7]) for row in rows if len(columns := row.split(b" ", 7)) == 8}
    return sorted(path for path in paths if every_name or (path.startswith("/") and is_socket(path)))


def _socket_tables() -> Iterator[str]:
    """One for each visible network namespace: a named socket is reachable from all of them."""
    spaces: set[str] = set()
    for entry in _entries("/proc"):
        if entry.name.isdigit():
            try:
                space = os.readlink(f"/proc/{entry.name}/ns/net")
            except OSError:
                continue
            if space not in spaces:
                spaces.add(space)
                yield f"/proc/{entry.name}/net/unix"


def is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def is_reachable(path: str) -> bool:
    """Whether a command can reach a path. Without capabilities, root cannot traverse all folders that root can, nor
    could bubblewrap mount anything there.
    """
    if os.geteuid() != 0:
        return True
    groups = {os.getegid(), *os.getgroups()}
    for folder in parents(path, "/"):
        try:
            status = os.stat(folder)
        except OSError:
            return False
        may = stat.S_IXUSR if status.st_uid == 0 else stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
        if not status.st_mode & may:
            return False
    return True


def git_identity(host: Host, home: str, root: str) -> list[tuple[str, str]]:
    """The settings of the user's git configuration that apply in a sandbox without the file itself: the committer."""
    git = program("git", root)
    if git is None or not home:
        return []
    names = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    env = {name: host.env[name] for name in names if name in host.env} | {"HOME": home, "PATH": os.defpath}
    try:
        answer = subprocess.run(
            [git, "config", "--global", "--includes", "-z", "--get-regexp", _GIT_KEYS],
            cwd="/", env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    pairs = [row.partition("\n")[::2] for row in os.fsdecode(answer.stdout).split("\0") if "\n" in row]
    return [(key, expanded(value, home) if key == "core.excludesfile" else value) for key, value in pairs]


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
