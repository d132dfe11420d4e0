"""Passes on the questions of an MCP server: to the model (sampling) or to the user (elicitation).

A question belongs to the session whose call the server is working on. It is refused if there is no such call, or if
calls of several sessions run on the server: then its session is unknown.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ra.core.asking import Field
from ra.core.messages import Content, Message, Text
from ra.tools.mcp import content
from ra.tools.mcp.client import ServerClient
from ra.tools.port import Form, SideCall
from ra.tools.tool import Mistake

if TYPE_CHECKING:
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
    )

T = TypeVar("T")

MAX_QUESTIONS = 20
"""Per call. Further questions are refused; the call ends at its own time limit."""
MAX_FIELDS = 20
MAX_WORDS = 2000  # characters of a server's text that a person is shown
MAX_MESSAGES = 100
_KINDS: dict[object, Literal["integer", "number", "boolean"]] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_NOBODY = "This request belongs to no call of a session that could answer it."


class Caller:
    """A session that waits for a server. Questions are asked in the session's own event loop."""

    def __init__(self, client: ServerClient, loop: asyncio.AbstractEventLoop) -> None:
        self.client = client
        self._loop = loop
        self._asked = 0
        self._waiting: set[asyncio.Future[Any]] = set()

    async def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Asks in the session's event loop. Raises Mistake."""
        self._asked += 1
        if self._asked > MAX_QUESTIONS:
            question.close()
            raise Mistake(f"One call may ask {MAX_QUESTIONS} questions.")
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(question, self._loop))
        self._waiting.add(waiting)
        try:
            return await waiting
        finally:
            self._waiting.discard(waiting)

    def hang_up(self) -> None:
        """The call is over: cancels the questions that still wait for an answer."""
        for waiting in self._waiting:
            waiting.cancel()


class Questions:
    """The questions of one server, and the callers that they can belong to."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._callers: list[Caller] = []

    @contextlib.contextmanager
    def of(self, caller: Caller | None) -> Iterator[None]:
        """Makes the caller available to the server's questions for as long as its call runs."""
        if caller is None:
            yield
            return
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)
            caller.hang_up()

    async def sample(self, context: Any, params: "CreateMessageRequestParams") -> "CreateMessageResult | ErrorData":
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        caller = self._caller()
        if caller is None:
            return ErrorData(code=INVALID_REQUEST, message=_NOBODY)
        try:
            reply = await caller.ask(caller.client.ask_model(self._server, _side_call(params)))
        except Mistake as refusal:
            return ErrorData(code=INVALID_REQUEST, message=str(refusal))
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text=reply.message.text),
            model=reply.message.model or "",
            stop_reason="maxTokens" if reply.stop == "length" else "endTurn",
        )

    async def elicit(self, context: Any, params: "ElicitRequestParams") -> "ElicitResult | ErrorData":
        from mcp_types import ElicitResult

        caller = self._caller()
        if caller is None:
            return ElicitResult(action="decline")
        try:
            values = await caller.ask(caller.client.fill_in(self._server, _form(params)))
        except Mistake:
            return ElicitResult(action="decline")
        if values is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if params.mode == "url" else values)

    def _caller(self) -> Caller | None:
        """The caller to ask, None if several sessions qualify or none does."""
        clients = {id(caller.client) for caller in self._callers}
        return self._callers[-1] if len(clients) == 1 else None


def _side_call(params: "CreateMessageRequestParams") -> SideCall:
    """The request as a model call. Raises Mistake if no model could answer it."""
    messages = tuple(
        Message(message.role, content.bounded(_block(block) for block in message.content_as_list))
        for message in params.messages[-MAX_MESSAGES:]
    )
    if not messages or messages[-1].role != "user":
        raise Mistake("The last message of a sampling request must be the user's.")
    return SideCall(messages, (params.system_prompt or "")[: content.MAX_TEXT], max(1, params.max_tokens))


def _block(block: Any) -> Content:
    if block.type in ("text", "image", "audio"):
        return content.of_block(block)
    return Text(f"[{block.type}, which is not passed on]")


def _form(params: "ElicitRequestParams") -> Form:
    """The request as a form. Raises Mistake for a form that nobody would fill in."""
    message = params.message[:MAX_WORDS]
    if params.mode == "url":
        if not params.url.startswith(("http://", "https://")):
            raise Mistake("The address of a question must begin with http:// or https://.")
        return Form(message, url=params.url[:MAX_WORDS])
    schema = params.requested_schema
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        raise Mistake(f"A form has at most {MAX_FIELDS} fields, under `properties`.")
    names = required if isinstance(required, list) else []
    return Form(message, tuple(_field(str(name), part, required=name in names) for name, part in properties.items()))


def _field(name: str, schema: Any, *, required: bool) -> Field:
    schema = schema if isinstance(schema, dict) else {}
    many = schema.get("type") == "array"
    items = schema.get("items") if many else schema
    words = ": ".join(str(schema[key]) for key in ("title", "description") if schema.get(key))
    default = schema.get("default")
    return Field(
        name[:MAX_WORDS],
        words[:MAX_WORDS],
        _KINDS.get(str(schema.get("type")), "text"),
        _choices(items if isinstance(items, dict) else {}),
        many,
        required,
        default if isinstance(default, str | int | float | bool) else None,
    )


def _choices(schema: dict[str, Any]) -> tuple[str, ...]:
    titled = schema.get("oneOf") or schema.get("anyOf")
    values = [part.get("const") for part in titled if isinstance(part, dict)] if isinstance(titled, list) else []
    plain = schema.get("enum")
    return tuple(str(value) for value in (plain if isinstance(plain, list) else values) if value is not None)
