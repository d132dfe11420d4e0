"""Start a command under the reaper, so that everything it starts can be ended."""

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
"""The reaper, compiled already: as a file it would be compiled again for every command, which takes 2 ms."""


def under_reaper(argv: Sequence[str], *, cwd: str = "") -> Launch:
    """`cwd`: for what a configuration names; then its files must have the bytes that the user agreed to.

    Raises OSError when they have not, or when there is no room for a temporary file.
    """
    if cwd:
        agreed.check_command(argv, cwd)
    order = marshal.dumps({"argv": list(argv), "parent": os.getpid()})
    with tempfile.TemporaryFile() as file:  # not an argument: those are seen by everybody, and limited to 128 KiB
        file.write(order + _reaper_code())
        file.flush()
        descriptor = os.dup(file.fileno())
    os.lseek(descriptor, 0, os.SEEK_SET)
    # Isolated and without site-packages: nothing of the project or the environment is loaded, and it starts fast.
    python = getattr(sys, "_base_executable", None) or sys.executable
    return Launch([python, "-I", "-S", "-c", _START, str(descriptor)], (descriptor,), killed_by=signal.SIGTERM)


@functools.cache
def _reaper_code() -> bytes:
    """Stands behind the order, which any Python can read; this only one of our own version."""
    return marshal.dumps(SourceFileLoader(reaper.__name__, reaper.__file__).get_code(reaper.__name__))
