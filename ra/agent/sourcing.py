"""Where does the content of a source in ra.yaml come from? A bounded file, or a command that ends in time."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ra.core.errors import RaError
from ra.tools.environment import clean
from ra.tools.process import start
from ra.tools.sandbox.launch import under_warden

COMMAND_S = 30.0
MAX_BYTES = 1_000_000  # more is never a source: the largest window holds about four times as many characters


class SourceFailed(RaError):
    """A source that could not be read: it becomes a marker in the prompt and a warning, and the run goes on."""


def read_file(path: str, *, root: Path) -> str:
    """The text of a file, at most a megabyte of it. Anything but a regular file is refused."""
    try:
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise SourceFailed(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SourceFailed(f"{path} is no regular file")
        return file.read(MAX_BYTES).decode("utf-8", "replace")


async def run_command(command: str, *, root: Path, env: Mapping[str, str], timeout_s: float = COMMAND_S) -> str:
    """What a command prints, run from the project's root in a clean environment; all that it started ends with it."""
    launch = under_warden(["bash", "--noprofile", "--norc", "-c", command])
    try:
        running = await start(launch, cwd=str(root), env=clean(env), say=lambda _: None)
    except OSError as error:
        raise SourceFailed(f"{command}: {error.strerror}") from error
    ended = await running.wait(timeout_s)
    output = running.output.text()
    if ended.timed_out:
        raise SourceFailed(f"{command}: not done within {timeout_s:g} s")
    if ended.code:
        last = (output.strip().splitlines() or ["no output"])[-1]
        raise SourceFailed(f"{command}: exit {ended.code}: {last[:200]}")
    return output.rstrip("\n")
