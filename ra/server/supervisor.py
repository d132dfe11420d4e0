"""Runs several workers on one machine: starts them on one socket, restarts dead ones, and replaces them one by one."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping

import msgspec

from ra.core.errors import RaError
from ra.server.log import Log

WORKER_VARIABLE = "RA_SERVE_WORKER"  # the files that a worker inherits: LISTENING,PARENT,READY
SHORT_LIFE_S = 5.0
MAX_PAUSE_S = 5.0
START_S = 60.0


class Inherited(msgspec.Struct, frozen=True):
    """The files from the parent: the socket, a pipe that closes with the parent, one to report that it is ready."""

    listening: int
    parent: int
    ready: int

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "Inherited | None":
        variable = env.get(WORKER_VARIABLE)
        return cls(*map(int, variable.split(","))) if variable else None

    def write(self) -> str:
        return f"{self.listening},{self.parent},{self.ready}"


class Supervisor:
    """The parent of `ra serve --workers N`. It serves no requests itself, so that no request can crash it."""

    def __init__(self, listening: socket.socket, workers: int, log: Log) -> None:
        self._listening = listening
        self._number = workers
        self._log = log
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._alive, self._lifeline = os.pipe()  # the second end closes with this process
        self._stopping: signal.Signals | None = None
        self._started = asyncio.Event()
        self._stopped = asyncio.Event()
        self._restarting: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Runs until SIGTERM or SIGINT; SIGHUP replaces the workers one by one. Returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(signal.SIGHUP, self._restart)
        for place, worker in enumerate(await asyncio.gather(*(self._start() for _ in range(self._number)))):
            self._watch(place, worker)
        self._started.set()
        await self._stopped.wait()
        while self._watching:
            await asyncio.wait(self._watching)
        self._log.say("stopped", "all workers stopped")
        return 128 + (self._stopping or 0)

    def _stop(self, number: signal.Signals) -> None:
        self._stopping = self._stopping or number
        self._stopped.set()
        for worker in self._workers.values():
            _signal(worker, signal.SIGTERM)

    def _restart(self) -> None:
        if self._restarting is None or self._restarting.done():
            self._restarting = asyncio.create_task(self._replace_all())

    async def _replace_all(self) -> None:
        """A new worker accepts tasks before the old one stops: no client is refused."""
        await self._started.wait()
        self._log.say("restart", f"replacing {self._number} workers, one by one")
        for place in range(self._number):
            old_worker = self._workers[place]
            try:
                new_worker = await self._start()
            except RaError as error:
                self._log.say("restart", f"{error} The old workers stay.", level="error")
                return
            if self._stopping:
                _signal(new_worker, signal.SIGTERM)
                return
            self._watch(place, new_worker)
            _signal(old_worker, signal.SIGTERM)
            await old_worker.wait()
        self._log.say("restart", "all workers are new")

    def _watch(self, place: int, worker: asyncio.subprocess.Process) -> None:
        self._workers[place] = worker
        watching = asyncio.create_task(self._until_dead(place, worker))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)

    async def _until_dead(self, place: int, worker: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        began, pause_s = loop.time(), 0.1
        code = await worker.wait()
        while not self._stopping and self._workers[place] is worker:
            self._log.say("worker", f"worker {worker.pid} ended with {code}; starting another", level="warning")
            if loop.time() - began < SHORT_LIFE_S:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            try:
                began = loop.time()
                self._watch(place, await self._start())
            except RaError as error:
                self._log.say("worker", str(error), level="error")

    async def _start(self) -> asyncio.subprocess.Process:
        """Starts a worker; returns when it accepts requests. Raises RaError if it ends, or never gets ready."""
        ready_reader, ready = os.pipe()
        inherited = Inherited(self._listening.fileno(), self._alive, ready)
        # In a process group of its own: Ctrl-C goes to the parent, which stops its workers once.
        worker = await asyncio.create_subprocess_exec(
            *_command(),
            env=os.environ | {WORKER_VARIABLE: inherited.write()},
            pass_fds=(inherited.listening, inherited.parent, inherited.ready),
            stdin=asyncio.subprocess.DEVNULL,
            process_group=0,
        )
        os.close(ready)
        try:
            async with asyncio.timeout(START_S):
                came_up = await asyncio.to_thread(os.read, ready_reader, 1)
        except TimeoutError:
            came_up = b""
        finally:
            os.close(ready_reader)
        if not came_up and not self._stopping:
            _signal(worker, signal.SIGKILL)
            raise RaError("A worker did not start; its log lines say why.")
        return worker


def _command() -> list[str]:
    """The command line of this process, however it was started; an environment variable marks the worker."""
    return [sys.executable, *sys.orig_argv[1:]]


def _signal(worker: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if worker.returncode is None:
        worker.send_signal(number)
