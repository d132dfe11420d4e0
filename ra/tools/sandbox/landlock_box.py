"""How is a command kept in without bubblewrap? Landlock and seccomp; what they cannot prevent is put back after it."""

import os
from collections.abc import Sequence

import msgspec

from ra.tools.paths import Place, shown
from ra.tools.process import Launch
from ra.tools.sandbox import seccomp
from ra.tools.sandbox.guard import Guard, set_aside
from ra.tools.sandbox.landlock import FIRST_SAFE_ABI, abi, chains
from ra.tools.sandbox.launch import private_folder, try_out, under_warden
from ra.tools.sandbox.layout import plan, worktree
from ra.tools.sandbox.scan import Outer, Scan

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CLOSED = ("/tmp", "/var/tmp", "/run", "/dev")  # noqa: S108 - closed, not used
_TEST = "! touch /var/ra-test && ! cat /dev/tty0 && grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status"


class LandlockBox:
    name = "landlock"

    def __init__(self, place: Place, hidden: tuple[str, ...]) -> None:
        self.limits: tuple[str, ...] = (
            "protected paths in the project (.git/hooks, AGENTS.md, .ra) can be changed while a command runs; "
            "they are put back when it ends",
            "it cannot hide secrets in the project, nor protect hard-linked files: with them, commands are asked for",
            "processes of other programs can be seen, though not their memory or environment",
            *(("signals to other programs of the same user are not stopped",) if abi() < 6 else ()),
        )
        self._place = place
        self._hidden = hidden
        self._scan = Scan(place.real(place.root), place.instructions)
        self._outer = Outer()
        self._environments = [path for path in place.runs if os.path.isfile(os.path.join(path, "pyvenv.cfg"))]
        self.private_tmp, self._forget_tmp = private_folder(self)

    @property
    def trouble(self) -> str:
        for path in self._environments:
            return f"ra itself runs from {shown(path)}, which this sandbox cannot protect"
        found = self._scan.look()
        repository = worktree(self._place.real(self._place.root))
        outer = self._outer.linked(repository.writable) if repository else frozenset()
        for path in sorted(found.linked | outer):
            return f"{shown(path)} has another hard link, which this sandbox cannot protect"
        for path in sorted(found.secret):
            return f"{shown(path)} may hold secrets, which this sandbox cannot hide"
        return ""

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        layout = plan(self._place, self._hidden)
        before = self._scan.look().guarded
        repository = layout.repository
        fixed = repository.fixed if repository else ()
        kept = [path for path in (*layout.own, *layout.watched, *fixed, *before) if path not in self._environments]
        guard = Guard(kept if layout.writable else [], layout.root)
        hidden = (*layout.hidden, *_CLOSED)
        held = chains(
            abi(),
            read=[*_carved("/", hidden), layout.root, *([repository.common] if repository else [])],
            write=[
                self.private_tmp,
                *([layout.root] if layout.writable else []),
                *(repository.writable if repository else ()),
            ],
            devices=_DEVICES,
        )
        launch = under_warden(argv, held)

        def finish() -> list[str]:
            notes = guard.restore()
            fresh = self._scan.look().guarded - before if layout.writable else frozenset()
            return notes + [set_aside(path) for path in sorted(fresh)]

        env = {
            "TMPDIR": self.private_tmp,
            "XDG_CACHE_HOME": f"{self.private_tmp}/.cache",
            "npm_config_cache": f"{self.private_tmp}/.npm",
        }
        return msgspec.structs.replace(launch, finish=finish, env=env)

    def close(self) -> None:
        self._forget_tmp()


def find(place: Place, hidden: tuple[str, ...]) -> LandlockBox | None:
    if abi() < FIRST_SAFE_ABI or not seccomp.supported():  # pragma: no cover - another kernel or processor
        return None
    box = LandlockBox(place, hidden)
    if try_out(box.launch(["sh", "-c", _TEST], place.root)):
        return box
    box.close()
    return None


def _carved(path: str, hidden: Sequence[str]) -> list[str]:
    """The largest folders below a path that hold nothing hidden: Landlock can only allow, never take away."""
    if path in hidden:
        return []
    if not any(other.startswith(path.rstrip("/") + "/") for other in hidden):
        return [path]
    try:
        names = os.listdir(path)
    except OSError:
        return []
    children = [os.path.join(path, name) for name in names]
    # Not through links: what a link leads to is allowed, or hidden, under its own name.
    return [found for child in children if not os.path.islink(child) for found in _carved(child, hidden)]
