"""Serves the page: its files and its API behind one guard, by itself for `ra open` or beside the API of `ra serve`."""

import asyncio
import contextlib
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ra.core.errors import RaError, UserError
from ra.server.access import AccessRules
from ra.server.daemon import HttpServer, ListenAddress, bound, url_of
from ra.server.task import Refusal
from ra.web.access import HEADERS, NOBODY, Visitors
from ra.web.api import SessionApi
from ra.web.sessions import ShownSessions

PREFIX = "/open"  # the page's path beside another API
SWITCH_S = 0.001  # a replay in one thread must not delay a text request in another
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by name, each with its media type."""
    folder = files("ra.web") / "page"
    return {
        file.name: (file.read_bytes(), MEDIA[suffix])
        for file in folder.iterdir()
        if (suffix := "." + file.name.rpartition(".")[2]) in MEDIA
    }


class SessionPage:
    """The page and its API as one application."""

    def __init__(self, sessions: ShownSessions) -> None:
        self._sessions = sessions
        self._files = page_files()
        self._app = Starlette(
            routes=[
                Route("/", self._index, methods=["GET"]),
                Route("/{name:str}", self._file, methods=["GET"]),
                *SessionApi(sessions).routes(),
            ],
            exception_handlers={
                Refusal: _refused,
                UserError: _missing_session,
                RaError: _failed,
                HTTPException: _no_route,
            },
        )
        self._app.router.redirect_slashes = False

    def alone(self, visitors: Visitors) -> ASGIApp:
        return _Guarded(self._app, visitors, prefix="")

    def beside(self, api: ASGIApp, access_rules: AccessRules) -> ASGIApp:
        """The page under PREFIX, the other API everywhere else."""
        inner = Starlette(routes=[Mount(PREFIX, self._app)])
        inner.router.redirect_slashes = False
        return _Beside(_Guarded(inner, Visitors(access_rules), prefix=PREFIX), api)

    def prepare(self) -> None:
        """Reads transcripts and prepares the newest session in the background, while the browser starts."""
        threading.Thread(target=self._sessions.prepare, daemon=True, name="sessions").start()

    async def _index(self, _: Request) -> Response:
        body, media = self._files["index.html"]
        return Response(body, media_type=media)

    async def _file(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        return Response(file[0], media_type=file[1])


class _Beside:
    def __init__(self, page: ASGIApp, api: ASGIApp) -> None:
        self._page, self._api = page, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = path == PREFIX or path.startswith(f"{PREFIX}/")
        await (self._page if is_page else self._api)(scope, receive, send)


class _Guarded:
    """Checks every request, also for unknown paths, and adds the headers to every response."""

    def __init__(self, app: ASGIApp, visitors: Visitors, *, prefix: str) -> None:
        self._app, self._visitors, self._prefix = app, visitors, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no other protocol is switched on"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                guard_headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *guard_headers]
            await send(message)

        await (self._answer(scope) or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """The response instead of the page: a refusal, a login or a redirect; None when the request may pass."""
        request = Request(scope)
        headers = {name.lower(): ", ".join(request.headers.getlist(name)) for name in request.headers}
        path, home = scope["path"], f"{self._prefix}/"
        token = request.query_params.get("token")
        try:
            if token is not None and path in (self._prefix, home):
                cookie = self._visitors.enter(token, headers, path=path)
                return RedirectResponse(home, 303, {"Set-Cookie": cookie})
            self._visitors.admit(headers, path=path, peer_uid=scope.get("state", {}).get("peer_uid"))
        except Refusal as refusal:
            return _refusal(refusal, page="/api/" not in path)
        return RedirectResponse(home, 308) if self._prefix and path == self._prefix else None


def open_page(sessions: ShownSessions, *, port: int, started: Callable[[str], None]) -> int:
    """Serves the page on the loopback until a signal arrives; passes the address with its token to `started`."""
    sys.setswitchinterval(SWITCH_S)
    one_time = secrets.token_urlsafe(24)
    visitors = Visitors(AccessRules(secrets.token_urlsafe(32), NOBODY), one_time=one_time)
    page = SessionPage(sessions)
    with bound(ListenAddress("127.0.0.1", port)) as listening:
        page.prepare()
        server = HttpServer(page.alone(visitors))
        return asyncio.run(_run(server, listening, f"{url_of(listening)}/?token={one_time}", started))


async def _run(server: HttpServer, listening: Any, address: str, started: Callable[[str], None]) -> int:
    received: list[signal.Signals] = []
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        server.should_exit = True
        server.force_exit = len(received) > 1

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop, number)
    started(address)
    with contextlib.suppress(asyncio.CancelledError):
        await server.serve([listening])
    # Ctrl-C is the normal end of this command; SIGTERM comes from outside and is reported in the exit code.
    return 0 if received[:1] == [signal.SIGINT] else 128 + received[0] if received else 1


def _refusal(refusal: Refusal, *, page: bool) -> Response:
    body = refusal.body
    return PlainTextResponse(f"{body['error']}\n", refusal.status) if page else JSONResponse(body, refusal.status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _refusal(error, page=False)


async def _missing_session(_: Request, error: Exception) -> Response:
    """The only UserError that a reader can cause: the session does not exist."""
    return JSONResponse({"error": str(error)}, 404)


async def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 500)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": f"There is no {request.method} {request.url.path[:200]} here."}, error.status_code)
