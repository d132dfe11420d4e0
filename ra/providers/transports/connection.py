"""Implements a connection to a server: an h11 state on an asyncio stream, kept alive between calls."""

import asyncio
import socket
import ssl  # no cost: asyncio has loaded it
from collections.abc import Callable

import h11

from ra.core.errors import BadStream, ProviderError, Unavailable
from ra.providers.transports.route import CERTIFICATES, Destination, Proxy

CONNECT_TIMEOUT_S = 15.0
_CHUNK = 64 * 1024
_HAPPY_EYEBALLS_S = 0.25


class Dropped(Unavailable):
    """The server closed a reused connection before it answered: a new connection may work."""


class Connection:
    """One connection to one server. It belongs to the event loop that opened it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader = reader
        self._writer = writer
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._state = h11.Connection(h11.CLIENT)
        self._calls = 0
        self._heard = False  # whether a byte of this call's answer has arrived
        self._answered = False  # whether its status and headers have arrived

    @property
    def usable(self) -> bool:
        """Whether another call may use this connection."""
        here = self._loop is asyncio.get_running_loop()
        return here and not self._writer.is_closing() and not self._reader.at_eof()

    def send(self, head: h11.Request, body: bytes) -> None:
        """Sends one request without waiting for a large body to leave: an early refusal can be read meanwhile."""
        self._heard = self._answered = False
        self._calls += 1
        parts = (self._state.send(head), self._state.send(h11.Data(data=body)), self._state.send(h11.EndOfMessage()))
        self._writer.writelines(part for part in parts if part)

    async def response(self, timeout_s: float) -> h11.Response:
        """Waits for the head of the answer. Raises Unavailable, or Dropped for a reused connection."""
        while True:
            event = await self.receive(timeout_s)
            if isinstance(event, h11.Response):
                self._answered = True
                return event
            assert isinstance(event, h11.InformationalResponse)  # h11 accepts nothing else before an answer

    async def receive(self, timeout_s: float) -> h11.Event:
        """The server's next event. Raises Unavailable before the head of the answer, BadStream after it."""
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(timeout_s):
                    chunk = await self._reader.read(_CHUNK)
                self._heard = self._heard or bool(chunk)
                self._state.receive_data(chunk)
        except TimeoutError as error:
            raise self._failed(f"sent nothing for {timeout_s:g} s") from error
        except OSError as error:
            raise self._lost(f"broke the connection ({error})") from error
        except h11.RemoteProtocolError as error:
            if not self._reader.at_eof():
                raise self._failed(f"sent invalid HTTP ({error})") from error
            raise self._lost(f"closed the connection {'inside its' if self._heard else 'without an'} answer") from error
        assert not isinstance(event, type)  # h11.PAUSED occurs only in servers
        return event

    def renew(self) -> bool:
        """Prepares for the next call. False if this one did not end properly."""
        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
            return True
        return False

    def abort(self) -> None:
        """Closes the socket immediately, whatever is in progress."""
        if not self._loop.is_closed():
            self._writer.transport.abort()

    def _lost(self, what: str) -> ProviderError:
        if self._calls > 1 and not self._heard:
            return Dropped(f"{self._name} {what}.")
        return self._failed(what)

    def _failed(self, what: str) -> ProviderError:
        return BadStream(f"{self._name} {what}.") if self._answered else Unavailable(f"{self._name} {what}.")


LOOPBACK = ("127.0.0.1", "::1", "localhost")


async def connect(server: Destination, proxy: Proxy | None, trust: Callable[[], ssl.SSLContext]) -> Connection:
    """Opens a connection, through the proxy if there is one.

    Raises Unavailable, or ProviderError if a retry would fail in the same way.
    """
    way = f"proxy {proxy.host}:{proxy.port}" if proxy else server.origin
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await _open(server, proxy, trust)
    except TimeoutError as error:
        raise Unavailable(f"No connection to {way} within {CONNECT_TIMEOUT_S:g} s.") from error
    except ssl.SSLCertVerificationError as error:
        raise ProviderError(
            f"The certificate of {server.origin} is not trusted: {error.verify_message}. {CERTIFICATES}"
        ) from error
    except socket.gaierror as error:
        raise Unavailable(f"The host {way} cannot be found ({error.strerror}).") from error
    except OSError as error:
        if proxy is None and isinstance(error, ConnectionRefusedError) and server.host in LOOPBACK:
            # A local server that is not running will not start by itself.
            raise Unavailable(f"Nothing listens at {server.origin}. Is the server running?", tries=2) from error
        raise Unavailable(f"No connection to {way}: {error.strerror or error}.") from error
    return Connection(reader, writer, server.origin)


async def _open(
    server: Destination, proxy: Proxy | None, trust: Callable[[], ssl.SSLContext]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = (proxy.host, proxy.port) if proxy else (server.host, server.port)
    opening = asyncio.open_connection(host, port, happy_eyeballs_delay=_HAPPY_EYEBALLS_S)
    if not server.secure:
        return await opening
    # Reading the system's certificates takes 20 ms, as long as a round trip: both run at once.
    (reader, writer), context = await asyncio.gather(opening, asyncio.to_thread(trust))
    try:
        if proxy:
            await _tunnel(reader, writer, server, proxy)
        await writer.start_tls(context, server_hostname=server.host)
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Destination, proxy: Proxy
) -> None:
    """Asks the proxy for a tunnel to the server."""
    state = h11.Connection(h11.CLIENT)
    target = f"{server.host}:{server.port}"
    headers = [("Host", target), *([("Proxy-Authorization", proxy.authorization)] if proxy.authorization else [])]
    writer.write(state.send(h11.Request(method="CONNECT", target=target, headers=headers)) or b"")
    writer.write(state.send(h11.EndOfMessage()) or b"")
    name = f"proxy {proxy.host}:{proxy.port}"
    try:
        while not isinstance(event := state.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                state.receive_data(await reader.read(_CHUNK))
            elif not isinstance(event, h11.InformationalResponse):
                raise Unavailable(f"The {name} closed the connection.")
    except h11.RemoteProtocolError as error:
        raise Unavailable(f"The {name} did not answer in HTTP ({error}).") from error
    if event.status_code == 407:
        raise ProviderError(f"The {name} wants a user and password: http://user:password@{proxy.host}:{proxy.port}.")
    if not 200 <= event.status_code < 300:
        raise Unavailable(f"The {name} refused the connection to {target} with {event.status_code}.")
