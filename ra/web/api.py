"""The JSON API of the page: its endpoints, their parameters and their OpenAPI document."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ra.core.errors import UserError
from ra.core.value import encode
from ra.core.version import __version__
from ra.server.task import Refusal
from ra.web import texts, whatif
from ra.web.sessions import ShownSessions
from ra.web.values import (
    Choices,
    CostFindings,
    NextRequest,
    Overview,
    PieceText,
    SearchHits,
    SessionOverview,
    Shown,
    WhatIf,
)

LOOK_S = 0.4  # between checks of a session that is followed
PING_S = 15.0
LONGEST_PHRASE = 500
_ID = re.compile(r"[0-9a-f]{4,32}")
_NUMBER = re.compile(r"[0-9]{1,12}")


class ApiPath(NamedTuple):
    """A path of the API, for its route and its OpenAPI description."""

    path: str
    name: str
    summary: str
    answer: type[Shown] | None  # None: server-sent events
    parameters: tuple[str, ...] = ()


ENDPOINTS = (
    ApiPath("/api/sessions", "listing", "The sessions, newest first, and totals by day", SessionOverview),
    ApiPath("/api/choices", "choices", "Strategies and models for a what-if", Choices),
    ApiPath("/api/sessions/{id}", "session", "A session without its texts", Overview),
    ApiPath(
        "/api/sessions/{id}/findings", "findings", "Spending by source, tool and model; avoidable costs", CostFindings
    ),
    ApiPath(
        "/api/sessions/{id}/next", "next", "The next request, as `ra context` shows it; null for files", NextRequest
    ),
    ApiPath("/api/sessions/{id}/pieces/{number}", "piece", "A piece's text, by pages", PieceText, ("part", "start")),
    ApiPath("/api/sessions/{id}/search", "search", "The pieces that contain a phrase", SearchHits, ("q",)),
    ApiPath(
        "/api/sessions/{id}/what-if",
        "what_if",
        "The session replayed under other conditions, as `ra bench context` does",
        WhatIf,
        ("strategies", "model", "window", "lifetime"),
    ),
    ApiPath("/api/sessions/{id}/changes", "changes", "An event whenever the session grows", None),
)

ApiHandler = Callable[[Request], Awaitable[Response]]


class SessionApi:
    """The endpoints for the shown sessions. Everything that computes runs in a thread."""

    def __init__(self, sessions: ShownSessions) -> None:
        self._sessions = sessions

    def routes(self) -> list[Route]:
        handlers: dict[str, ApiHandler] = {
            "listing": self.listing,
            "choices": self.choices,
            "session": self.session,
            "findings": self.findings,
            "next": self.next,
            "piece": self.piece,
            "search": self.search,
            "what_if": self.what_if,
            "changes": self.changes,
        }
        described = Route("/api/openapi.json", _describe, methods=["GET"])
        return [*(Route(each.path, handlers[each.name], methods=["GET"]) for each in ENDPOINTS), described]

    async def listing(self, _: Request) -> Response:
        return _json(await asyncio.to_thread(self._sessions.catalog))

    async def choices(self, _: Request) -> Response:
        return _json(await asyncio.to_thread(self._sessions.choices))

    async def session(self, request: Request) -> Response:
        # Also encoded in the thread: a long session is megabytes.
        return await asyncio.to_thread(self._overview, _id(request))

    def _overview(self, id: str) -> Response:
        return _json(self._sessions.recording(id).session())

    async def findings(self, request: Request) -> Response:
        return _json(await asyncio.to_thread(self._sessions.findings, _id(request)))

    async def next(self, request: Request) -> Response:
        return _json(await self._sessions.next_request(_id(request)))

    async def piece(self, request: Request) -> Response:
        number, part, start = (_count(request, name) for name in ("number", "part", "start"))
        return await asyncio.to_thread(self._piece, _id(request), number or 0, part, start or 0)

    def _piece(self, id: str, number: int, part: int | None, start: int) -> Response:
        contents = self._sessions.recording(id).requests.contents
        if number >= len(contents):
            raise Refusal(404, "This piece does not exist.")
        return _json(texts.piece_text(contents[number], start=start, part=part))

    async def search(self, request: Request) -> Response:
        phrase = request.query_params.get("q", "")
        if not phrase.strip() or len(phrase) > LONGEST_PHRASE:
            raise Refusal(400, f"q must be a phrase of 1 to {LONGEST_PHRASE} characters.", field="q")
        recording = await asyncio.to_thread(self._sessions.recording, _id(request))
        return _json(await asyncio.to_thread(texts.search, recording.requests.contents, phrase))

    async def what_if(self, request: Request) -> Response:
        try:
            query = whatif.conditions_of(dict(request.query_params))
        except UserError as error:
            raise Refusal(400, str(error)) from error
        return _json(await asyncio.to_thread(self._replayed, _id(request), query))

    def _replayed(self, id: str, query: whatif.WhatIfQuery) -> WhatIf:
        self._sessions.recording(id)  # an unknown session is a 404; later errors are the query's
        try:
            return self._sessions.what_if(id, query)
        except UserError as error:
            raise Refusal(400, str(error)) from error

    async def changes(self, request: Request) -> Response:
        id = _id(request)
        version = await asyncio.to_thread(self._sessions.version, id)
        return StreamingResponse(self._follow(id, version), media_type="text/event-stream")

    async def _follow(self, id: str, version: int) -> AsyncIterator[bytes]:
        silent_s = 0.0
        yield b": following\n\n"
        while True:
            await asyncio.sleep(LOOK_S)
            silent_s += LOOK_S
            try:
                latest = await asyncio.to_thread(self._sessions.version, id)
            except UserError:  # the session was removed
                yield b"event: gone\ndata: {}\n\n"
                return
            if latest != version:
                version, silent_s = latest, 0.0
                yield b'event: grown\ndata: {"version":"%d"}\n\n' % version
            elif silent_s >= PING_S:
                silent_s = 0.0
                yield b": nothing new\n\n"


def _id(request: Request) -> str:
    id: str = request.path_params["id"]
    if not _ID.fullmatch(id):
        raise Refusal(404, "This session does not exist.")
    return id


def _count(request: Request, name: str) -> int | None:
    text = request.path_params.get(name) or request.query_params.get(name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise Refusal(400, f"{name} must be a number.", field=name)
    return int(text)


def _json(body: Shown | None) -> Response:
    return Response(encode(body), media_type="application/json")


async def _describe(_: Request) -> Response:
    return JSONResponse(document())


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document, from the types of the answers."""
    answers = [each.answer for each in ENDPOINTS if each.answer]
    schemas, components = msgspec.json.schema_components(answers, ref_template="#/components/schemas/{name}")
    by_answer = dict(zip(answers, schemas, strict=True))
    paths = {}
    for each in ENDPOINTS:
        media, schema = (
            ("application/json", by_answer[each.answer]) if each.answer else ("text/event-stream", {"type": "string"})
        )
        in_path = [{"name": name, "in": "path", "required": True} for name in re.findall(r"{(\w+)}", each.path)]
        in_query = [{"name": name, "in": "query"} for name in each.parameters]
        parameters = [parameter | {"schema": {"type": "string"}} for parameter in (*in_path, *in_query)]
        paths[each.path] = {
            "get": {
                "operationId": each.name,
                "summary": each.summary,
                "parameters": parameters,
                "responses": {
                    "200": {"description": "The answer", "content": {media: {"schema": schema}}},
                    "400": {"description": "A parameter is invalid; the error names it"},
                    "403": {"description": "No token, or a foreign Host, Origin or site"},
                    "404": {"description": "No such session or piece"},
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "ra open", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
