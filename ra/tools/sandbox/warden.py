"""Who ends what a command leaves behind, when there is no pid namespace? The warden: parent of all its descendants.

It runs as a program of its own (`launch.py` starts it), so that it outlives even a `kill -9` of ra: the kernel tells
it of ra's death, orphans become its children, and it leaves when none is left. On the way it may chain the command.
It imports nothing that it does not need: every command waits for it.
"""

import ctypes
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # the same, without making enums of the numbers, which takes 4 ms

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_SECUREBITS, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 28, 36, 38
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_O_PATH = 0o10000000
_LINUX = sys.platform.startswith("linux")


class _Told(Exception):
    """A signal asked the warden to end everything."""


def main(order: "dict[str, Any]") -> "NoReturn":
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
    if not _LINUX:  # pragma: no cover - macOS knows neither
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise _Told  # ra died before the kernel could be asked


def _run(order: "dict[str, Any]") -> int:
    warden = os.getpid()
    child = os.fork()
    if child == 0:
        _become(order, warden)
    while True:
        ended, status = os.wait()
        if ended == child:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _become(order: "dict[str, Any]", warden: int) -> "NoReturn":
    """In the child: put on the chains, then be the command."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if _LINUX:  # pragma: no branch - macOS has no such signal
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != warden:  # pragma: no cover - killed within these two lines, which no test can time
                os._exit(143)
        if order["chains"]:
            _chain(order["chains"])
        os.execvp(order["argv"][0], order["argv"])  # noqa: S606 - the command was judged before it came here
    except BaseException as error:  # noqa: BLE001 - whatever it is, the command must not run without its chains
        os.write(2, f"ra: the command could not be started: {error}\n".encode())
    os._exit(126)


def _chain(chains: "dict[str, Any]") -> None:
    """Landlock, no capabilities, then the filter of system calls: for good, and for all that this process starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = _checked(libc.syscall(_LANDLOCK_CREATE, chains["ruleset"], ctypes.c_size_t(len(chains["ruleset"])), 0))
    for rights, path in chains["rules"]:
        try:
            handle = os.open(path, _O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # gone meanwhile, or not ours: then there is nothing to allow
        rule = rights.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
        _checked(libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0))
        os.close(handle)
    # Root keeps its user id but none of its powers, and no program that it starts gets them back.
    libc.prctl(_PR_SET_SECUREBITS, 0b1111, 0, 0, 0)
    for number in range(64):
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _checked(libc.capset((0x20080522).to_bytes(4, sys.byteorder) + bytes(4), bytes(24)))
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)
    code = ctypes.create_string_buffer(chains["filter"], len(chains["filter"]))
    program = (ctypes.c_size_t * 2)(len(chains["filter"]) // 8, ctypes.addressof(code))
    _checked(libc.prctl(_PR_SET_SECCOMP, 2, program, 0, 0))


def _checked(value: int) -> int:
    if value < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, os.strerror(number))
    return value


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
        return listed_children()  # no /proc, or one without this file


def listed_children() -> list[int]:
    import subprocess  # hardly any command needs it

    listing = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    pairs = [line.split() for line in listing.splitlines()]
    return [int(pair[0]) for pair in pairs if len(pair) == 2 and int(pair[1]) == os.getpid()]
