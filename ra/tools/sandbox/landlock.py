"""How does a process lock itself out of files, networks and signals? Landlock, through plain system calls.

Standard library only: the warden loads this without site-packages.
"""

import ctypes
import errno
import os
import struct
import sys
from typing import TypedDict

from ra.tools.sandbox import seccomp

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_O_PATH = 0o10000000

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

FIRST_SAFE_ABI = 3
"""Before it, a file that may not be written could still be emptied."""


class Chains(TypedDict):
    """What is left to a process: folders to read, folders to write, single files to write."""

    read: list[str]
    write: list[str]
    devices: list[str]


def abi() -> int:
    """The version that the kernel speaks, 0 when it does not."""
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def restrict(chains: Chains) -> None:
    """Put the chains on this process and all that it will start, for good. Raises OSError."""
    version = abi()
    if version < FIRST_SAFE_ABI:
        raise OSError(errno.ENOSYS, "Landlock is too old here")
    libc = ctypes.CDLL(None, use_errno=True)
    everything = (1 << (16 if version >= 5 else 15)) - 1
    tcp = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(libc.syscall(_CREATE, struct.pack("QQQ", everything, tcp, scopes), ctypes.c_size_t(size), 0))
    for rights, paths in ((_READ, chains["read"]), (everything, chains["write"]), (_ON_FILES, chains["devices"])):
        for path in paths:
            _allow(libc, ruleset, path, rights & everything)
    _drop_capabilities(libc)
    _checked(libc.prctl(38, 1, 0, 0, 0))  # no new privileges: a set-user-id program stays what we are
    _checked(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)
    seccomp.install(families=())  # Landlock knows TCP only; without sockets there is no network of any kind


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile: then there is nothing to allow
    if not os.path.isdir(path):
        rights &= _ON_FILES
    _checked(libc.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, handle), 0))
    os.close(handle)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Root keeps its user id, but none of its powers, and no program that it starts gets them back."""
    pr_capbset_drop, pr_set_securebits, no_root_locked = 24, 28, 0b1111
    libc.prctl(pr_set_securebits, no_root_locked, 0, 0, 0)
    for number in range(64):
        libc.prctl(pr_capbset_drop, number, 0, 0, 0)
    _checked(libc.capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", *[0] * 6)))


def _checked(value: int) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return value
