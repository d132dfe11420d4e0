"""What can be asked over HTTP? The routes, each a few lines, behind one door."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ra.core.errors import RaError, UserError
from ra.core.events import Event
from ra.core.facts import Said
from ra.core.messages import Message, Text, ToolResult
from ra.core.value import JsonObject, encode
from ra.server import door, told
from ra.server.desk import Answer, Job
from ra.server.door import Door
from ra.server.office import Office
from ra.server.openapi import document
from ra.server.task import MAX_BODY_BYTES, Refusal, read
from ra.timeline.store import SessionInfo, Store

BODY_S = 30.0  # to send a body
PING_S = 15.0  # between signs of life on a silent stream
MAX_SESSIONS = 500
MAX_MESSAGES = 1000

_SESSION = re.compile(r"[0-9a-f]{4,32}")


def routes(office: Office, gate: Door, store: Store, project: str) -> ASGIApp:
    async def task(request: Request) -> Response:
        return await _task(office, request, stream=False)

    async def chat(request: Request) -> Response:
        return await _task(office, request, stream=True)

    async def sessions(request: Request) -> Response:
        # In a thread: reading many sessions must not hold up the tasks.
        found = await asyncio.to_thread(store.sessions, project, _count(request, "limit", 50, MAX_SESSIONS))
        return _json({"sessions": [_info(info) for info in found]})

    async def session(request: Request) -> Response:
        limit = _count(request, "limit", 100, MAX_MESSAGES)
        return _json(await asyncio.to_thread(_session, store, request.path_params["id"], limit))

    async def healthz(_: Request) -> Response:
        if office.desk.stopping:
            return _json({"status": "stopping"}, 503)
        return _json({"status": "ok", "running": office.desk.running, "waiting": office.desk.waiting})

    async def openapi(_: Request) -> Response:
        return _json(document())

    app = Starlette(
        routes=[
            Route("/task", task, methods=["POST"]),
            Route("/chat", chat, methods=["POST"]),
            Route("/sessions", sessions, methods=["GET"]),
            Route("/sessions/{id}", session, methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
            Route("/openapi.json", openapi, methods=["GET"]),
        ],
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
    """The door stands before everything else, the unknown path included."""

    def __init__(self, app: ASGIApp, gate: Door) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no other protocol is switched on"
        try:
            peer = scope.get("state", {}).get("peer_uid")
            door.admit(self._gate, _headers(scope), path=scope["path"], peer_uid=peer)
        except Refusal as refusal:
            await _refusal(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _task(office: Office, request: Request, *, stream: bool) -> Response:
    task = read(await _body(request))
    taken = office.take(task, request.headers.get("idempotency-key"))
    if stream or task.stream:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_heard(taken), media_type="text/event-stream", headers=headers)
    if isinstance(taken, Job):
        taken = await _waited(taken, request)
    return _json(taken.body, taken.status, _retry(taken.retry_after_s))


async def _body(request: Request) -> bytes:
    door.need_json(_headers(request.scope), limit_bytes=MAX_BODY_BYTES)
    read_so_far = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                read_so_far += piece
                if len(read_so_far) > MAX_BODY_BYTES:
                    raise door.too_large(MAX_BODY_BYTES)
    except TimeoutError as error:
        raise Refusal(408, f"The body did not arrive within {BODY_S:g} s.") from error
    return bytes(read_so_far)


async def _waited(job: Job, request: Request) -> Answer:
    """The job's answer. When the client goes away the job goes on, and nobody waits."""
    job.clients += 1
    gone = asyncio.create_task(_disconnect(request.receive))
    ends: set[asyncio.Future[Any]] = {job.done, gone}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        job.clients -= 1
        gone.cancel()
    if not job.done.done():
        raise ClientDisconnect
    return job.done.result()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _heard(taken: Job | Answer) -> AsyncIterator[bytes]:
    """Listens from now on, before the job can begin. Who comes later than that hears the answer as a whole."""
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    if isinstance(taken, Answer):
        return _whole(taken)
    late = taken.begun
    stop_listening = (lambda: None) if late else taken.listen(queue.put_nowait)
    taken.done.add_done_callback(lambda _: queue.put_nowait(None))
    return _stream(taken, queue, stop_listening, late=late)


async def _whole(answer: Answer) -> AsyncIterator[bytes]:
    yield told.last_frames(answer, heard=False)


async def _stream(
    job: Job, queue: "asyncio.Queue[Event | None]", stop_listening: Callable[[], None], *, late: bool
) -> AsyncIterator[bytes]:
    job.clients += 1
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), PING_S)
            except TimeoutError:
                yield b": working\n\n"
                continue
            if event is None:
                break
            if frames := told.frames(event):
                yield frames
        yield told.last_frames(job.done.result(), heard=not late)
    finally:
        job.clients -= 1
        stop_listening()


def _session(store: Store, session: str, limit: int) -> JsonObject:
    if not _SESSION.fullmatch(session):
        raise Refusal(404, "There is no such session.")
    try:
        info = store.info(session)
    except UserError as error:
        raise Refusal(404, str(error)) from error
    said = [event for event in store.open(info.id, write=False).events() if isinstance(event.fact, Said)]
    messages = [
        {"at": event.at, "time": event.time} | _message(event.fact.message)
        for event in said[-limit:]
        if isinstance(event.fact, Said)
    ]
    return _info(info) | {"messages": messages}


def _message(message: Message) -> JsonObject:
    calls = [{"id": call.id, "name": call.name, "args": call.args} for call in message.calls]
    answers = [block for block in message.blocks if isinstance(block, ToolResult)]
    results = " ".join(block.text for answer in answers for block in answer.content if isinstance(block, Text))
    return {"role": message.role, "content": message.text or results} | ({"toolCalls": calls} if calls else {})


def _info(info: SessionInfo) -> JsonObject:
    return {
        "id": info.id,
        "agent": info.agent,
        "channel": info.channel,
        "chatId": info.chat_id,
        "title": info.title,
        "model": info.model,
        "created": info.created,
        "updated": info.updated,
        "events": info.events,
        "usage": told.usage(info.tokens),
        "cost": None if info.dollars is None else float(info.dollars),
    }


def _count(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= most):
        raise Refusal(400, f"{name} must be a number from 1 to {most}.", field=name)
    return int(given)


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """Names in lower case. One that stands there twice is joined, and so matches nothing that is expected."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _json(body: JsonObject, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(body), status, {"Cache-Control": "no-store"} | dict(headers or {}), "application/json")


def _retry(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _refusal(refusal: Refusal) -> Response:
    extra = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    # The rest of a body that is not read must not be taken for the next request.
    return _json(refusal.body, refusal.status, {"Connection": "close"} | _retry(refusal.retry_after_s) | extra)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _refusal(error)


async def _failed(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 500)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"
    said = f"There is no {asked[:200]} here; GET /openapi.json describes what there is."
    return _json({"error": said if error.status_code in (404, 405) else error.detail}, error.status_code, error.headers)


async def _gone(_: Request, error: Exception) -> Response:
    """Nobody reads this."""
    return Response(status_code=499)
