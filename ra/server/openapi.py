"""Generates the OpenAPI 3.1 document of the HTTP API from the types of its bodies."""

from typing import Any, get_args

import msgspec
from msgspec import Struct

from ra.core.version import __version__
from ra.server import bodies, completions

Json = dict[str, Any]

_REASONS = {
    400: "The body is wrong; field names the place",
    401: "The token is missing or wrong",
    403: "A foreign Host, Origin or site",
    404: "No such agent, session or run",
    408: "The body did not arrive in time",
    409: "Another server works on this Idempotency-Key",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The Idempotency-Key was used for another task",
    429: "Busy; Retry-After says when to come back",
    500: "The agent's configuration is wrong, or there is a bug",
    503: "The server is stopping, its database is away, or the task was interrupted",
}

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same task runs it once, for a day, over restarts too.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_EVENT_ID = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_EVENT: Json = {
    "type": "object",
    "description": "each of the events; data is JSON",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}
_TASK_REFUSALS = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)


class Operation(Struct, frozen=True):
    """One method of one path. `events`: it can answer with server-sent events."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[Struct] | None
    request: type[Struct] | None = None
    events: bool = False
    text: bool = False
    parameters: tuple[Json, ...] = ()
    refusals: tuple[int, ...] = ()
    other_answers: tuple[int, ...] = ()
    open: bool = False
    refusal: type[Struct] = bodies.RefusalBody


def _limit(default: int, most: int) -> Json:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return {"name": "limit", "in": "query", "schema": schema}


def _filter(name: str, *words: str) -> Json:
    schema: Json = {"type": "string", "enum": list(words)} if words else {"type": "string"}
    return {"name": name, "in": "query", "schema": schema}


OPERATIONS = (
    Operation(
        "post",
        "/task",
        "task",
        "Run a task and wait for its answer (or follow it, with stream: true)",
        bodies.AnswerBody,
        request=bodies.TaskBody,
        events=True,
        parameters=(_KEY,),
        refusals=_TASK_REFUSALS,
    ),
    Operation(
        "post",
        "/chat",
        "chat",
        "Run a task and follow it as server-sent events",
        None,
        request=bodies.TaskBody,
        events=True,
        parameters=(_KEY,),
        refusals=_TASK_REFUSALS,
    ),
    Operation(
        "get",
        "/sessions",
        "listSessions",
        "Sessions of the project, latest first",
        bodies.SessionList,
        parameters=(_limit(50, 500),),
        refusals=(400, 401, 403, 503),
    ),
    Operation(
        "get",
        "/sessions/{id}",
        "showSession",
        "A session with its newest messages",
        bodies.SessionWithMessages,
        parameters=(_ID, _limit(100, 1000)),
        refusals=(400, 401, 403, 404, 503),
    ),
    Operation(
        "get",
        "/runs",
        "listRuns",
        "Tasks that wait or run, and those that ended recently, newest first",
        bodies.RunList,
        parameters=(_filter("state", *get_args(bodies.RunState)), _filter("agent"), _filter("chatId"), _limit(50, 500)),
        refusals=(400, 401, 403, 503),
    ),
    Operation(
        "get",
        "/runs/{id}",
        "showRun",
        "State, usage and cost of a run",
        bodies.RunBody,
        parameters=(_ID,),
        refusals=(401, 403, 404, 503),
    ),
    Operation(
        "get",
        "/runs/{id}/events",
        "followRun",
        "A run's events, from the one after Last-Event-ID on",
        None,
        events=True,
        parameters=(_ID, {"name": "Last-Event-ID", "in": "header", "schema": _EVENT_ID}),
        refusals=(400, 401, 403, 404, 503),
    ),
    Operation(
        "delete",
        "/runs/{id}",
        "cancelRun",
        "End a run, as Ctrl-C does; what was done so far stays in the session",
        bodies.RunBody,
        parameters=(_ID,),
        refusals=(401, 403, 404, 503),
    ),
    Operation(
        "post",
        "/v1/chat/completions",
        "completions",
        "OpenAI's Chat Completions: the model is an agent's name (or ra), stream: true gives chunks",
        completions.CompletionBody,
        request=completions.CompletionRequest,
        events=True,
        parameters=(_KEY,),
        refusals=_TASK_REFUSALS,
        refusal=completions.CompletionError,
    ),
    Operation(
        "get",
        "/v1/models",
        "models",
        "The agents as OpenAI's models",
        completions.ModelList,
        refusals=(401, 403),
        refusal=completions.CompletionError,
    ),
    Operation(
        "get",
        "/v1/models/{id}",
        "showModel",
        "One of them",
        completions.ModelBody,
        parameters=(_ID,),
        refusals=(401, 403, 404),
        refusal=completions.CompletionError,
    ),
    Operation(
        "get",
        "/metrics",
        "metrics",
        "Counters in the text format of Prometheus",
        None,
        text=True,
        refusals=(401, 403),
    ),
    Operation(
        "get",
        "/healthz",
        "health",
        "Readiness: whether tasks are taken (503: the server is stopping, or its database is away); needs no token",
        bodies.HealthBody,
        other_answers=(503,),
        open=True,
    ),
    Operation(
        "get", "/livez", "alive", "Liveness: whether the process answers; needs no token", bodies.HealthBody, open=True
    ),
)


def document() -> Json:
    types = {part for operation in OPERATIONS for part in (operation.answer, operation.request) if part is not None}
    types |= {operation.refusal for operation in OPERATIONS}
    ordered = sorted(types, key=_name)
    _, schemas = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    paths: Json = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ra",
            "version": __version__,
            "description": "Tasks for agents. The session of a task is (agent, channel, chatId).",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Not needed by the same user on the loopback.",
                }
            },
            "schemas": schemas,
        },
    }


def _described(operation: Operation) -> Json:
    content: Json = {}
    if operation.answer is not None:
        content |= _content(operation.answer)
    if operation.text:
        content["text/plain"] = {"schema": {"type": "string"}}
    if operation.events:
        content["text/event-stream"] = {"schema": _EVENT}
    answer = {"description": operation.summary, "content": content}
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {"200": answer} | {str(status): answer for status in operation.other_answers},
    }
    for status in operation.refusals:
        described["responses"][str(status)] = _refusal(status, operation.refusal)
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.request is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.request)}
    if operation.open:
        described["security"] = [{}]
    return described


def _refusal(status: int, body: type[Struct]) -> Json:
    refusal: Json = {"description": _REASONS[status], "content": _content(body)}
    if status in (429, 503):
        refusal["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
    return refusal


def _content(body: type[Struct]) -> Json:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{_name(body)}"}}}


def _name(body: type[Struct]) -> str:
    return body.__name__
