"""What may a process do that Landlock holds? Rules of files, networks and signals, as the kernel takes them."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from typing import Any

from ra.tools.sandbox import seccomp

_CREATE = 444
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

FIRST_SAFE_ABI = 3
"""Before it, a file that may not be written could still be emptied."""

Chains = dict[str, Any]
"""What the warden puts on a command: `ruleset`, `rules` of rights and paths, and the `filter` of system calls."""


def abi() -> int:
    """The version that the kernel speaks, 0 when it does not."""
    if not sys.platform.startswith("linux"):  # pragma: no cover - macOS has its own sandbox
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def chains(version: int, *, read: Iterable[str], write: Iterable[str], devices: Iterable[str]) -> Chains:
    """Everything that is not named here is closed; TCP, signals to others and abstract sockets too, where it can be."""
    everything = (1 << (16 if version >= 5 else 15)) - 1
    tcp, scopes = (0b11 if version >= 4 else 0), (0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    wanted = [(_READ, read), (everything, write), (_ON_FILES, devices)]
    return {
        "ruleset": struct.pack("QQQ", everything, tcp, scopes)[:size],
        "rules": [(_fitting(rights & everything, path), path) for rights, paths in wanted for path in paths],
        # Landlock knows TCP only; without sockets there is no network of any kind.
        "filter": seccomp.program(families=()),
    }


def _fitting(rights: int, path: str) -> int:
    return rights if os.path.isdir(path) else rights & _ON_FILES
