"""How is a command started so that all of it can be ended? Under a warden, with or without chains."""

import functools
import marshal
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader

from ra.tools.process import Launch
from ra.tools.sandbox import warden
from ra.tools.sandbox.landlock import Chains

_START = """\
import marshal, sys
with open(int(sys.argv[1]), "rb") as file:
    order, code = marshal.load(file), marshal.load(file)
exec(code)
main(order)
"""
"""The warden, compiled already: as a file it would be compiled again for every command, which takes 2 ms."""


def private_folder(owner: object) -> tuple[str, Callable[[], object]]:
    """A folder for temporary files that lives as long as its owner, and how to remove it before."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="ra-tmp-"))
    return path, weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)


def try_out(launch: Launch) -> bool:
    """Whether a command that checks its box from inside finds it tight."""
    try:
        done = subprocess.run(
            launch.argv,
            pass_fds=launch.fds,
            env={"PATH": os.defpath, **launch.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        for descriptor in launch.fds:
            os.close(descriptor)
        launch.finish()
    return done.returncode == 0


def under_warden(argv: Sequence[str], chains: Chains | None = None) -> Launch:
    order = marshal.dumps({"argv": list(argv), "chains": chains, "parent": os.getpid()})
    with tempfile.TemporaryFile() as file:  # not an argument: those are seen by everybody, and limited to 128 KiB
        file.write(order + _warden_code())
        file.flush()
        descriptor = os.dup(file.fileno())
    os.lseek(descriptor, 0, os.SEEK_SET)
    # Isolated and without site-packages: nothing of the project or the environment is loaded, and it starts fast.
    python = getattr(sys, "_base_executable", None) or sys.executable
    return Launch([python, "-I", "-S", "-c", _START, str(descriptor)], (descriptor,), killed_by=signal.SIGTERM)


@functools.cache
def _warden_code() -> bytes:
    """Stands behind the order, which any Python can read; this only one of our own version."""
    return marshal.dumps(SourceFileLoader(warden.__name__, warden.__file__).get_code(warden.__name__))
