"""Creates folders and makes trial runs for sandboxes."""

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable

from ra.system.process import Launch

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

PREFIX = "ra-tmp-"
UNHELD = "ra-new-"  # the prefix of a folder's name until it is locked
YOUNG_S = 60.0  # longer than it takes to lock a new one


def private_folder(owner: object) -> tuple[str, Callable[[], object]]:
    """A folder for temporary files that lives as long as its owner, and a function that removes it earlier.

    A lock, which ends with our process in any case, marks it as used: the folder of a killed process is removed here.
    It gets its name when it is locked, so that an unlocked folder of such a name belongs to nobody.
    """
    remove_left_behind(tempfile.gettempdir())
    unheld = os.path.realpath(tempfile.mkdtemp(prefix=UNHELD))
    handle = os.open(unheld, _FOLDER)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    path = os.path.join(os.path.dirname(unheld), os.path.basename(unheld).replace(UNHELD, PREFIX, 1))
    os.rename(unheld, path)
    return path, weakref.finalize(owner, _remove, path, handle)


def remove_left_behind(folder: str) -> None:
    """Removes temporary folders of this user that no process has locked."""
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if _is_ours(entry)]
    except OSError:
        return  # then there is nothing that ra could remove
    for path in paths:
        with contextlib.suppress(OSError):  # another process has locked it, or was faster
            handle = os.open(path, _FOLDER)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    """A folder of this user that is locked, or should be by now."""
    if not entry.name.startswith((PREFIX, UNHELD)):
        return False
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    old = entry.name.startswith(PREFIX) or time.time() - status.st_mtime > YOUNG_S
    return old and stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _remove(path: str, handle: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(handle)


def try_out(launch: Launch) -> bool:
    """Whether a command that checks its sandbox from inside finds it tight."""
    try:
        process = subprocess.run(
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
    return process.returncode == 0
