"""The sandbox by bubblewrap: its own namespaces, no capabilities, a read-only root, a plan of mounts."""

import contextlib
import os
from collections.abc import Collection, Sequence

import msgspec

from ra.system.process import Launch
from ra.tools.policy.paths import Project, program, shown
from ra.tools.sandbox import landlock, seccomp
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.disarm import OwnRepository, disarm
from ra.tools.sandbox.guard import Guard, parents, set_aside
from ra.tools.sandbox.home import Home, make_real_folder, masked_home
from ra.tools.sandbox.host import (
    Shadows,
    closed_in_proc,
    closed_programs,
    closed_to_others,
    git_identity,
    is_reachable,
    is_socket,
    listening_sockets,
    sockets_below,
    system_folders,
)
from ra.tools.sandbox.launch import private_folder, try_out
from ra.tools.sandbox.layout import MAX_MOUNTS, Layout, Repository, collapse, masked, plan, topmost
from ra.tools.sandbox.mounted import checked
from ra.tools.sandbox.registries import registries
from ra.tools.sandbox.repositories import EXCLUDES_KEY, IgnoredNames, Skipped, git_env
from ra.tools.sandbox.scan import Findings, Outer, ProtectedState, Scan

_INTERNET = (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
_FAMILIES = (seccomp.AF_UNIX, *_INTERNET)
_ALWAYS = ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-pid", "--unshare-ipc",
           "--unshare-uts", "--unshare-cgroup-try")  # fmt: skip
_STRICTEST_FIRST = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())
_TMP, _VAR_TMP = "/tmp", "/var/tmp"  # noqa: S108 - a private folder in the sandbox
_SKIPPED = ("commit.gpgsign", "core.hookspath")
_IGNORED = "/run/ra-ignored"
_TEST = "grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status && grep -q '^CapPrm:[[:space:]]*0*$' /proc/self/status"


