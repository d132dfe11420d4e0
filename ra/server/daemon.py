"""Starts and stops the server: one socket and one loop. A signal lets tasks finish, a second one interrupts them."""

import asyncio
import contextlib
import hashlib
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

import uvicorn
from starlette.types import ASGIApp

from ra.app import open_store
from ra.core.errors import RaError, UserError
from ra.core.value import Value
from ra.server import token
from ra.server.access import AccessRules
from ra.server.agents import Agents
from ra.server.idempotency import Keys
from ra.server.local_tasks import LocalTasks
from ra.server.log import Bridge, Log
from ra.server.peer_user import CLOSE_HEADER, LINGER_S, PeerConnection
from ra.server.presence import Presence
from ra.server.routes import routes
from ra.server.supervisor import Inherited, Supervisor
from ra.server.tasks import Tasks
from ra.system.files import make_private
from ra.system.loopback import is_loopback
from ra.timeline.opening import POSTGRES
from ra.timeline.store import Store

MAX_FILES = 8192
READY_S = 10.0  # how long to wait for a worker to reach the database; after that it says why it is not ready
DRAIN_LOOK_S = 0.05
GRACE_S = 8.0  # container runtimes kill after ten seconds


class ListenAddress(Value, frozen=True):
    """Where to listen, and whom to admit. Without a token: the one in the data directory, on the loopback only."""

    host: str
    port: int
    token: str = ""
    grace_s: float = GRACE_S
    workers: int = 1

    @property
    def local(self) -> bool:
        return self.host == "localhost" or is_loopback(self.host)


class WebPage(Protocol):
    """Shows the sessions in a browser; the package that implements it is in a higher layer."""

    def beside(self, api: ASGIApp, access_rules: AccessRules) -> ASGIApp:
        """Answers the requests for the page, and passes the others on to `api`."""
        ...


class HttpServer(uvicorn.Server):
    """The settings of every server of ours: no other protocol, no server header, connections that know their user."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PeerConnection,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=2,
            )
        )

    async def hand_over(self, listening: socket.socket) -> None:
        """Leaves new connections to the other workers of the socket, and answers the clients connected to this one.

        A silent connection may already carry a request: it has `LINGER_S` to send one more.
        """
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        self.config.encoded_headers.append(CLOSE_HEADER)
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE_HEADER]
        for connection in self._connections():
            connection.announce_close()
        give_up = loop.time() + LINGER_S
        # A connection that was accepted a moment ago is not in the list yet, so look at least once.
        await asyncio.sleep(DRAIN_LOOK_S)
        while loop.time() < give_up and self._anybody_silent():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(DRAIN_LOOK_S)
        for accepting in self.servers:
            accepting.close()
        for connection in self._connections():
            connection.shutdown()

    def _anybody_silent(self) -> bool:
        return any(connection.silent for connection in self._connections())

    def _connections(self) -> list[PeerConnection]:
        return [item for item in self.server_state.connections if isinstance(item, PeerConnection)]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """ra handles the signals itself: tasks end before connections do."""
        yield


def serve(
    place: ListenAddress,
    agents: Agents,
    log: Log,
    *,
    started: Callable[[str], None],
    page: WebPage | None = None,
    inherited: Inherited | None = None,
) -> int:
    """Serves until a signal arrives; returns the exit code. `started` receives the URL. Raises RaError.

    `inherited`: this is one of several workers, and its parent holds the socket.
    """
    if not place.local and not place.token:
        raise UserError(
            f"{place.host} can be reached by others: give a token with --token or RA_SERVE_TOKEN, "
            "or leave out --host to serve this machine only."
        )
    if place.workers > 1 and not _shared(agents):
        raise UserError("--workers needs a store that processes can share: set app.store to postgresql://….")
    data_dir = agents.base.data_dir
    make_private(data_dir)
    secret = token.checked(place.token) if place.token else token.stored(data_dir)
    _raise_file_limit()
    if inherited is not None:
        with socket.socket(fileno=inherited.listening) as listening:
            return asyncio.run(_serve(place, listening, secret, agents, log, _Ready(inherited.ready), page, inherited))
    with bound(place) as listening:
        if place.workers > 1:
            return asyncio.run(_supervise(place, listening, log, started))
        return asyncio.run(_serve(place, listening, secret, agents, log, started, page))


async def _supervise(place: ListenAddress, listening: socket.socket, log: Log, started: Callable[[str], None]) -> int:
    url = url_of(listening)
    log.say("started", f"listening on {url} with {place.workers} workers", url=url)
    started(url)
    return await Supervisor(listening, place.workers, log).run()


class _Ready:
    """Tells the parent of a worker that the worker accepts requests."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def __call__(self, url: str) -> None:
        os.write(self._pipe, b"1")
        os.close(self._pipe)


