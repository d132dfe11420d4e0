"""Fetches a page. The address is checked after name resolution, on every redirect, and then pinned.

The connection goes to the checked address, so that a name which resolves differently later gains nothing.
Time, bytes on the wire and bytes after decompression are limited.
"""

import asyncio
import ipaddress
import socket
import ssl
import threading
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

import h11

from ra.resolvers.addresses import Address, is_public, parse_literal
from ra.resolvers.pages import FetchedPage, FetchFailed

MAX_BYTES = 5_000_000
TIMEOUT_S = 15.0
MAX_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
AllowAddress = Callable[[Address, int], bool]
"""Whether this address and port may be connected to."""


def only_public(address: Address, port: int) -> bool:
    return is_public(address)


async def fetch(
    url: str,
    *,
    resolve: Resolve | None = None,
    allow: AllowAddress = only_public,
    tls: ssl.SSLContext | None = None,
    timeout_s: float = TIMEOUT_S,
    max_bytes: int = MAX_BYTES,
) -> FetchedPage:
    """Fetches a page with GET. Raises FetchFailed."""
    try:
        async with asyncio.timeout(timeout_s):
            for _ in range(MAX_HOPS + 1):
                page = await _get(url, resolve or look_up, allow, tls, max_bytes)
                if isinstance(page, FetchedPage):
                    return page
                url = page
            raise FetchFailed(f"more than {MAX_HOPS} redirects")
    except FetchFailed:
        raise
    except TimeoutError as error:
        raise FetchFailed(f"took longer than {timeout_s:g} s") from error
    except ssl.SSLError as error:
        raise FetchFailed(f"no secure connection: {error.reason or error}") from error
    except OSError as error:
        raise FetchFailed(f"no connection: {error.strerror or error}") from error
    except h11.RemoteProtocolError as error:
        raise FetchFailed(f"the server does not speak HTTP: {error}") from error


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, asked in a daemon thread: a hanging DNS must not keep the program from ending."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(outcome: list[str] | OSError) -> None:
        if answer.done():
            return
        if isinstance(outcome, OSError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    def ask() -> None:
        outcome: list[str] | OSError
        try:
            outcome = [str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except OSError as error:
            outcome = error
        except UnicodeError:
            outcome = OSError(f"{host!r} is not a host name")
        with suppress(RuntimeError):  # the loop is closed: no one is waiting any more
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=ask, name="ra-dns", daemon=True).start()
    return await answer


async def _get(
    url: str, resolve: Resolve, allow: AllowAddress, tls: ssl.SSLContext | None, max_bytes: int
) -> FetchedPage | str:
    """One hop: the page, or the URL of a redirect."""
    scheme, host, port, target = _parse(url)
    addresses = await _allowed_addresses(host, port, resolve, allow)
    context = None
    if scheme == "https":
        context = tls or ssl.create_default_context()
    reader, writer = await _connect(addresses, port, host, context)
    try:
        connection = h11.Connection(our_role=h11.CLIENT)
        default = 443 if scheme == "https" else 80
        host_header = f"[{host}]" if ":" in host else host
        headers = [
            ("Host", host_header if port == default else f"{host_header}:{port}"),
            ("User-Agent", "ra"),
            ("Accept", "text/html, text/*, application/json, application/pdf, image/*, */*;q=0.1"),
            ("Accept-Encoding", "gzip"),
            ("Connection", "close"),
        ]
        writer.write(connection.send(h11.Request(method="GET", target=target, headers=headers)) or b"")
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        response = await _response(connection, reader)
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status_code in _REDIRECTS and "location" in fields:
            return urljoin(url, fields["location"].strip())
        body, cut = await _body(connection, reader, fields.get("content-encoding", ""), max_bytes)
    finally:
        writer.transport.abort()  # we need nothing more, and do not wait for a peer that does not answer
    media, _, parameters = fields.get("content-type", "").partition(";")
    charset = parameters.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    return FetchedPage(url, response.status_code, media.strip().lower(), charset, body, cut)


def _parse(url: str) -> tuple[str, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise FetchFailed(f"not a valid URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise FetchFailed(f"{parts.scheme or 'no scheme'}: only http and https are fetched")
    if parts.username is not None or parts.password is not None:
        raise FetchFailed("a URL with a name or password in it is not fetched")
    if not parts.hostname:
        raise FetchFailed("the URL names no host")
    host = parts.hostname
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError as error:
            raise FetchFailed(f"{host!r} is not a host name") from error
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = "".join(char if "!" <= char <= "~" else "".join(f"%{b:02X}" for b in _utf8(char)) for char in target)
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80), target


def _utf8(char: str) -> bytes:
    return char.encode("utf-8", "replace")


async def _allowed_addresses(host: str, port: int, resolve: Resolve, allow: AllowAddress) -> list[str]:
    """The addresses of a host. Raises FetchFailed if any is not allowed: a rebinding may mix both kinds."""
    address = parse_literal(host)
    addresses = [str(address)] if address is not None else list(dict.fromkeys(await resolve(host, port)))
    if not addresses:
        raise FetchFailed(f"{host} has no address")
    for text in addresses:
        if not allow(ipaddress.ip_address(text), port):
            where = f"{host} ({text})" if address is None or text != host else host
            raise FetchFailed(f"{where} is not on the public internet; private addresses are not fetched")
    return addresses


async def _connect(
    addresses: Sequence[str], port: int, host: str, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to the first checked address that answers. The name is only for TLS and is not resolved again."""
    failure: OSError | None = None
    for address in addresses[:4]:
        try:
            return await asyncio.open_connection(address, port, ssl=tls, server_hostname=host if tls else None)
        except ssl.SSLError:
            raise
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


async def _response(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Response):
            return event
        elif isinstance(event, h11.ConnectionClosed):
            raise FetchFailed("the server closed the connection")


async def _body(
    connection: h11.Connection, reader: asyncio.StreamReader, encoding: str, max_bytes: int
) -> tuple[bytes, bool]:
    """The body, and whether it was cut at `max_bytes`, before or after decompression."""
    decompress = _decompressor(encoding)
    body = bytearray()
    received = 0
    while len(body) <= max_bytes and received <= max_bytes:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Data):
            received += len(event.data)
            body += decompress(bytes(event.data), max_bytes + 1 - len(body))
        else:
            return bytes(body), False
    return bytes(body[:max_bytes]), True


def _decompressor(encoding: str) -> Callable[[bytes, int], bytes]:
    match encoding.strip().lower():
        case "" | "identity":
            return lambda data, room: data[:room]
        case "gzip" | "x-gzip" | "deflate":
            decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # 32: detects gzip or zlib
        case other:
            raise FetchFailed(f"the server compressed the page with {other!r}, which ra did not ask for")

    def inflate(data: bytes, room: int) -> bytes:
        try:
            return decompressor.decompress(data, room)
        except zlib.error as error:
            raise FetchFailed(f"the page cannot be decompressed: {error}") from error

    return inflate
