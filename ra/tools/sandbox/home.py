"""The home directory of a sandbox: a private folder per project, with the user's toolchains read-only in it."""

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ra.system.files import hold_folder, make_private
from ra.tools.policy.paths import CREDENTIALS, Project
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.guard import exists, free_name, parents
from ra.tools.sandbox.host import CACHES, SYSTEM, tokens_in, toolchains
from ra.tools.sandbox.layout import Layout, masked, topmost


class Home:
    """`path` is its place in the sandbox, the same as that of the user's own home outside. `named`: all toolchains."""

    def __init__(self, place: Project, host: Host, layout: Layout, private: str) -> None:
        self.path = _home(place, host)
        self._root = layout.root
        self._folder = _made(host.box_home) or _made(os.path.join(private, "home"))
        self.named = toolchains(host, self.path, layout.root)
        self._toolchains = topmost({path for path in self.named if _below(path, self.path) or not _is_system(path)})
        secrets = [os.path.join(self.path, name) for name in CREDENTIALS if self.path]
        tokens = [path for folder in self._toolchains if _below(folder, self.path) for path in tokens_in(folder)]
        self._masks = [path for path in (*secrets, *layout.hidden, *tokens) if os.path.lexists(path)]
        inside = self.path or "/tmp"  # noqa: S108 - private in a sandbox
        self.env = {
            "HOME": inside,
            "XDG_CACHE_HOME": f"{inside}/.cache",
            "XDG_CONFIG_HOME": f"{inside}/.config",
            "XDG_DATA_HOME": f"{inside}/.local/share",
            "XDG_STATE_HOME": f"{inside}/.local/state",
        }

    @property
    def toolchains(self) -> Sequence[str]:
        return self._toolchains

    def mounts(self, *, network: bool, also: Sequence[str]) -> list[str]:
        """`also`: what else will be mounted below it, such as the project."""
        shared = list(self._toolchains)
        if network:  # a Python of ours keeps the command away from the host's sockets
            shared = topmost({*shared, *(path for path in [os.path.realpath(sys.base_prefix)] if not _is_system(path))})
        out: list[str] = []
        points: dict[str, bool] = {}
        if self.path and self.path != self._root:
            out += ["--bind", self._folder, self.path]
            shared += [] if network else self._shared_caches()
            inner = [os.path.relpath(path, self.path) for path in (*shared, *also) if _below(path, self.path)]
            folders = {folder for name in inner for folder in _above(name)}
            points = dict.fromkeys(sorted({*folders, *self._own_caches(shared)}), True)
            for name in sorted({*points, *inner}):
                is_folder = name in points or os.path.isdir(os.path.join(self.path, name))
                make_real_folder(self._folder, name if is_folder else os.path.dirname(name) or ".")
                if not is_folder:
                    _make_file(self._folder, name)
            # A command could replace a folder with a link, and the next mount would follow it.
            for name in points:
                out += ["--bind", os.path.join(self._folder, name), os.path.join(self.path, name)]
        for path in shared:
            out += ["--ro-bind-try", path, path]  # a toolchain may be removed while ra runs
        for path in self._masks:
            if any(_below(path, folder) for folder in shared):
                out += masked(path)
        return out

    def _shared_caches(self) -> list[str]:
        names = [name for name in CACHES if not _holds_anything(os.path.join(self._folder, name))]
        return [path for name in names if os.path.isdir(path := os.path.join(self.path, name))]

    def _own_caches(self, shared: Iterable[str]) -> list[str]:
        names = [name for name in CACHES if os.path.isdir(os.path.join(self.path, name))]
        return [name for name in names if os.path.join(self.path, name) not in shared]


def masked_home(home: Home) -> list[str]:
    """If the project is the home directory itself: hides all names that begin with a dot, except toolchains."""
    out: list[str] = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(home.path)):
            path = os.path.join(home.path, name)
            if name.startswith(".") and not os.path.islink(path):
                out += masked(path)
    for path in home.toolchains:
        out += ["--ro-bind-try", path, path]  # a toolchain may be removed while ra runs
    return out


def make_real_folder(base: str, name: str) -> None:
    """Creates a folder below another one without following links; moves anything else aside. Raises OSError."""
    folder = base
    for part in (part for part in name.split("/") if part != "."):
        path = os.path.join(folder, part)
        if os.path.islink(path) or not os.path.isdir(path):
            with hold_folder(folder) as handle:
                if exists(part, handle):
                    os.rename(part, free_name(part, handle), src_dir_fd=handle, dst_dir_fd=handle)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=handle)
        folder = path


def _make_file(base: str, name: str) -> None:
    folder, last = os.path.split(os.path.join(base, name))
    with hold_folder(folder) as handle:
        if os.path.islink(os.path.join(folder, last)) or os.path.isdir(os.path.join(folder, last)):
            os.rename(last, free_name(last, handle), src_dir_fd=handle, dst_dir_fd=handle)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(last, flags, 0o644, dir_fd=handle))


def _home(place: Project, host: Host) -> str:
    """ "" if a private one is impossible: for users whose home is a system folder."""
    path = place.real(place.home) if place.home else ""
    programs = [place.real(folder) for folder in host.env.get("PATH", os.defpath).split(os.pathsep)]
    closed = path in ("/", *SYSTEM, *programs) or (_is_system(path) and not os.path.isdir(path))
    return "" if closed else path


def _made(folder: str) -> str:
    """Creates the folder if necessary; "" if that fails, or if none is named."""
    if not folder:
        return ""
    try:
        make_private(Path(folder))
    except OSError:
        return ""
    return os.path.realpath(folder)


def _above(name: str) -> list[str]:
    return [folder.lstrip("/") for folder in parents(f"/{name}", "/") if folder != "/"]


def _below(path: str, root: str) -> bool:
    return bool(root) and path.startswith(root.rstrip("/") + "/")


def _is_system(path: str) -> bool:
    """Whether the sandbox has it anyway."""
    return any(path == folder or _below(path, folder) for folder in SYSTEM)


def _holds_anything(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except OSError:
        return False