class Bubblewrap:
    name = "bubblewrap"
    limits: tuple[str, ...] = (
        "a unix socket that another program opens in the project while a command already runs can be reached by it",
    )

    def __init__(self, program: str, flags: Sequence[str], place: Project, host: Host) -> None:
        self._program = program
        self._flags = tuple(flags)
        self._place = place
        self._host = host
        memory = f"{host.box_home}.special" if host.box_home else ""
        self._scan = Scan(place.real(place.root), place.instructions, memory)
        self._outer = Outer()
        layout = plan(place, host.hidden)
        # Only those that exist before any command: one that a command creates could be a link when it is mounted.
        self._parents = self._real_parents(layout, self._look(layout, ()))
        private, self._forget_private = private_folder(self)
        self.private_tmp = os.path.join(private, "tmp")
        os.mkdir(self.private_tmp, 0o700)
        addresses = registries(host.env, place.real(place.home) if place.home else "")
        self.home = Home(place, msgspec.structs.replace(host, env={**host.env, **addresses}), layout, private)
        self._system_folders = list(system_folders())
        self._doors = {*sockets_below("/opt"), *listening_sockets(everywhere=True)}
        self._masks = [*layout.hidden, *closed_to_others(), *closed_programs((layout.root, *self.home.named))]
        self._closed_in_proc = closed_in_proc()
        self._git_settings = git_identity(host, self.home.path, layout.root)
        identity = [pair for pair in self._git_settings if pair[0] not in _SKIPPED]
        self._ignored = IgnoredNames(os.path.join(private, "ignored"), identity, host, self.home.path)
        self._env = {"TMPDIR": _TMP, **self.home.env, **addresses, **git_env([*identity, (EXCLUDES_KEY, _IGNORED)])}
        self._own_sockets: set[str] = set()
        programs = [path for path in place.programs if not _within(path, layout.own)]
        self._shadows = Shadows(tuple(programs), host)

    @property
    def trouble(self) -> str:
        return ""

    def launch(
        self,
        argv: Sequence[str],
        cwd: str,
        *,
        network: bool = False,
        git: bool = False,
    ) -> Launch:
        layout = plan(self._place, self._host.hidden)
        shadows = self._shadows.look()
        findings = self._look(layout, shadows)
        before = ProtectedState(layout, findings)
        there = [path for path in layout.own if os.path.lexists(path)]
        links = [path for path in there if os.path.islink(path)]
        # Links cannot be mounted over, nor can hundreds of files. Everything else that exists is read-only, and stays.
        links += [path for path in shadows if os.path.islink(path)]
        guard = Guard([*links, *findings.guarded.difference(_mountable(findings))], layout.root)
        repository = OwnRepository(_git_writes(layout)) if git and layout.writable else None
        skipped = Skipped(self._git_settings, _git_writes(layout)[0]) if repository else None
        mounts = self._mounts(layout, findings, shadows, network=network, git=git)
        fds: tuple[int, ...] = ()
        if seccomp.supported():
            fds = (_filter_descriptor(_FAMILIES if not network or landlock.scopes() else _INTERNET),)
            mounts += ["--seccomp", str(fds[0])]
        status = _Status()

        def finish() -> list[str]:
            status.read()
            try:
                notes = guard.restore()
                now = self._scan.look()
                self._own_sockets |= _made_in_box(now.sockets - findings.sockets)
                if not layout.writable:
                    return notes
                # Their contents first: a repository is still one where it is set aside.
                notes += [disarm(path) for path in before.new_repositories(now)]
                new_programs = sorted(self._shadows.look() - shadows)
                notes += [set_aside(path) for path in (*before.new_names(now), *new_programs)]
                notes += [_was_closed(path) for path in sorted(now.closed - findings.closed)]
                notes += [_was_replaced(path) for path in before.replaced(self._closed(layout, findings, git=git))]
                notes += repository.undo_planted() if repository else []
                return notes + (skipped.notes() if skipped else [])
            finally:
                before.release()

        own_network = [] if network else ["--unshare-net"]
        if network and landlock.scopes():
            argv = [*landlock.scoped_python(), *argv]
        if layout.writable:
            argv = checked(argv, mounts, layout.root, {layout.root, *self._steady(layout, findings)})
        words = [*_ALWAYS, *own_network, *self._flags, *mounts, "--json-status-fd", str(status.writer)]
        argv = [self._program, *words, "--chdir", cwd, "--", *argv]
        return Launch(argv, (*fds, status.writer), finish, env=self._env, began=status.has_begun)

    def close(self) -> None:
        self._forget_private()

    def _look(self, layout: Layout, shadows: Collection[str]) -> Findings:
        return self._scan.look().with_closed_twins((*layout.own, *layout.hidden, *self._place.runs, *shadows))

    def _mounts(self, layout: Layout, findings: Findings, shadows: set[str], *, network: bool, git: bool) -> list[str]:
        root, home = layout.root, self.home
        home_mounts = home.mounts(
            network=network, also=[root, *([layout.repository.common] if layout.repository else [])]
        )
        project = self._project(layout, findings, shadows, git=git)
        # Git would fail on masked files, or add them empty.
        project += ["--ro-bind", self._ignored.written(findings.secret | findings.sockets, root), _IGNORED]
        if root == home.path:
            inside = [*project, *masked_home(home)]
        elif _below(home.path, root):
            inside = [*project, *home_mounts]
        else:
            inside = [*home_mounts, *project]
        pins = self._pinned_in_tmp([root, home.path, *home.toolchains])
        last = [] if root == "/" else ["--remount-ro", "/"]
        return [*self._system(layout, network=network), *pins, *inside, *last]

    def _pinned_in_tmp(self, paths: Sequence[str]) -> list[str]:
        """Pins folders that a command could replace with a link, since mounts below them would follow that link."""
        out: list[str] = []
        folders = {folder for path in paths if _below(path, _TMP) for folder in parents(path, _TMP)}
        for folder in sorted(folders):
            make_real_folder(self.private_tmp, os.path.relpath(folder, _TMP))
            out += ["--bind", os.path.join(self.private_tmp, os.path.relpath(folder, _TMP)), folder]
        return out

    def _system(self, layout: Layout, *, network: bool) -> list[str]:
        """Everything but the project and the home: readable programs; no credentials, no sockets of other programs."""
        out: list[str] = []
        if layout.root == "/":
            out += ["--ro-bind", "/", "/"]
        else:
            for path in self._system_folders:
                out += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
        # Root could write /proc/sys without any capability, and the program in core_pattern runs outside. And any user
        # could write the memory of the sandbox's first process, which is less confined than a command. So it is
        # read-only.
        out += [
            "--proc",
            "/proc",
            *(word for path in self._closed_in_proc for word in masked(path)),
            "--remount-ro",
            "/proc",
            "--dev",
            "/dev",
            "--bind",
            self.private_tmp,
            _TMP,
        ]
        if layout.root == "/":
            out += ["--tmpfs", "/run", "--tmpfs", _VAR_TMP]
        else:
            out += ["--dir", "/run", "--symlink", "/run", "/var/run"]
            mounted_there = any(_below(path, _VAR_TMP) for path in (layout.root, self.home.path, *self.home.toolchains))
            out += ["--tmpfs", _VAR_TMP] if mounted_there else ["--symlink", _TMP, _VAR_TMP]
        if os.path.lexists("/run/current-system"):  # pragma: no cover - NixOS
            out += ["--ro-bind", "/run/current-system", "/run/current-system"]  # the programs of NixOS
        names = os.path.realpath("/etc/resolv.conf")
        if network and names.startswith("/run/"):
            out += ["--ro-bind-try", names, names]
        visible = ("/",) if layout.root == "/" else (*self._system_folders,)
        covered = ("/run/", f"{_TMP}/", f"{_VAR_TMP}/", "/proc/", "/dev/")
        # A socket from the start may be another user's file by now.
        doors = (path for path in sorted(self._doors) if is_socket(path))
        for path in topmost({*self._masks, *doors, *listening_sockets()}):
            there = any(_below(path, folder) for folder in visible) and not path.startswith(covered)
            if there and not _below(path, layout.root) and is_reachable(path):
                out += masked(path)
        return out

    def _project(self, layout: Layout, findings: Findings, shadows: set[str], *, git: bool) -> list[str]:
        root = layout.root
        sockets = findings.sockets - self._own_sockets
        linked = collapse(findings.linked | findings.closed, root)
        writable = layout.writable and linked != [root]
        out = ["--bind" if writable else "--ro-bind", root, root]
        if writable:
            shut = (*linked, *self._closed(layout, findings, git=git))
            # A folder that contains a protected path could be renamed and created again, or be moved while this is
            # mounted, unless it is a mount itself, in every sandbox.
            for parent in sorted(self._steady(layout, findings)):
                out += ["--bind", parent, parent] if not _within(parent, shut) else []
            out += self._repository(layout.repository, git=git)
            for path in shut:
                out += ["--ro-bind", path, path]
            for path in (*layout.own, *_mountable(findings), *sorted(shadows)[:MAX_MOUNTS]):
                out += _fixed(path, root) if not _within(path, shut) else []
        hidden = [path for path in layout.hidden if _below(path, root)]
        for path in (*sorted(findings.secret), *sorted(sockets), *hidden):
            if not os.path.islink(path):
                out += masked(path)
        return out

    def _steady(self, layout: Layout, findings: Findings) -> set[str]:
        return self._real_parents(layout, findings) & self._parents

    def _real_parents(self, layout: Layout, findings: Findings) -> set[str]:
        """The folders that contain mounts, without links: the target of a link must not become writable."""
        shut = (*collapse(findings.linked | findings.closed, layout.root), *self._closed(layout, findings, git=False))
        paths = (*layout.own, *_mountable(findings), *findings.secret, *shut)
        above = {parent for path in paths for parent in parents(path, layout.root)}
        return {parent for parent in above if os.path.isdir(parent) and os.path.realpath(parent) == parent}

    def _closed(self, layout: Layout, findings: Findings, *, git: bool) -> list[str]:
        """One boundary: no repository is writable, or with `git` only the project's own, except for what git obeys."""
        dot_git = os.path.join(layout.root, ".git")
        others = findings.repositories - {layout.root}
        closed = [path for path in others if not (git and (path == dot_git or _below(path, dot_git)))]
        return collapse(frozenset(closed), layout.root)

    def _repository(self, repository: Repository | None, *, git: bool) -> list[str]:
        """A worktree's repository: its hooks and its configuration stay as they are."""
        if repository is None:
            return []
        out = ["--ro-bind", repository.common, repository.common]
        if not git:
            return out
        for path in repository.writable:
            out += ["--bind-try", path, path]
        linked = collapse(self._outer.linked(repository.writable), repository.common)
        for path in (*repository.fixed, *linked):
            out += ["--ro-bind", path, path]
        return out


