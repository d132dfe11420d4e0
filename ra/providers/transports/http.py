"""Carries requests with our own HTTP/1.1 client: h11 on asyncio streams."""

import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache
from urllib.parse import quote

import h11

from ra.core.errors import BadStream, ProviderError, UserError
from ra.core.model import Request
from ra.core.value import JsonObject, encode
from ra.core.version import __version__
from ra.providers.errors import failure
from ra.providers.transports import route, sse
from ra.providers.transports.connection import Connection, Dropped, connect
from ra.providers.vendors import BY_NAME
from ra.providers.wire import SENT, Dialect

MAX_ERROR_BYTES = 64 * 1024
MAX_JSON_BYTES = 32 * 1024 * 1024
TAIL_S = 0.25
"""How long a body may take to end after its last event; otherwise the connection is closed, not reused."""
ERROR_BODY_S = 10.0


class HttpTransport:
    """Posts a body and reads events. The next call reuses the connection; the server may drop it meanwhile.

    `timeout_s` is how long a server may stay silent, before its answer and during it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 600,
        env: Mapping[str, str] | None = None,
        trust: Callable[[], ssl.SSLContext] = route.trust,
    ) -> None:
        self._server = route.server(base_url)
        self._proxy = route.proxy(self._server, env or {})
        self._trust = cache(trust)
        self._api_key = api_key
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._timeout_s = timeout_s
        self._kept: list[Connection] = []

    async def events(self, dialect: Dialect, request: Request, body: JsonObject) -> AsyncGenerator[JsonObject, None]:
        path = join(self._server.path, dialect.path(request), complete=BY_NAME[dialect.name].complete)
        payload = encode(body)
        head = self._head(path, {**dialect.headers(self._api_key), **self._headers}, len(payload))
        while True:
            connection = await self._connection()
            try:
                connection.send(head, payload)
                yield SENT
                response = await connection.response(self._timeout_s)
                if not 200 <= response.status_code < 300:
                    raise await self._refusal(connection, response, path, dialect.name)
                async with aclosing(self._read(connection, response)) as events:
                    async for event in events:
                        yield event
                return
            except Dropped:
                continue
            finally:
                # Also if the caller was cancelled or stopped reading: then the answer is incomplete.
                if connection.renew():
                    self._kept.append(connection)
                else:
                    connection.abort()

    async def close(self) -> None:
        for connection in self._kept:
            connection.abort()
        self._kept.clear()

    def _head(self, path: str, headers: Mapping[str, str], size: int) -> h11.Request:
        merged = {
            "host": self._server.origin,
            "user-agent": f"ra/{__version__}",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": str(size),
            **{name.lower(): value for name, value in headers.items()},
        }
        target = path
        if self._proxy and not self._server.secure:
            target = f"http://{self._server.origin}{path}"
            if self._proxy.authorization:
                merged["proxy-authorization"] = self._proxy.authorization
        try:
            return h11.Request(method="POST", target=target, headers=list(merged.items()))
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            # The value may be the key, so the message does not show it.
            raise UserError(
                "The API key or a header holds characters that HTTP does not allow; copy it again."
            ) from error

    async def _connection(self) -> Connection:
        """A reused connection or, if the server has dropped them all, a new one."""
        while self._kept:
            connection = self._kept.pop()
            if connection.usable:
                return connection
            connection.abort()
        return await connect(self._server, self._proxy, self._trust)

    async def _refusal(self, connection: Connection, response: h11.Response, path: str, provider: str) -> ProviderError:
        status = response.status_code
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
        url = f"{'https' if self._server.secure else 'http'}://{self._server.origin}{path}"
        if 300 <= status < 400:
            return ProviderError(
                f"{url} answers {status} and points to {headers.get('location', 'nowhere')}. Redirects are not "
                "followed, because the API key would travel with them; set the base URL to the right place.",
                status=status,
            )
        try:
            body = await _body(connection, MAX_ERROR_BYTES, min(self._timeout_s, ERROR_BODY_S))
        except BadStream:
            body = b""  # the status must suffice
        error = failure(status, headers, body, provider=provider)
        if status in (404, 405) and type(error) is ProviderError:
            return ProviderError(f"{error} ({url})", status=status)  # usually the base URL is wrong
        return error

    async def _read(self, connection: Connection, response: h11.Response) -> AsyncGenerator[JsonObject, None]:
        kind = next((value.decode("latin-1") for name, value in response.headers if name == b"content-type"), "")
        if "json" in kind:  # an answer, or an error, without streaming
            document = sse.decode(await _body(connection, MAX_JSON_BYTES, self._timeout_s))
            for part in document if isinstance(document, list) else [document]:
                if isinstance(part, dict):
                    yield part
            return
        if "html" in kind:
            raise ProviderError(f"{self._server.origin} answered with a web page; is the base URL right?")
        reader = sse.EventReader()
        while isinstance(event := await connection.receive(self._timeout_s), h11.Data):
            for data in reader.feed(bytes(event.data)):
                if data.startswith(sse.DONE):
                    await _skip_tail(connection)
                    return
                yield sse.event(data)
        for data in reader.finish():
            if not data.startswith(sse.DONE):
                yield sse.event(data)


def join(prefix: str, path: str, *, complete: bool) -> str:
    """The path of a call below a base URL, by the conventions of the vendors' own clients.

    OPENAI_BASE_URL is `complete`: any path in it (`/v1`, `/api/paas/v4`) replaces our `/v1`.
    The others end before the version, which is not repeated if the user included it.
    """
    version, _, path_behind = path.removeprefix("/").partition("/")
    if version.startswith("v1") and (prefix.endswith(f"/{version}") or (complete and prefix)):
        path = f"/{path_behind}"
    return quote(prefix + path, safe="/?&=:%@!$'()*+,;~")


async def _body(connection: Connection, limit: int, timeout_s: float) -> bytes:
    """The body up to a limit. The rest stays unread, and the connection is not reused."""
    parts: list[bytes] = []
    size = 0
    while size < limit and isinstance(event := await connection.receive(timeout_s), h11.Data):
        parts.append(bytes(event.data))
        size += len(event.data)
    return b"".join(parts)[:limit]


async def _skip_tail(connection: Connection) -> None:
    try:
        while isinstance(await connection.receive(TAIL_S), h11.Data):
            pass
    except BadStream:
        pass  # the answer is complete; the connection is closed, not reused
