"""Loads and runs user code: `path.py:name` becomes an object, from that file and nowhere else.

A plugin is one file. It may import the standard library and installed packages, but neither the files beside it nor
those of the working directory: the user trusted the bytes of this file. `print` writes to stderr, because stdout
carries only the answer.
"""

import asyncio
import functools
import hashlib
import re
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import CoroutineType, FrameType, ModuleType
from typing import Any

from ra.core.errors import HookFailed, UserError
from ra.system.agreed import ChangedSinceAgreed, agreed
from ra.system.files import open_resolved

MAX_BYTES = 1_000_000
_REF = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[A-Za-z_]\w*))?", re.DOTALL)


def load(ref: str, *, base: Path, name: str | None = None) -> Any:
    """The object that `path.py` or `path.py:name` names; without a name, the module. Raises UserError."""
    match = _REF.fullmatch(ref)
    if match is None:
        raise UserError(f"{ref!r} is not a plugin: write a path that ends in .py, or path.py:name.")
    path = locate(match["path"], base=base)
    module = _module(path)
    object_name = match["name"] or name
    if object_name is None:
        return module
    if not hasattr(module, object_name):
        raise UserError(
            f"{path} defines no {object_name!r}.{_suggestion(object_name, [n for n in vars(module) if n[0] != '_'])}"
        )
    return getattr(module, object_name)


def locate(path: str, *, base: Path) -> Path:
    """The file that a path in a configuration means: relative to `base`, `~` is the home. Raises UserError."""
    try:
        full = (base / Path(path).expanduser()).resolve()
        if full.is_file():
            return full
        neighbours = [entry.name for entry in full.parent.iterdir()] if full.parent.is_dir() else []
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{path!r} cannot be read: {error}.") from error
    raise UserError(f"There is no file {full}.{_suggestion(full.name, neighbours)}")


def _suggestion(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # only needed for mistakes

    close = get_close_matches(name, names, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _line_in(error: BaseException, file: Path) -> int:
    """The line of `file` where an exception was raised or passed through last; 0 when it did not involve the file."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(file)), 0)


def _module(path: Path) -> ModuleType:
    """The module of this source. Never reads a __pycache__ beside it: the user did not trust those bytes."""
    try:
        with open_resolved(path) as file:
            source = file.read(MAX_BYTES + 1)
        agreed.check(str(path), source)
    except ChangedSinceAgreed as error:
        raise UserError(f"{error}.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if len(source) > MAX_BYTES:
        raise UserError(f"{path} is larger than {MAX_BYTES // 1000} KB; a plugin is one small file.")
    # Named by content: hooks that name the same file share its state, and an edited file is loaded again.
    digest = hashlib.sha256(str(path).encode(errors="surrogateescape") + b"\0" + source).hexdigest()
    name = f"ra_plugin_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__dict__["print"] = _print
    sys.modules[name] = module  # dataclasses and pickle look up their module there
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what a plugin is
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(_fault(error, path)) from error
    return module


def _fault(error: BaseException, path: Path) -> str:
    text = f"{path}:{_line_in(error, path)}: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name and (path.parent / f"{error.name}.py").exists():
        text += ". A plugin is one file and cannot import the files beside it; install them as a package"
    return text + "."


@functools.wraps(print)
def _print(*values: object, **options: Any) -> None:
    options.setdefault("file", sys.stderr)
    print(*values, **options)


class Worker:
    """Runs user code in a separate thread, so that a hook that blocks can be abandoned after its time.

    One thread with one event loop serves all calls: what a plugin keeps (a connection, a lock) stays usable. The thread
    starts with the first call and is a daemon, so it never keeps the program from ending.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *args: Any, timeout_s: float, file: Path, what: str) -> Any:
        """Calls and, if need be, awaits the function; returns its result. Raises HookFailed: file, line and `what`."""
        loop = self._running()
        running: list[CoroutineType[Any, Any, Any]] = []

        async def run() -> Any:
            try:
                answer = function(*args)
                if isinstance(answer, CoroutineType):
                    running.append(answer)
                return await answer if isinstance(answer, Awaitable) else answer
            except (SystemExit, KeyboardInterrupt) as error:  # would end the thread's loop without a report
                raise RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from error

        future: Future[Any] = asyncio.run_coroutine_threadsafe(run(), loop)
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=timeout_s)
        except asyncio.CancelledError:
            waiting.cancel()
            raise
        if done:
            if waiting.cancelled():  # we did not cancel it, so it must not look like the user's Ctrl-C
                raise HookFailed(f"{file}: {what} cancelled itself.")
            try:
                return waiting.result()
            except Exception as error:
                line = _line_in(error, file)
                place = f"{file}:{line}" if line else str(file)
                raise HookFailed(f"{place}: {what} failed: {type(error).__name__}: {error}") from error
        line = self._line(running, file)
        waiting.cancel()
        # A blocked thread would delay every later call: the next one gets a new thread.
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.call_later, 1, loop.stop)
        raise HookFailed(f"{file}:{line}: {what} took longer than {timeout_s:g} s.")

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name="ra-plugins", daemon=True)
            self._thread.start()
        return self._loop

    def _line(self, running: "list[CoroutineType[Any, Any, Any]]", file: Path) -> int:
        """The line that the code has reached: suspended in an await, or in the middle of a blocking call."""
        waiting = running[0].cr_frame if running else None
        if waiting is not None and waiting.f_code.co_filename == str(file) and not running[0].cr_running:
            return int(waiting.f_lineno)
        ident = self._thread.ident if self._thread else None
        frame: FrameType | None = sys._current_frames().get(ident or 0)
        while frame is not None and frame.f_code.co_filename != str(file):
            frame = frame.f_back
        return frame.f_lineno if frame else 0


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
