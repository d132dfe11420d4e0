"""How does bubblewrap keep a command in? Own namespaces, no capabilities, a read-only root, a plan of mounts."""

import contextlib
import os
import stat
from collections.abc import Sequence

from ra.tools.paths import Place, program
from ra.tools.process import Launch
from ra.tools.sandbox import seccomp
from ra.tools.sandbox.guard import Guard, parents, set_aside
from ra.tools.sandbox.launch import private_folder, try_out
from ra.tools.sandbox.layout import Layout, Repository, collapse, listening_sockets, plan
from ra.tools.sandbox.scan import Findings, Outer, Scan

_FAMILIES = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
_ALWAYS = ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-pid", "--unshare-net", "--unshare-ipc",
           "--unshare-uts", "--unshare-cgroup-try")  # fmt: skip
_STRICTEST_FIRST = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())
_TMP, _VAR_TMP = "/tmp", "/var/tmp"  # noqa: S108 - a private folder stands there in the box
_TEST = "grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status && grep -q '^CapPrm:[[:space:]]*0*$' /proc/self/status"


class Bubblewrap:
    name = "bubblewrap"
    limits: tuple[str, ...] = (
        "a repository or a bare repository that a command makes in a subfolder may hold hooks and configuration",
        "a unix socket that is opened while a command already runs can be reached by it",
    )

    def __init__(self, program: str, flags: Sequence[str], place: Place, hidden: tuple[str, ...]) -> None:
        self._program = program
        self._flags = tuple(flags)
        self._place = place
        self._hidden = hidden
        self._scan = Scan(place.real(place.root), place.instructions)
        self._outer = Outer()
        # Those that were there before any command: one that a command makes could be a link by the time it is mounted.
        self._parents = _real_parents(plan(place, hidden))
        self.private_tmp, self._forget_tmp = private_folder(self)
        self._held: dict[str, int] = {}

    @property
    def trouble(self) -> str:
        return ""

    def launch(self, argv: Sequence[str], cwd: str, *, sockets: Sequence[str] | None = None) -> Launch:
        layout = plan(self._place, self._hidden)
        found = self._scan.look()
        missing = [path for path in layout.own if _is_missing(path)] if layout.writable else []
        links = [path for path in layout.own if os.path.islink(path)]
        # What lies in a folder that is no mount can be moved away with it.
        loose = [path for path in layout.own if not self._parents.issuperset(parents(path, layout.root))]
        guard = Guard([*links, *missing, *loose, *layout.watched, *found.guarded], layout.root)
        made = self._hold(missing)
        doors = listening_sockets() if sockets is None else sockets
        mounts = [*self._system(layout, doors), *self._project(layout, found, doors)]
        fds: tuple[int, ...] = ()
        if seccomp.supported():
            fds = (_filter_descriptor(),)
            mounts += ["--seccomp", str(fds[0])]
        before = found.guarded
        status = _Status()

        def finish() -> list[str]:
            status.read()
            self._release(made)
            notes = guard.restore()
            fresh = self._scan.look().guarded - before if layout.writable else frozenset()
            return notes + [set_aside(path) for path in sorted(fresh) if not path.endswith(".set-aside")]

        env = {"TMPDIR": _TMP, "XDG_CACHE_HOME": f"{_TMP}/.cache", "npm_config_cache": f"{_TMP}/.npm"}
        told = ("--json-status-fd", str(status.writer))
        argv = [self._program, *_ALWAYS, *self._flags, *mounts, *told, "--chdir", cwd, "--", *argv]
        return Launch(argv, (*fds, status.writer), finish, env=env, began=lambda: status.began)

    def close(self) -> None:
        self._release(list(self._held))
        self._forget_tmp()

    def _system(self, layout: Layout, sockets: Sequence[str]) -> list[str]:
        """Everything but the project: to be read, without credentials and without doors to other programs."""
        # Root could write /proc/sys without any capability, and what core_pattern names runs outside: so read-only too.
        out = ["--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
        out += ["--bind", self.private_tmp, _TMP]
        if os.path.lexists("/run/current-system"):  # pragma: no cover - NixOS
            out += ["--ro-bind", "/run/current-system", "/run/current-system"]  # NixOS keeps its programs there
        if os.path.isdir(_VAR_TMP) and not os.path.islink(_VAR_TMP):
            out += ["--tmpfs", _VAR_TMP]
        covered = ("/run/", f"{_TMP}/", f"{_VAR_TMP}/", "/proc/", "/dev/")
        masked = [*layout.hidden, *sockets]
        outer = [path for path in masked if not path.startswith(covered) and not _below(path, layout.root)]
        return out + [word for path in outer for word in _masked(path)]

    def _project(self, layout: Layout, found: Findings, sockets: Sequence[str]) -> list[str]:
        root = layout.root
        linked = collapse(found.linked, root)
        writable = layout.writable and linked != [root]
        out = ["--bind" if writable else "--ro-bind", root, root]
        if writable:
            # A folder that holds a protected path could be renamed and made anew, unless it is a mount itself.
            for parent in sorted(_real_parents(layout) & self._parents):
                out += ["--bind", parent, parent]
            out += self._repository(layout.repository)
            for path in linked:
                out += ["--ro-bind", path, path]
            for path in (*layout.own, *sorted(found.guarded)):
                out += _fixed(path, root)
        for path in (*sorted(found.secret), *(p for p in (*sockets, *layout.hidden) if _below(p, root))):
            if not os.path.islink(path):
                out += _masked(path)
        return out

    def _repository(self, repository: Repository | None) -> list[str]:
        """A worktree's repository: its hooks and its configuration stay as they are."""
        if repository is None:
            return []
        out = ["--ro-bind", repository.common, repository.common]
        for path in repository.writable:
            out += ["--bind-try", path, path]
        linked = collapse(self._outer.linked(repository.writable), repository.common)
        for path in (*repository.fixed, *linked):
            out += ["--ro-bind", path, path]
        return out

    def _hold(self, missing: list[str]) -> list[str]:
        """Make what is missing, so that it can be mounted over; a placeholder lives as long as a command needs it."""
        made = []
        for path in missing:
            with contextlib.suppress(OSError):  # a project that we cannot write to, the box cannot either
                _placeholder(path)
                self._held[path] = self._held.get(path, 0) + 1
                made.append(path)
        return made

    def _release(self, made: list[str]) -> None:
        for path in made:
            self._held[path] = self._held.get(path, 1) - 1
            if self._held[path] <= 0:
                del self._held[path]
                if _is_empty(path):
                    os.unlink(path)


class _Status:
    """What bubblewrap tells of a command: an exit code, unless it failed before the command was reached."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.began = False

    def read(self) -> None:
        os.set_blocking(self.reader, False)
        with contextlib.suppress(BlockingIOError):
            self.began = b"exit-code" in os.read(self.reader, 4096)
        os.close(self.reader)


def find(place: Place, hidden: tuple[str, ...]) -> Bubblewrap | None:
    """The strictest form that works here, or None: a command in it must find itself without capabilities."""
    bwrap = program("bwrap", place.root)
    if bwrap is None:
        return None
    for flags in _STRICTEST_FIRST:
        box = Bubblewrap(bwrap, flags, place, hidden)
        # Without the sockets: one that vanishes meanwhile must not cost the stricter form.
        if try_out(box.launch(["sh", "-c", _TEST], place.real(place.root), sockets=())):
            return box
        box.close()
    return None


def _filter_descriptor() -> int:
    descriptor = os.memfd_create("filter", 0)
    os.write(descriptor, seccomp.program(_FAMILIES))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _real_parents(layout: Layout) -> set[str]:
    """The folders that hold protected paths, no link among them: what a link leads to must not become writable."""
    above = {parent for path in layout.own for parent in parents(path, layout.root)}
    return {parent for parent in above if os.path.isdir(parent) and os.path.realpath(parent) == parent}


def _below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


def _masked(path: str) -> list[str]:
    return ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]


def _fixed(path: str, root: str) -> list[str]:
    """Mounts that make a path unchangeable."""
    if os.path.islink(path):
        # A link cannot be mounted over; where it leads to can, and the guard sees to the link itself.
        target = os.path.realpath(path)
        return ["--ro-bind", target, target] if os.path.exists(target) and _below(target, root) else []
    return ["--ro-bind", path, path] if os.path.lexists(path) else []


def _is_missing(path: str) -> bool:
    """Not there, or a placeholder: held for a background job, or left by a ra that was killed."""
    return not os.path.lexists(path) or stat.S_ISSOCK(os.lstat(path).st_mode)


def _is_empty(path: str) -> bool:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return status.st_size == 0 and not stat.S_ISDIR(status.st_mode)
    return False


def _placeholder(path: str) -> None:
    """A socket that nobody listens on: git does not add it, a search skips it, reading it fails at once."""
    try:
        os.mknod(path, stat.S_IFSOCK | 0o600)
    except FileExistsError:
        pass
    except OSError:  # a file system without sockets
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
