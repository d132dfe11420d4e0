"""Keeps a command with the host's network away from the host's abstract unix sockets, by a Landlock scope."""

import ctypes
import functools
import sys

FIRST_ABI_WITH_SCOPES = 6
_CREATE = 444
_SCOPE = """\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
ruleset = libc.syscall(444, struct.pack("QQQ", 0, 0, 3), ctypes.c_size_t(24), 0)
if ruleset < 0 or libc.syscall(446, ruleset, 0):
    sys.exit("ra: the command could not be kept from the host's sockets")
os.close(ruleset)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Scopes 1 and 2: no abstract socket of, and no signal to, an outside process. The mounts protect files."""


@functools.cache
def scopes() -> bool:
    """Whether this kernel supports scopes."""
    if not sys.platform.startswith("linux"):  # pragma: no cover - macOS has its own sandbox
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))) >= FIRST_ABI_WITH_SCOPES


def scoped_python() -> list[str]:
    """The prefix of the command line. Isolated: loads nothing from the project or the environment."""
    return [getattr(sys, "_base_executable", None) or sys.executable, "-I", "-S", "-c", _SCOPE]
