"""The reaper: parent of all descendants of a command, which ends what they leave behind without a pid namespace.

It runs as a separate program (`launch.py` starts it), so that it outlives even a `kill -9` of ra: the kernel
signals ra's death to it, orphans become its children, and it exits when none is left.
It imports only what it needs, because every command waits for it.
"""

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # the same module without its enums, which take 4 ms to create

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LINUX = sys.platform.startswith("linux")


class _EndRequested(Exception):
    """A signal asked the reaper to end everything."""


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""Blocked, and waited for: one that came just before `os.wait` would be handled only when the child has ended."""


def main(order: "dict[str, Any]") -> "NoReturn":
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # macOS drops a signal that nobody handles
    code = 143
    try:
        _adopt(order["parent"])
        code = _run(order)
    except _EndRequested:
        pass
    finally:
        _end_all()
    os._exit(code)


def _adopt(parent: int) -> None:
    """Makes this process adopt all orphaned descendants, and get a signal when ra dies."""
    if not _LINUX:  # pragma: no cover - macOS knows neither
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise _EndRequested  # ra died before the request for a signal


def _run(order: "dict[str, Any]") -> int:
    reaper = os.getpid()
    child = os.fork()
    if child == 0:
        _become(order, reaper)
    while signal.sigwait(_SIGNALS) == signal.SIGCHLD:
        ended = -1
        while ended:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    raise _EndRequested


def _become(order: "dict[str, Any]", reaper: int) -> "NoReturn":
    """In the child: becomes the command."""
    try:
        for number in (*_SIGNALS, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.setsid()
        if _LINUX:  # pragma: no branch - macOS has no such signal
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != reaper:  # pragma: no cover - killed within these two lines, which no test can time
                os._exit(143)
        os.execvp(order["argv"][0], order["argv"])  # noqa: S606 - the policy already approved the command
    except BaseException as error:  # noqa: BLE001 - every error is reported, and the command does not run
        os.write(2, f"ra: the command could not be started: {error}\n".encode())
    os._exit(126)


def _end_all() -> None:
    """Kills children until there are none: the orphans of each become children in the next round."""
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
    own_pid = os.getpid()
    try:
        with open(f"/proc/self/task/{own_pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return listed_children()  # no /proc, or one without this file


def listed_children() -> list[int]:
    import subprocess  # hardly ever needed

    listing = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    pairs = [line.split() for line in listing.splitlines()]
    return [int(pair[0]) for pair in pairs if len(pair) == 2 and int(pair[1]) == os.getpid()]
