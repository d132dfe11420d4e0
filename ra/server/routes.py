"""The routes of the HTTP API."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, get_args

import msgspec
from msgspec import UNSET, UnsetType
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from ra.core.errors import RaError, StoreError, UserError
from ra.core.facts import Said
from ra.core.messages import Message, Text, ToolResult
from ra.core.model import TokenCounts
from ra.core.value import JsonObject, encode
from ra.server import access, completions, responses
from ra.server.access import AccessRules
from ra.server.bodies import (
    CallBody,
    HealthBody,
    MessageBody,
    RunBody,
    RunList,
    RunState,
    SessionBody,
    SessionList,
    SessionWithMessages,
)
from ra.server.executor import STORE_S
from ra.server.metrics import MEDIA
from ra.server.openapi import document
from ra.server.queue import TaskAnswer
from ra.server.task import MAX_BODY_BYTES, Refusal, read
from ra.server.tasks import RunFilter, Tasks
from ra.timeline.store import SessionInfo, Store

BODY_S = 30.0  # time to send a body
MAX_SESSIONS = 500
MAX_MESSAGES = 1000

ROUTES = (
    ("POST", "/task", "task"),
    ("POST", "/chat", "chat"),
    ("GET", "/sessions", "sessions"),
    ("GET", "/sessions/{id}", "session"),
    ("GET", "/runs", "runs"),
    ("GET", "/runs/{id}", "run"),
    ("DELETE", "/runs/{id}", "cancel"),
    ("GET", "/runs/{id}/events", "follow"),
    ("POST", "/v1/chat/completions", "completions"),
    ("GET", "/v1/models", "models"),
    ("GET", "/v1/models/{id}", "model"),
    ("GET", "/metrics", "metrics"),
    ("GET", "/healthz", "healthz"),
    ("GET", "/livez", "livez"),
    ("GET", "/openapi.json", "openapi"),
)

_STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_SESSION = re.compile(r"[0-9a-f]{4,32}")


def routes(tasks: Tasks, gate: AccessRules, store: Store, project: str) -> ASGIApp:
    async def task(request: Request) -> Response:
        return await _task(tasks, request, stream=False)

    async def chat(request: Request) -> Response:
        return await _task(tasks, request, stream=True)

    async def sessions(request: Request) -> Response:
        # In a thread: reading many sessions must not delay the tasks.
        infos = await asyncio.to_thread(store.sessions, project, _count(request, "limit", 50, MAX_SESSIONS))
        return _json(SessionList([_info(info) for info in infos]))

    async def session(request: Request) -> Response:
        limit = _count(request, "limit", 100, MAX_MESSAGES)
        return _json(await asyncio.to_thread(_session, store, request.path_params["id"], limit))

    async def runs(request: Request) -> Response:
        ask = request.query_params.get
        limit = _count(request, "limit", 50, MAX_SESSIONS)
        state = ask("state")
        if state is not None and state not in get_args(RunState):
            raise Refusal(400, f"state must be one of {', '.join(get_args(RunState))}.", field="state")
        return _json(RunList(await tasks.runs(RunFilter(state, ask("agent"), ask("chatId"), limit))))

    async def run(request: Request) -> Response:
        return _json(_need_run(await tasks.run(request.path_params["id"])))

    async def cancel(request: Request) -> Response:
        return _json(_need_run(await tasks.cancel(request.path_params["id"])))

    async def follow(request: Request) -> Response:
        last = request.headers.get("last-event-id", "0")
        if not (last.isascii() and last.isdigit() and len(last) < 10):
            raise Refusal(400, "Last-Event-ID must be the number of an event.")
        body = _need_run(await tasks.run(request.path_params["id"]))
        return StreamingResponse(tasks.follow(body.id, int(last)), media_type="text/event-stream", headers=_STREAM)

    async def completion(request: Request) -> Response:
        return await _completion(tasks, request)

    async def models(_: Request) -> Response:
        return _json(completions.models(tasks.agents.base.config.agents))

    async def model(request: Request) -> Response:
        return _json(completions.model(tasks.agents.base.config.agents, request.path_params["id"]))

    async def metrics(_: Request) -> Response:
        return Response(tasks.metrics.text(await tasks.load()), media_type=MEDIA)

    async def healthz(_: Request) -> Response:
        if tasks.stopping:
            return _json(HealthBody("stopping"), 503)
        if trouble := await tasks.trouble():
            return _json(HealthBody("unready", reason=trouble), 503)
        load = await tasks.load()
        return _json(HealthBody("ok", load.running, load.waiting))

    async def livez(_: Request) -> Response:
        return _json(HealthBody("ok"))

    async def openapi(_: Request) -> Response:
        return _json(document())

    handlers = {
        "task": task,
        "chat": chat,
        "sessions": sessions,
        "session": session,
        "runs": runs,
        "run": run,
        "cancel": cancel,
        "follow": follow,
        "completions": completion,
        "models": models,
        "model": model,
        "metrics": metrics,
        "healthz": healthz,
        "livez": livez,
        "openapi": openapi,
    }
    app = Starlette(
        routes=[Route(path, handlers[name], methods=[method]) for method, path, name in ROUTES],
        exception_handlers={
            Refusal: _refused,
            RaError: _failed,
            HTTPException: _no_route,
            ClientDisconnect: _gone,
        },
    )
    app.router.redirect_slashes = False
    return _Guarded(app, gate)


class _Guarded:
    """Checks the access before anything else, unknown paths included."""

    def __init__(self, app: ASGIApp, gate: AccessRules) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no other protocol is switched on"
        try:
            peer = scope.get("state", {}).get("peer_uid")
            access.admit(self._gate, _headers(scope), path=scope["path"], peer_uid=peer)
        except Refusal as refusal:
            await _refusal(refusal, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _task(tasks: Tasks, request: Request, *, stream: bool) -> Response:
    task = read(await _body(request))
    accepted = await tasks.take(task, request.headers.get("idempotency-key"))
    named = {"Run-Id": accepted.run} if accepted.run else {}
    if stream or task.stream:
        frames = tasks.follow(accepted.run, 0) if accepted.answer is None else _ended(accepted.answer)
        return StreamingResponse(frames, media_type="text/event-stream", headers=_STREAM | named)
    answer = accepted.answer or await _waited(tasks, accepted.run, request)
    return _json(answer.body, answer.status, _retry(answer.retry_after_s) | named)


async def _completion(tasks: Tasks, request: Request) -> Response:
    completion = completions.read(await _body(request))
    accepted = await tasks.take(completion.task, request.headers.get("idempotency-key"))
    named = {"Run-Id": accepted.run} if accepted.run else {}
    if completion.stream:
        frames = tasks.follow(accepted.run, 0) if accepted.answer is None else _ended(accepted.answer)
        chunks = completions.chunks(completion, accepted.run, frames)
        return StreamingResponse(chunks, media_type="text/event-stream", headers=_STREAM | named)
    answer = accepted.answer or await _waited(tasks, accepted.run, request)
    return _json(completions.completion(completion, accepted.run, answer), headers=named)


def _need_run(body: RunBody | None) -> RunBody:
    if body is None:
        raise Refusal(404, "There is no such run; those that ended are forgotten after a while.")
    return body


async def _body(request: Request) -> bytes:
    access.need_json(_headers(request.scope), limit_bytes=MAX_BODY_BYTES)
    read_so_far = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                read_so_far += piece
                if len(read_so_far) > MAX_BODY_BYTES:
                    raise access.too_large(MAX_BODY_BYTES)
    except TimeoutError as error:
        raise Refusal(408, f"The body did not arrive within {BODY_S:g} s.") from error
    return bytes(read_so_far)


async def _waited(tasks: Tasks, run: str, request: Request) -> TaskAnswer:
    """The run's answer. If the client disconnects, the run goes on without it."""
    answering = asyncio.create_task(tasks.answer(run))
    disconnect = asyncio.create_task(_disconnect(request.receive))
    try:
        await asyncio.wait({answering, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnect.cancel()
        if not answering.done():
            answering.cancel()
    if not answering.done() or answering.cancelled():
        raise ClientDisconnect
    return answering.result()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(answer: TaskAnswer) -> AsyncIterator[bytes]:
    yield responses.last_frames(answer, heard=False)


def _session(store: Store, session: str, limit: int) -> SessionWithMessages:
    if not _SESSION.fullmatch(session):
        raise Refusal(404, "There is no such session.")
    try:
        info = store.info(session)
    except UserError as error:
        raise Refusal(404, str(error)) from error
    messages = [
        MessageBody(event.at, event.time, *_shown(event.fact.message))
        for event in store.open(info.id, write=False).events()
        if isinstance(event.fact, Said)
    ]
    return SessionWithMessages(**msgspec.structs.asdict(_info(info)), messages=messages[-limit:])


def _shown(message: Message) -> tuple[str, str, list[CallBody] | UnsetType]:
    calls = [CallBody(call.id, call.name, call.args) for call in message.calls]
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    text = " ".join(block.text for result in results for block in result.content if isinstance(block, Text))
    return message.role, message.text or text, calls or UNSET


def _info(info: SessionInfo) -> SessionBody:
    return SessionBody(
        id=info.id,
        agent=info.agent,
        channel=info.channel,
        chat_id=info.chat_id,
        title=info.title,
        model=info.model,
        created=info.created,
        updated=info.updated,
        events=info.events,
        usage=TokenCounts.of(info.tokens),
        cost=None if info.dollars is None else float(info.dollars),
    )


def _count(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
        raise Refusal(400, f"{name} must be a number from 1 to {most}.", field=name)
    return int(text)


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """Header names in lower case. A repeated header is joined, and so matches no expected value."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _json(body: JsonObject | msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(body), status, {"Cache-Control": "no-store"} | dict(headers or {}), "application/json")


def _retry(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _refusal(refusal: Refusal, path: str) -> Response:
    extra = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    # The unread rest of a body must not be parsed as the next request.
    headers = {"Connection": "close"} | refusal.headers | extra
    return _json(_error_body(refusal, path), refusal.status, headers)


def _error_body(refusal: Refusal, path: str) -> JsonObject | msgspec.Struct:
    """Under /v1 in the form of OpenAI's errors."""
    return completions.error_body(refusal) if path.startswith("/v1/") else refusal.body


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _refusal(error, request.scope["path"])


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, StoreError):  # may be temporary
        return _refusal(Refusal(503, str(error), retry_after_s=STORE_S), request.scope["path"])
    return _json(_error_body(Refusal(500, str(error)), request.scope["path"]), 500)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    route = f"{request.method} {request.url.path}"
    message = f"There is no {route[:200]} here; GET /openapi.json describes what there is."
    headers = dict(error.headers or {})
    if error.status_code == 405:  # Starlette names the methods of the first matching route only
        headers["Allow"] = ", ".join(_methods(request.url.path))
    refusal = Refusal(error.status_code, message if error.status_code in (404, 405) else error.detail)
    return _json(_error_body(refusal, request.scope["path"]), error.status_code, headers)


def _methods(path: str) -> list[str]:
    """All methods that a path supports."""
    methods = [method for method, known, _ in ROUTES if compile_path(known)[0].match(path)]
    return [*methods, *(["HEAD"] if "GET" in methods else [])]


async def _gone(_: Request, error: Exception) -> Response:
    """The client has disconnected: nobody reads this."""
    return Response(status_code=499)
