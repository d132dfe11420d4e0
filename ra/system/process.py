"""Runs a command as a child process: streams its output and ends it in time, with all its descendants."""

import asyncio
import codecs
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakSet

import msgspec

HEAD_BYTES = 500_000
TAIL_BYTES = 500_000
STREAM_EVERY_S = 0.1
STREAM_CHARACTERS = 4000


class Ends:
    """The first and the last bytes of a stream. Uses constant memory, however long the stream is."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed only at twice the size: trimming moves bytes, and this way each byte is moved once.
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def text(self) -> str:
        tail = self._tail[-self._tail_bytes :] if self._tail_bytes else bytearray()
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (self._head + tail).decode("utf-8", "replace")
        first = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)  # drops a torn last character
        start = next((place for place in range(min(4, len(tail))) if tail[place] & 0xC0 != 0x80), 0)
        last = tail[start:].decode("utf-8", "replace")
        return f"{first}\n[… {missing} bytes left out …]\n{last}"


class Launch(msgspec.Struct, frozen=True):
    """How to start a command in its permitted environment.

    Sending the signal `killed_by` to the started process ends everything that the command started. `finish` cleans up
    afterwards and returns notes for the model; after it, `began` says whether the command itself was started, as the
    preparation of its environment may have failed.
    """

    argv: Sequence[str]
    fds: tuple[int, ...] = ()
    finish: Callable[[], Sequence[str]] = tuple
    killed_by: int = signal.SIGKILL
    env: dict[str, str] = {}
    began: Callable[[], bool] = lambda: True


class Ended(msgspec.Struct, frozen=True):
    code: int
    timed_out: bool
    notes: Sequence[str]
    began: bool = True


_started: "WeakSet[Running]" = WeakSet()


def anything_runs() -> bool:
    """Whether a command of any session is running, such as a background job: it could change files as we read them."""
    return any(not running.ended for running in _started)


class Running:
    """A started command. `output` collects its output; `unread` is what the reader of a job has not seen yet."""

    def __init__(self, process: asyncio.subprocess.Process, launch: Launch, say: Callable[[str], None]) -> None:
        self.output = Ends()
        self.unread = Ends()
        self._process = process
        self._launch = launch
        self._pump = asyncio.create_task(self._read(say))
        self.notes: Sequence[str] | None = None  # what `finish` returned, once it was called
        _started.add(self)

    @property
    def ended(self) -> bool:
        return self._pump.done()

    def take_unread(self) -> str:
        text, self.unread = self.unread.text(), Ends()
        return text

    async def wait(self, timeout_s: float | None = None) -> Ended:
        """Waits for the end; on time-out and cancellation, kills everything."""
        timed_out = False
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._pump)
        except TimeoutError:
            timed_out = True
        finally:
            await self.kill()
        return Ended(self._process.returncode or 0, timed_out, self.notes or (), timed_out or self._launch.began())

    async def kill(self) -> None:
        """Ends the command and everything that it started; does nothing when it has already ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                if self._launch.killed_by == signal.SIGKILL:
                    await _kill_with_children(self._process.pid)
                self._process.send_signal(self._launch.killed_by)
        await asyncio.shield(self._pump)
        if self.notes is None:
            self.notes = ()
            self.notes = await asyncio.to_thread(self._launch.finish)  # it scans the project

    async def _read(self, say: Callable[[str], None]) -> None:
        assert self._process.stdout
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pending, last = "", 0.0
        while True:
            try:  # passes on the latest output soon, even when nothing follows for a long time
                async with asyncio.timeout(STREAM_EVERY_S if pending else None):
                    data = await self._process.stdout.read(1 << 18)
            except TimeoutError:
                data = None
            if data == b"":
                break
            if data is not None:
                self.output.add(data)
                self.unread.add(data)
                pending = (pending + decoder.decode(data))[-STREAM_CHARACTERS:]
            if pending and (now := time.monotonic()) - last >= STREAM_EVERY_S:
                say(pending)
                pending, last = "", now
        if pending:
            say(pending)
        await self._process.wait()


async def _kill_with_children(pid: int) -> None:
    """Stops a process, so that it starts nothing more, and kills its children.

    A bubblewrap that is killed in its first millisecond has not yet arranged that its child dies with it.
    """
    os.kill(pid, signal.SIGSTOP)
    for _ in range(50):
        if _proc(pid, "stat").rpartition(") ")[2][:1] in ("", "T", "t", "Z", "X"):
            break
        await asyncio.sleep(0.001)
    for child in _proc(pid, f"task/{pid}/children").split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)


def _proc(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}") as file:
            return file.read()
    except OSError:
        return ""


async def start(
    launch: Launch,
    *,
    cwd: str,
    env: dict[str, str],
    say: Callable[[str], None],
    fds: tuple[int, ...] = (),
    stdin: int = asyncio.subprocess.DEVNULL,
) -> Running:
    """Starts a command whose output goes to `say` while it runs. Raises OSError when it cannot be started."""
    try:
        spawning = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *launch.argv,
                cwd=cwd,
                env=env | launch.env,
                stdin=stdin,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(*fds, *launch.fds),
                start_new_session=True,
                limit=1 << 18,
            )
        )
        try:
            process = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            await asyncio.shield(_abandon(spawning, launch, say))
            raise
    except OSError:
        launch.finish()
        raise
    finally:
        for descriptor in launch.fds:
            os.close(descriptor)
    return Running(process, launch, say)


async def _abandon(
    spawning: asyncio.Future[asyncio.subprocess.Process], launch: Launch, say: Callable[[str], None]
) -> None:
    """Ends a command that is still being started. asyncio would kill bubblewrap alone, perhaps before its child."""
    try:
        running = Running(await spawning, launch, say)
    except OSError:
        launch.finish()
    else:
        await running.kill()


async def start_piped(
    launch: Launch, *, cwd: str | os.PathLike[str], env: Mapping[str, str], limit: int = 1 << 16
) -> asyncio.subprocess.Process:
    """Starts a program with stdin, stdout and stderr as pipes; `end_piped` ends it. Raises OSError."""
    try:
        return await asyncio.create_subprocess_exec(
            *launch.argv,
            cwd=cwd,
            env={**env, **launch.env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=launch.fds,
            start_new_session=True,
            limit=limit,
        )
    finally:
        for descriptor in launch.fds:
            os.close(descriptor)


async def end_piped(process: asyncio.subprocess.Process, *, grace_s: float = 0) -> None:
    """Closes the program's input, waits up to `grace_s` for its exit, then ends it and everything that it started."""
    assert process.stdin
    process.stdin.close()
    try:
        async with asyncio.timeout(grace_s):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()  # the reaper kills everything below it
        for descriptor in (1, 2):
            # A full pipe without a reader would block the wait below; there is no public way to close it.
            if pipe := process._transport.get_pipe_transport(descriptor):  # type: ignore[attr-defined]  # see above
                pipe.close()
        await process.wait()
