"""What does the API look like to a program? An OpenAPI 3.1 document, written by hand next to the routes."""

from typing import Any

from ra import __version__
from ra.context.settings import STRATEGIES

Json = dict[str, Any]


def document() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ra",
            "version": __version__,
            "description": "Tasks for agents. The session of a task is (agent, channel, chatId).",
        },
        "security": [{}, {"token": []}],
        "paths": {
            "/task": {"post": _task("Run a task and wait for its answer (or follow it, with stream: true)")},
            "/chat": {"post": _task("Run a task and follow it as server-sent events", stream=True)},
            "/sessions": {
                "get": {
                    "operationId": "listSessions",
                    "summary": "Sessions of the project, latest first",
                    "parameters": [_limit(50, 500)],
                    "responses": {
                        "200": _json(
                            "The sessions",
                            _object({"sessions": {"type": "array", "items": _ref("Session")}}, ["sessions"]),
                        )
                    }
                    | _refusals(400, 401, 403),
                }
            },
            "/sessions/{id}": {
                "get": {
                    "operationId": "showSession",
                    "summary": "A session with its newest messages",
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                        _limit(100, 1000),
                    ],
                    "responses": {"200": _json("The session", _ref("SessionWithMessages"))}
                    | _refusals(400, 401, 403, 404),
                }
            },
            "/healthz": {
                "get": {
                    "operationId": "health",
                    "summary": "Whether tasks are taken; needs no token",
                    "security": [{}],
                    "responses": {
                        "200": _json("Tasks are taken", _ref("Health")),
                        "503": _json("The server is stopping", _ref("Health")),
                    },
                }
            },
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Not needed by the same user on the loopback.",
                }
            },
            "schemas": _schemas(),
        },
    }


def _task(summary: str, *, stream: bool = False) -> Json:
    events = {"text/event-stream": {"schema": {"type": "string"}}}
    answer = {"application/json": {"schema": _ref("Answer")}}
    return {
        "operationId": "chat" if stream else "task",
        "summary": summary,
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "The same key with the same task runs it once, for a day, over restarts too.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref("Task")}}},
        "responses": {
            "200": {
                "description": "The answer; what went wrong in the run stands in error",
                "content": events if stream else answer | events,
            }
        }
        | _refusals(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503),
    }


_REASONS = {
    400: "The body is wrong; field names the place",
    401: "The token is missing or wrong",
    403: "A foreign Host, Origin or site",
    404: "No such agent or session",
    408: "The body did not arrive in time",
    409: "Another server works on this Idempotency-Key",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The Idempotency-Key was used for another task",
    429: "Busy; Retry-After says when to come back",
    500: "The agent's configuration does not hold, or a bug",
    503: "The server is stopping; the task was not begun, or was interrupted",
}


def _refusals(*statuses: int) -> Json:
    found: Json = {str(status): _json(_REASONS[status], _ref("Refusal")) for status in statuses}
    for status in {"429", "503"} & set(found):
        found[status]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
    return found


def _schemas() -> Json:
    text, number, count = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
    cost = {"type": ["number", "null"], "description": "dollars; null when no price is known"}
    usage = _object(dict.fromkeys(("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreateTokens"), count), None)
    session = {
        **dict.fromkeys(("id", "agent", "channel", "chatId", "title", "model"), text),
        **dict.fromkeys(("created", "updated"), number | {"description": "seconds since 1970"}),
        "events": count,
        "usage": _ref("Usage"),
        "cost": cost,
    }
    message = {"at": count, "time": number, "role": text, "content": text}
    call = _object({"id": text, "name": text, "args": {"type": "object"}}, None)
    return {
        "Task": _object(
            {
                "agent": text | {"description": "a named agent; without it, the default one"},
                "message": text | {"minLength": 1},
                "contextStrategy": text | {"enum": list(STRATEGIES)},
                "context": _ref("Context"),
                "stream": {"type": "boolean", "default": False},
                "tools": text | {"enum": ["all", "read-only", "none"], "default": "all"},
            },
            ["message"],
        )
        | {"additionalProperties": False},
        "Context": _object(
            {
                "channel": text | {"maxLength": 64, "default": "api"},
                "chatId": {"type": ["string", "integer"], "description": "without it, a chat of its own"},
                "sender": text | {"maxLength": 256},
            },
            [],
        )
        | {"additionalProperties": True},
        "Usage": usage,
        "Answer": _object(
            {
                "content": text,
                "error": text,
                "duration": number | {"description": "seconds"},
                "usage": _ref("Usage"),
                "cost": cost,
                "sessionId": text,
                "strategy": text,
            },
            ["content", "duration", "usage", "cost", "sessionId", "strategy"],
        ),
        "Refusal": _object({"error": text, "field": text}, ["error"]),
        "Session": _object(session, None),
        "SessionWithMessages": _object(
            session
            | {
                "messages": {
                    "type": "array",
                    "items": _object(message | {"toolCalls": {"type": "array", "items": call}}, list(message)),
                }
            },
            [*session, "messages"],
        ),
        "Health": _object({"status": text, "running": count, "waiting": count}, ["status"]),
    }


def _object(properties: Json, required: list[str] | None) -> Json:
    """`required` of None: all of them."""
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _limit(default: int, most: int) -> Json:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return {"name": "limit", "in": "query", "schema": schema}
