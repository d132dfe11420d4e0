"""Parses a request body into a Task, or refuses it and names the invalid field."""

import json
import re
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

import msgspec

from ra.core.value import JsonObject, Value
from ra.server.bodies import ContextBody, TaskBody, Tools

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_CONTEXT_BYTES = 64 * 1024
MAX_DEPTH = 16

_CHANNEL = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
# The ids of chats in use: -100123 (Telegram), 49151@s.whatsapp.net, group!42. Nothing that a path needs.
_CHAT = re.compile(r"(?!.*\.\.)[\w@+!#=|:,-][\w@+!#=|:,.~-]{0,127}")
_SENDER = re.compile(r"[^\x00-\x1f\x7f]{0,256}")


class Refusal(Exception):
    """The request is refused. `field` names the invalid part of the body.

    `ran`: its task was run, and would run again if sent again. OpenAI's clients repeat every 5xx by default.
    """

    def __init__(
        self, status: int, text: str, *, field: str = "", retry_after_s: int | None = None, ran: bool = False
    ) -> None:
        super().__init__(text)
        self.status = status
        self.field = field
        self.retry_after_s = retry_after_s
        self.ran = ran

    @property
    def body(self) -> JsonObject:
        return {"error": str(self)} | ({"field": self.field} if self.field else {})

    @property
    def headers(self) -> dict[str, str]:
        retry_after = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        return retry_after | ({"X-Should-Retry": "false"} if self.ran else {})


class TaskContext(Value, frozen=True):
    """The origin of the message. `more` holds the client's other fields: media, replyTo, references …"""

    channel: str
    chat_id: str
    sender: str = ""
    more: JsonObject = {}
    alone: bool = False  # the client named no chat, and the id is generated


class Task(Value, frozen=True):
    """A message for an agent; "" is the agent of the `agent:` setting. No strategy: the agent's own."""

    agent: str
    message: str
    context: TaskContext
    strategy: str | None = None
    stream: bool = False
    tools: Tools = "all"

    @property
    def chat(self) -> tuple[str, str, str]:
        """The key of the session: tasks of the same chat run one after the other."""
        return self.agent, self.context.channel, self.context.chat_id

    @property
    def name(self) -> str:
        return f"{self.context.channel}:{self.context.chat_id}"


def read(raw: bytes) -> Task:
    """Raises Refusal with status 400."""
    body = {key: value for key, value in body_object(raw).items() if value is not None}
    _only_known(body, {field.encode_name for field in msgspec.structs.fields(TaskBody)})
    message = _text(body, "message")
    if not message.strip():
        raise Refusal(400, "message is missing or empty.", field="message")
    strategy = _text(body, "contextStrategy", default=None)
    stream = body.get("stream", False)
    if not isinstance(stream, bool):
        raise Refusal(400, "stream must be true or false.", field="stream")
    tools = body.get("tools", "all")
    if tools not in get_args(Tools):
        raise Refusal(400, f"tools must be one of {', '.join(get_args(Tools))}.", field="tools")
    return Task(_text(body, "agent", default=""), message, context_of(body.get("context", {})), strategy, stream, tools)


def body_object(raw: bytes) -> JsonObject:
    try:
        body = _decoded(raw)
    except RecursionError as error:
        raise Refusal(400, "The body is nested too deeply.") from error
    except ValueError as error:  # msgspec's and Python's own decoding errors
        raise Refusal(400, f"The body is not valid JSON: {error}.") from error
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object.")
    return body


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        if b"\\ud" not in raw.lower():
            raise
        # Half an emoji, from clients that cut text by UTF-16 units. Python accepts it, and it becomes a "?".
        document = json.dumps(json.loads(raw), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(document)


def _only_known(body: Mapping[str, Any], known: set[str]) -> None:
    for key in body:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}."
            raise Refusal(400, f"Unknown field {_shown(key)}; {hint}", field=key[:100])


def _text(body: Mapping[str, Any], name: str, *, default: Any = "") -> Any:
    value = body.get(name, default)
    if value is not default and not isinstance(value, str):
        raise Refusal(400, f"{name} must be text.", field=name)
    return value


def context_of(value: Any) -> TaskContext:
    if not isinstance(value, dict):
        raise Refusal(400, "context must be an object.", field="context")
    if _depth(value) > MAX_DEPTH or len(msgspec.json.encode(value)) > MAX_CONTEXT_BYTES:
        limits = f"at most {MAX_DEPTH} levels and {MAX_CONTEXT_BYTES // 1024} KiB"
        raise Refusal(400, f"context is too deep or too large; {limits}.", field="context")
    fields = {field.encode_name for field in msgspec.structs.fields(ContextBody)}
    for key in value:
        meant = next((name for name in fields if _plain(key) == _plain(name) and key != name), None)
        if meant:  # the field would be ignored, and the chat would be a new one
            raise Refusal(400, f"Unknown field context.{key}; did you mean {meant}?", field=f"context.{key}")
    chat = _id(value, "chatId", _CHAT, "")
    return TaskContext(
        _id(value, "channel", _CHANNEL, "api"),
        chat or f"task-{secrets.token_hex(8)}",  # a task without a chat gets one of its own
        _id(value, "sender", _SENDER, ""),
        {key: item for key, item in value.items() if key not in fields},
        alone=not chat,
    )


def _id(context: Mapping[str, Any], name: str, form: re.Pattern[str], default: str) -> str:
    value = context.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 7.0 is an integer in JSON
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # chat ids of Telegram are numbers
    if value is None:
        return default
    if not isinstance(value, str):
        raise Refusal(400, f"context.{name} must be text.", field=f"context.{name}")
    if not form.fullmatch(value):
        raise Refusal(400, f"context.{name} {_shown(value)} is not an id; {_FORMS[name]}", field=f"context.{name}")
    return value


_FORMS = {
    "channel": "use up to 64 letters, digits, '.', '_' and '-'.",
    "chatId": "use up to 128 letters, digits and any of _@+!#=|:,.~- without slashes or '..'.",
    "sender": "use up to 256 characters on one line.",
}


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _shown(value: str) -> str:
    return msgspec.json.encode(value if len(value) <= 60 else value[:59] + "…").decode()


def _depth(value: Any) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo:
        item, level = todo.pop()
        deepest = max(deepest, level)
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        todo.extend((one, level + 1) for one in inner)
    return deepest
