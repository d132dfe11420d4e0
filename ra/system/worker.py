"""Runs one of our functions in a separate process with limited memory and time.

It is for work that hostile input can blow up: a regular expression, a PDF. A thread could neither be ended nor limited.
"""

import os
import subprocess
import sys
import time

import msgspec

MEMORY_BYTES = 1 << 30
GRACE_S = 2.0  # after the deadline, for functions that watch the clock themselves

_START = """\
import json, sys
order = json.loads(sys.stdin.buffer.readline())
sys.path[:] = order["path"]
from ra.system.worker import serve
serve(order)
"""
_NO_MEMORY, _FAILED = 87, 88


class OutOfMemory(Exception):
    """The function exceeded its memory limit."""


class OutOfTime(Exception):
    """The function did not end in time."""


class WorkerFailed(Exception):
    """The function raised an exception; the text is the last line of its stderr."""


def call(target: str, order: bytes, *, until: float) -> bytes:
    """The result of the function `target` (`module:name`, from bytes to bytes). Blocks until `until` at the latest.

    `until` is a time of `time.monotonic`. Raises OutOfMemory, OutOfTime, WorkerFailed, and OSError when no process can
    be started.
    """
    left_s = max(0.1, until - time.monotonic())
    head = {"path": sys.path, "target": target, "memory": MEMORY_BYTES, "seconds": int(left_s + GRACE_S) + 1}
    # Isolated: loads nothing from the environment or the working directory, only from our own import path.
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONIOENCODING": "utf-8"},
        start_new_session=True,  # Ctrl-C is ours to handle
    )
    try:
        answer, errors = process.communicate(msgspec.json.encode(head) + b"\n" + order, timeout=left_s + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise OutOfTime from error
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode == _NO_MEMORY or (process.returncode < 0 and process.returncode != -24):
        raise OutOfMemory  # killed by the kernel, or by a library that found no memory
    if process.returncode < 0:
        raise OutOfTime  # SIGXCPU
    if process.returncode:
        raise WorkerFailed(errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:500])
    return answer


def serve(head: "dict[str, object]") -> None:  # pragma: no cover - runs in the worker, which coverage does not follow
    """In the worker: sets the limits, runs the function and writes its result."""
    import importlib
    import resource

    code = 0
    try:
        for kind, most in ((resource.RLIMIT_AS, head["memory"]), (resource.RLIMIT_CPU, head["seconds"])):
            assert isinstance(most, int)
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
        module, _, name = str(head["target"]).partition(":")
        answer = getattr(importlib.import_module(module), name)(sys.stdin.buffer.read())
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except MemoryError:
        code = _NO_MEMORY
    except Exception as error:  # noqa: BLE001 - reported to the caller
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        code = _FAILED
    os._exit(code)