class _Status:
    """The status report of bubblewrap: an exit code, unless it failed before it reached the command."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.began = False

    def read(self) -> None:
        os.set_blocking(self.reader, False)
        with contextlib.suppress(BlockingIOError):
            self.began = b"exit-code" in os.read(self.reader, 4096)
        os.close(self.reader)

    def has_begun(self) -> bool:
        return self.began


def find(place: Project, host: Host) -> Bubblewrap | None:
    """The strictest form that works here, or None: a command in it must see that it has no capabilities."""
    bwrap = program("bwrap", place.root)
    if bwrap is None:
        return None
    for flags in _STRICTEST_FIRST:
        box = Bubblewrap(bwrap, flags, place, host)
        # Twice, so that a socket that vanishes while it is masked does not cost the stricter form.
        if any(try_out(box.launch(["sh", "-c", _TEST], place.real(place.root))) for _ in range(2)):
            return box
        box.close()
    return None


def _was_replaced(path: str) -> str:
    return (
        f"{shown(path)} is protected and was replaced while the command ran, which could write to the new file. "
        "Tell the user to look at it."
    )


def _was_closed(path: str) -> str:
    return f"{shown(path)} was closed, so nobody can tell what is in it. It is read-only now. Tell the user."


def _made_in_box(sockets: frozenset[str]) -> set[str]:
    """The sockets that no program of the host has opened meanwhile, under any of their names."""
    names = {os.path.basename(path) for path in listening_sockets(every_name=True)}
    return {path for path in sockets if os.path.basename(path) not in names}


def _filter_descriptor(families: tuple[int, ...]) -> int:
    descriptor = os.memfd_create("filter", 0)
    os.write(descriptor, seccomp.program(families))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _git_writes(layout: Layout) -> tuple[str, ...]:
    """The folders that a command may write with the user's consent for git."""
    return layout.repository.writable if layout.repository else (os.path.join(layout.root, ".git"),)


def _mountable(findings: Findings) -> list[str]:
    """Protected names to mount over, those at the top first: bubblewrap takes seconds for thousands."""
    return sorted(findings.guarded, key=lambda path: (path.count("/"), path))[:MAX_MOUNTS]


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or _below(path, folder) for folder in folders)


def _below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


def _fixed(path: str, root: str) -> list[str]:
    """Mounts that make a path unchangeable."""
    if os.path.islink(path):
        # A link cannot be mounted over, but its target can; the guard protects the link itself.
        target = os.path.realpath(path)
        return ["--ro-bind", target, target] if os.path.exists(target) and _below(target, root) else []
    return ["--ro-bind", path, path] if os.path.lexists(path) else []