async def _serve(
    place: ListenAddress,
    listening: socket.socket,
    secret: str,
    agents: Agents,
    log: Log,
    started: Callable[[str], None],
    page: WebPage | None,
    inherited: Inherited | None = None,
) -> int:
    store = open_store(agents.base)
    tasks = _tasks(agents, log, store)
    telemetry = agents.telemetry
    if telemetry is not None:
        telemetry.watch(tasks)
    gate = AccessRules(secret, os.geteuid(), local=place.local)
    app = routes(tasks, gate, store, str(agents.base.root))
    _quiet(log)
    server = HttpServer(page.beside(app, gate) if page else app)
    received: list[signal.Signals] = []
    stop_asked = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        stop_asked.set()
        if len(received) > 1:
            tasks.hurry()

    loop = asyncio.get_running_loop()

    def orphaned(pipe: int) -> None:
        loop.remove_reader(pipe)
        stop(signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop, number)
    if inherited is not None:  # the pipe closes when the parent ends, for whatever reason
        loop.add_reader(inherited.parent, orphaned, inherited.parent)
    attending = asyncio.create_task(tasks.serve())
    stopping = asyncio.create_task(stop_asked.wait())
    if inherited is not None:  # its predecessor stops as soon as this worker accepts requests
        ready = asyncio.create_task(tasks.ready())
        await asyncio.wait({ready, attending, stopping}, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
    serving = asyncio.create_task(server.serve([listening]))
    url = url_of(listening)
    log.say("started", f"listening on {url}", url=url)
    started(url)
    ends = {serving, attending, stopping}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if inherited is not None:
        await server.hand_over(listening)
    load = await tasks.load()
    if load.running or load.waiting:
        log.say("stopping", f"stopping: {load.running} tasks run and {load.waiting} wait")
    await tasks.stop(place.grace_s)
    server.should_exit = True
    await serving
    attending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await attending  # a bug in it crashes here, not silently
    if telemetry is not None:
        await asyncio.to_thread(telemetry.close)
    log.say("stopped", "stopped")
    return 128 + received[0] if received else 1


def _tasks(agents: Agents, log: Log, store: Store) -> Tasks:
    """The queue of this process, or, if the store is PostgreSQL, the one that all workers of the project share."""
    if not _shared(agents):
        presence = Presence(agents.base.data_dir)
        return LocalTasks(agents, Keys(agents.base.data_dir, presence), presence, log, store)
    from ra.server.shared_tasks import SharedTasks  # start-up time: an optional dependency

    address = agents.base.config.app.store or ""
    project = hashlib.sha256(str(agents.base.root).encode()).hexdigest()
    return SharedTasks(agents, address, log, queue=f"ra-{project[:16]}")


def _shared(agents: Agents) -> bool:
    return (agents.base.config.app.store or "").startswith(POSTGRES)


def _raise_file_limit() -> None:
    """The usual limit of open files is 1024, and connections beyond the maximum are answered, which takes files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted_limit = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted_limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted_limit, hard))


@contextlib.contextmanager
def bound(place: ListenAddress) -> Iterator[socket.socket]:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UserError(
            f"--host {place.host}: {error.strerror or error}. Name an address of this machine, such as 127.0.0.1."
        ) from error
    with socket.socket(family, kind, protocol) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            made.listen(1024)
        except OSError as error:
            shown = f"{place.host}:{place.port}"
            if isinstance(error, PermissionError):
                raise UserError(f"{shown} cannot be used: {error.strerror}. Choose a port above 1023.") from error
            raise RaError(
                f"{shown} cannot be used: {error.strerror or error}. "
                "Another `ra serve` may run there; stop it, or choose another port with --port."
            ) from error
        made.setblocking(False)
        yield made


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _quiet(log: Log) -> None:
    """Libraries log errors, and nothing else."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [Bridge(log)]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
