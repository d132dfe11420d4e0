"""How does the server start and stop? One socket, one loop; a signal lets tasks end, a second one hurries them."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from ra.app import open_store
from ra.core.errors import RaError, UserError
from ra.core.value import Value
from ra.server import token
from ra.server.agents import Agents
from ra.server.door import Door, is_loopback
from ra.server.keys import Keys
from ra.server.log import Bridge, Log
from ra.server.office import Office
from ra.server.peer import Connection
from ra.server.routes import routes
from ra.timeline.schema import make_private

GRACE_S = 8.0  # container runtimes kill after ten


class Place(Value, frozen=True):
    """Where to listen, and who may come. Without a token: the one in the data directory, on the loopback only."""

    host: str
    port: int
    token: str = ""
    grace_s: float = GRACE_S

    @property
    def local(self) -> bool:
        return self.host == "localhost" or is_loopback(self.host)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: tasks end before connections do."""
        yield


def serve(place: Place, agents: Agents, log: Log, *, started: Callable[[str], None]) -> int:
    """Serve until a signal comes; returns the exit code. `started` is told the URL. Raises RaError."""
    if not place.local and not place.token:
        raise UserError(
            f"{place.host} can be reached by others: give a token with --token or RA_SERVE_TOKEN, "
            "or leave --host away to serve this machine only."
        )
    data = agents.base.data_dir
    make_private(data)
    secret = token.checked(place.token) if place.token else token.stored(data)
    with _bound(place) as listening:
        return asyncio.run(_serve(place, listening, secret, agents, log, started))


async def _serve(
    place: Place, listening: socket.socket, secret: str, agents: Agents, log: Log, started: Callable[[str], None]
) -> int:
    office = Office(agents, Keys(agents.base.data_dir), log)
    gate = Door(secret, os.geteuid(), local=place.local)
    app = routes(office, gate, open_store(agents.base), str(agents.base.root))
    _quiet(log)
    server = _Server(
        uvicorn.Config(
            app,
            http=Connection,
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
    received: list[signal.Signals] = []
    asked = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        asked.set()
        if len(received) > 1:
            office.desk.hurry()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop, number)
    sweeping = asyncio.create_task(office.chats.sweep())
    serving = asyncio.create_task(server.serve([listening]))
    url = _url(listening)
    log.say("started", f"listening on {url}", url=url)
    started(url)
    await asyncio.wait({serving, asyncio.ensure_future(asked.wait())}, return_when=asyncio.FIRST_COMPLETED)
    sweeping.cancel()
    if office.desk.running or office.desk.waiting:
        log.say("stopping", f"stopping: {office.desk.running} tasks run and {office.desk.waiting} wait")
    await office.stop(place.grace_s)
    server.should_exit = True
    await serving
    log.say("stopped", "stopped")
    return 128 + received[0] if received else 1


@contextlib.contextmanager
def _bound(place: Place) -> Iterator[socket.socket]:
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


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _quiet(log: Log) -> None:
    """Libraries say what went wrong, and nothing else."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [Bridge(log)]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
