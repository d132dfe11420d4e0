"""Folders and trial runs for sandboxes."""

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
YOUNG_S = 60.0  # between making a folder and holding it


def private_folder(owner: object) -> tuple[str, Callable[[], object]]:
    """A folder for temporary files that lives as long as its owner, and how to remove it before.

    It is held by a lock that ends with our process, however that ends: what a killed one left is removed here.
    """
    remove_left_behind(tempfile.gettempdir())
    path = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))
    handle = os.open(path, _FOLDER)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return path, weakref.finalize(owner, _remove, path, handle)


def remove_left_behind(folder: str) -> None:
    """Remove temporary folders of this user that no process holds any more."""
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if entry.name.startswith(PREFIX) and _is_old(entry)]
    except OSError:
        return  # then there is nothing that we could remove
    for path in paths:
        with contextlib.suppress(OSError):  # somebody holds it, or was faster
            handle = os.open(path, _FOLDER)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _is_old(entry: "os.DirEntry[str]") -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and time.time() - status.st_mtime > YOUNG_S


def _remove(path: str, handle: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(handle)


def try_out(launch: Launch) -> bool:
    """Whether a command that checks its box from inside finds it tight."""
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
