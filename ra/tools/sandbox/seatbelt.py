"""The sandbox of macOS: a profile for `sandbox-exec`, generated from the same plan as on Linux."""

import os
import re
from collections.abc import Sequence

import msgspec

from ra.system.launch import under_reaper
from ra.system.process import Launch
from ra.tools.policy.paths import Project, shown
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.guard import set_aside
from ra.tools.sandbox.launch import private_folder
from ra.tools.sandbox.layout import Layout, plan
from ra.tools.sandbox.scan import Scan

_PROGRAM = "/usr/bin/sandbox-exec"
_START = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-ioctl (literal "/dev/null") (literal "/dev/tty"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.trustd.agent"))
(allow ipc-posix-sem)
(allow pseudo-tty)
"""


_NETWORK = """\
(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow system-socket)
(allow mach-lookup (global-name "com.apple.mDNSResponder") (global-name "com.apple.SystemConfiguration.configd"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""


class Seatbelt:
    name = "sandbox-exec"
    limits: tuple[str, ...] = (
        "a project with hard-linked files is not run in it",
        "processes of other programs can be seen",
    )

    def __init__(self, place: Project, host: Host) -> None:
        self._place = place
        self._host = host
        self._scan = Scan(place.real(place.root), place.instructions)
        self.private_tmp, self._forget_tmp = private_folder(self)

    @property
    def trouble(self) -> str:
        linked = sorted(self._scan.look().linked)
        return f"{shown(linked[0])} has another hard link, which this sandbox cannot protect" if linked else ""

    def launch(self, argv: Sequence[str], cwd: str, *, network: bool = False, git: bool = False) -> Launch:
        findings = self._scan.look()
        text = profile(
            plan(self._place, self._host.hidden),
            self.private_tmp,
            self._place.instructions,
            tuple(sorted(findings.secret)),
        )
        if network:
            text += _NETWORK
        launch = under_reaper([_PROGRAM, "-p", text, *argv])

        def finish() -> list[str]:
            return [set_aside(path) for path in sorted(self._scan.look().guarded - findings.guarded)]

        env = {"TMPDIR": self.private_tmp, "XDG_CACHE_HOME": f"{self.private_tmp}/.cache"}
        return msgspec.structs.replace(launch, finish=finish, env=env)

    def close(self) -> None:
        self._forget_tmp()


def find(place: Project, host: Host) -> Seatbelt | None:
    return Seatbelt(place, host) if os.path.exists(_PROGRAM) else None


def profile(layout: Layout, tmp: str, instructions: tuple[str, ...], secrets: tuple[str, ...] = ()) -> str:
    """Later lines win: first what is writable, then what of it is not, then what is not even readable."""
    lines = [_START]
    writable = [tmp, *([layout.root] if layout.writable else [])]
    lines.append(f"(allow file-write* {' '.join(_subpath(path) for path in writable)})")
    lines += [f"(deny file-write* {_subpath(path)})" for path in (*layout.own, *layout.watched)]
    # A folder could be renamed, and created again with other contents.
    parents = {os.path.dirname(path) for path in layout.own} - {layout.root}
    lines += [f"(deny file-write-unlink (literal {_quoted(path)}))" for path in sorted(parents)]
    names = "|".join(re.escape(name) for name in instructions)
    root = re.escape(layout.root).replace('"', ".")
    lines.append(f'(deny file-write* (regex #"^{root}/(.*/)?({names})$"))')
    lines += [f"(deny file-read* file-write* {_subpath(path)})" for path in (*layout.hidden, *secrets)]
    return "\n".join(lines) + "\n"


def _subpath(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
