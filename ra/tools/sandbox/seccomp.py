"""Filters the system calls of a sandboxed program, in the kernel's BPF machine code."""

import errno
import platform
import struct

# Calls that affect other processes, the kernel, or privileges. None of those that are refused is needed to build or
# test software.
_NUMBERS = {
    "x86_64": (0xC000003E, {
        "socket": 41, "ptrace": 101, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164, "sethostname": 170, "setdomainname": 171,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "kexec_load": 246,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
        "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
        "quotactl_fd": 443, "clone": 56, "clone3": 435, "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452,
        "open": 2, "creat": 85, "openat": 257, "openat2": 437, "mknod": 133, "mknodat": 259,
    }),
    "aarch64": (0xC00000B7, {
        "socket": 198, "ptrace": 117, "mount": 40, "umount2": 39, "swapon": 224, "swapoff": 225, "reboot": 142,
        "pivot_root": 41, "chroot": 51, "acct": 89, "settimeofday": 170, "sethostname": 161, "setdomainname": 162,
        "init_module": 105, "delete_module": 106, "quotactl": 60, "kexec_load": 104, "add_key": 217, "request_key": 218,
        "keyctl": 219, "unshare": 97, "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265,
        "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
        "kexec_file_load": 294, "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
        "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "clone": 220, "clone3": 435,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "openat2": 437, "mknodat": 33,
    }),
}  # fmt: skip

_MODE_AT = {
    "chmod": 1, "fchmod": 1, "creat": 1, "mknod": 1,
    "fchmodat": 2, "fchmodat2": 2, "mknodat": 2, "open": 2, "openat": 3,
}  # fmt: skip
"""The argument that holds a file's mode. For calls that open files, it counts only if they may create one."""

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_CLONE_NEWUSER = 0x10000000
_FIRST_PROCESS = 1
_SETUID = 0o4000
_MAKES_FILE = 0o20000100  # O_CREAT, and the bit of O_TMPFILE
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def _argument(place: int) -> int:
    """The offset of the lower half of an argument."""
    return _FIRST_ARGUMENT_AT + 8 * place


def supported() -> bool:
    return platform.machine() in _NUMBERS


def program(families: tuple[int, ...]) -> bytes:
    """The filter in the kernel's format: only sockets of these families, and none of the calls above."""
    architecture, numbers = _NUMBERS[platform.machine()]
    refuse = [(_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    code = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, architecture),
        *refuse,  # other architectures have other call numbers
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        *refuse,
    ]
    for name, number in numbers.items():
        if name == "socket":
            checks = [(_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
            block = [(_LOAD, 0, 0, _FIRST_ARGUMENT_AT), *checks, (_RETURN, 0, 0, _ERRNO | errno.EACCES)]
            # Continues after the block if the family is allowed.
            block.append((_LOAD, 0, 0, _NUMBER_AT))
        elif name == "clone":
            block = [
                (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
                (_ANY_BIT, 0, 1, _CLONE_NEWUSER),
                *refuse,
                (_LOAD, 0, 0, _NUMBER_AT),
            ]
        elif name in _MODE_AT:
            # A setuid program, which runs as its owner for everybody, would remain in the project.
            block = [(_LOAD, 0, 0, _argument(_MODE_AT[name])), (_ANY_BIT, 0, 1, _SETUID), *refuse]
            if name in ("open", "openat"):
                block = [(_LOAD, 0, 0, _argument(_MODE_AT[name] - 1)), (_ANY_BIT, 0, len(block), _MAKES_FILE), *block]
            block.append((_LOAD, 0, 0, _NUMBER_AT))
        elif name == "ptrace":
            # Debuggers and leak checkers need it. The sandbox's first process, outside Landlock's scopes, stays alone.
            block = [(_LOAD, 0, 0, _argument(1)), (_EQUAL, 0, 1, _FIRST_PROCESS), *refuse, (_LOAD, 0, 0, _NUMBER_AT)]
        elif name in ("clone3", "openat2"):
            # Their arguments are in memory, where a filter cannot look; without these calls, libraries use older ones.
            block = [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
        else:
            block = refuse
        code += [(_EQUAL, 0, len(block), number), *block]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in code)
