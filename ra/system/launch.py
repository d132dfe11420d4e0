"""Starts commands under the reaper, so that everything they start can be ended."""

import functools
import marshal
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader

from ra.system import reaper
from ra.system.agreed import agreed
from ra.system.process import Launch

_START = """\
import marshal, sys
with open(int(sys.argv[1]), "rb") as file:
    order, code = marshal.load(file), marshal.load(file)
exec(code)
main(order)
"""
"""Runs the compiled reaper: Python would compile a source file again for every command, which takes 2 ms."""


def under_reaper(argv: Sequence[str], *, cwd: str = "") -> Launch:
    """The launch of a command under the reaper.

    `cwd` is given for a command from a configuration: its files must then have the bytes that the user agreed to.
    Raises OSError when they have changed, or when a temporary file cannot be written.
    """
    if cwd:
        agreed.check_command(argv, cwd)
    order = marshal.dumps({"argv": list(argv), "parent": os.getpid()})
    with tempfile.TemporaryFile() as file:  # arguments are visible to all users, and limited to 128 KiB
        file.write(order + _reaper_code())
        file.flush()
        descriptor = os.dup(file.fileno())
    os.lseek(descriptor, 0, os.SEEK_SET)
    # Isolated and without site-packages: loads nothing from the project or the environment, and starts fast.
    python = getattr(sys, "_base_executable", None) or sys.executable
    return Launch([python, "-I", "-S", "-c", _START, str(descriptor)], (descriptor,), killed_by=signal.SIGTERM)


@functools.cache
def _reaper_code() -> bytes:
    """The reaper's code. It follows the order, which any Python can read; the code only runs on our own version."""
    return marshal.dumps(SourceFileLoader(reaper.__name__, reaper.__file__).get_code(reaper.__name__))
