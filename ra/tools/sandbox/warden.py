"""Who ends what a command leaves behind, when there is no pid namespace? The warden: parent of all its descendants.

It runs as a process of its own (`python -I -S`, standard library only), so that it outlives even a `kill -9` of ra:
the kernel tells it of ra's death, orphans become its children, and it leaves when none is left.
"""

import ctypes
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from ra.tools.sandbox.landlock import Chains

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class _Told(Exception):
    """A signal asked the warden to end everything."""


def main() -> NoReturn:
    with open(int(sys.argv[1]), "rb") as file:
        order = json.load(file)
    signal.signal(signal.SIGTERM, _tell)
    signal.signal(signal.SIGINT, _tell)
    signal.signal(signal.SIGHUP, _tell)
    code = 143
    try:
        _adopt(order["parent"])
        code = _run(order)
    except _Told:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all()
    os._exit(code)


def _tell(number: int, frame: object) -> None:
    raise _Told


def _adopt(parent: int) -> None:
    """Become the reaper of orphans below us, and be told when ra dies."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise _Told  # ra died before the kernel could be asked


def _run(order: dict[str, object]) -> int:
    warden = os.getpid()
    child = os.fork()
    if child == 0:
        _become(order, warden)
    while True:
        ended, status = os.wait()
        if ended == child:
            return os.waitstatus_to_exitcode(status) % 256 if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _become(order: dict[str, object], warden: int) -> NoReturn:
    """In the child: put on the chains, then be the command."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.setsid()
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != warden:
                os._exit(143)
        if order.get("landlock"):
            from ra.tools.sandbox.landlock import restrict

            restrict(cast("Chains", order["landlock"]))
        argv = order["argv"]
        assert isinstance(argv, list)
        os.execvp(argv[0], argv)  # noqa: S606 - the command was judged before it came here
    except BaseException as error:  # noqa: BLE001 - whatever it is, the command must not run without its chains
        os.write(2, f"ra: the command could not be started: {error}\n".encode())
    os._exit(126)


def _end_all() -> None:
    """Kill children until there are none: the orphans of each become children in the next round."""
    while True:
        for child in _children():
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _children() -> list[int]:
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        pass
    import subprocess  # no /proc, or one without this file

    listing = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines() if len(line.split()) == 2]
    return [pid for pid, parent in pairs if parent == own]
