"""Sends tasks to a server and reads its answers, with the types of the server itself."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ra.core.value import JsonObject, encode
from ra.server.bodies import (
    AnswerBody,
    ContextBody,
    HealthBody,
    RunBody,
    RunList,
    SessionList,
    SessionWithMessages,
    StrategyName,
    TaskBody,
    Tools,
)
from ra.server.completions import ModelList

if TYPE_CHECKING:
    import httpx2

TIMEOUT_S = 600.0
TRIES = 5

T = TypeVar("T", bound=Struct)


class ClientError(Exception):
    """The server refused a request, or could not be reached. `status` is 0 without an answer."""

    def __init__(self, status: int, text: str, *, field: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.field = field
        self.retry_after_s = retry_after_s


class RunEvent(Struct, frozen=True):
    """A server-sent event: its number (0 for the last ones), its type (`text`, `tool`, `done` …) and its JSON."""

    number: int
    type: str
    body: JsonObject


class Client:
    """`async with Client("http://127.0.0.1:18800") as ra: answer = await ra.task("hi", chat_id="42")`.

    A refusal with Retry-After (429, 503) and a lost connection are retried with the same Idempotency-Key, so that a
    task runs only once.
    """

    def __init__(self, url: str, *, token: str = "", timeout_s: float = TIMEOUT_S, tries: int = TRIES) -> None:
        import httpx2  # takes a second to import, and only a client needs it

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout_s, trust_env=False)
        self._failures = (httpx2.TransportError,)
        self._tries = tries

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def task(
        self,
        message: str,
        *,
        agent: str = "",
        chat_id: str | int | None = None,
        channel: str = "api",
        sender: str = "",
        strategy: StrategyName | None = None,
        tools: Tools = "all",
        key: str = "",
    ) -> AnswerBody:
        """Runs a task and waits for its answer. Raises ClientError."""
        body = _task(message, agent, ContextBody(channel, chat_id, sender), strategy, tools)
        return await self._ask(AnswerBody, "POST", "/task", body, key=key or os.urandom(12).hex())

    async def chat(
        self,
        message: str,
        *,
        agent: str = "",
        chat_id: str | int | None = None,
        channel: str = "api",
        sender: str = "",
        strategy: StrategyName | None = None,
        tools: Tools = "all",
        key: str = "",
    ) -> AsyncIterator[RunEvent]:
        """Runs a task and yields its events; the last one is `done`. Resumes after a lost connection."""
        body = _task(message, agent, ContextBody(channel, chat_id, sender), strategy, tools)
        async for event in self._events("POST", "/chat", 0, body, key=key or os.urandom(12).hex()):
            yield event

    async def follow(self, run: str, *, after: int = 0) -> AsyncIterator[RunEvent]:
        """Yields the events of a run from number `after` + 1 on. Raises ClientError."""
        async for event in self._events("GET", f"/runs/{quote(run)}/events", after):
            yield event

    async def run(self, run: str) -> RunBody:
        return await self._ask(RunBody, "GET", f"/runs/{quote(run)}")

    async def cancel(self, run: str) -> RunBody:
        return await self._ask(RunBody, "DELETE", f"/runs/{quote(run)}")

    async def runs(
        self, *, state: str | None = None, agent: str | None = None, chat_id: str | None = None, limit: int = 50
    ) -> list[RunBody]:
        parameters = {"state": state, "agent": agent, "chatId": chat_id, "limit": limit}
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return (await self._ask(RunList, "GET", f"/runs?{query}")).runs

    async def sessions(self, *, limit: int = 50) -> SessionList:
        return await self._ask(SessionList, "GET", f"/sessions?limit={limit}")

    async def session(self, session: str, *, limit: int = 100) -> SessionWithMessages:
        return await self._ask(SessionWithMessages, "GET", f"/sessions/{quote(session)}?limit={limit}")

    async def models(self) -> ModelList:
        return await self._ask(ModelList, "GET", "/v1/models")

    async def health(self) -> HealthBody:
        return await self._ask(HealthBody, "GET", "/healthz")

    async def _ask(self, kind: type[T], method: str, path: str, body: Struct | None = None, *, key: str = "") -> T:
        attempts = _Attempts(self._tries)
        while True:
            try:
                async with self._call(method, path, body, {"Idempotency-Key": key} if key else {}) as response:
                    return _decoded(response.status_code, await response.aread(), kind)
            except ClientError as failure:
                await attempts.wait_after(failure)

    async def _events(
        self, method: str, path: str, after: int, body: Struct | None = None, *, key: str = ""
    ) -> AsyncIterator[RunEvent]:
        """Yields the events of a run, and reconnects when the connection is lost."""
        attempts = _Attempts(self._tries)
        while True:
            headers = {"Last-Event-ID": str(after)} | ({"Idempotency-Key": key} if key else {})
            try:
                async with self._call(method, path, body, headers) as response:
                    if run := response.headers.get("run-id"):  # after a lost connection, resume this run
                        method, path, body, key = "GET", f"/runs/{quote(run)}/events", None, ""
                    async for event in _parsed(response.aiter_lines()):
                        attempts = _Attempts(self._tries)
                        after = max(after, event.number)
                        yield event
                        if event.type == "done":
                            return
                raise ClientError(0, "The stream ended before the run did.")
            except ClientError as failure:
                await attempts.wait_after(failure)

    @asynccontextmanager
    async def _call(
        self, method: str, path: str, body: Struct | None, headers: Mapping[str, str]
    ) -> AsyncIterator["httpx2.Response"]:
        """A response with a success status. Raises ClientError, also when the connection is lost during the body."""
        content = None if body is None else encode(body)
        typed = {} if content is None else {"Content-Type": "application/json"}
        try:
            async with self._http.stream(method, path, content=content, headers={**headers, **typed}) as response:
                if response.status_code >= 400:
                    raise _failure(response.status_code, await response.aread(), response.headers)
                yield response
        except self._failures as error:
            raise ClientError(0, f"The server cannot be reached: {str(error) or type(error).__name__}") from error


class _Attempts:
    """Counts the attempts of a call, and delays the next one after a temporary failure."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failed = 0

    async def wait_after(self, failure: ClientError) -> None:
        """Returns when it is time to try again; raises the failure when that would not help."""
        self._failed += 1
        temporary = failure.status == 0 or failure.retry_after_s is not None
        if not temporary or self._failed >= self._most:
            raise failure
        # An interrupted run has a status and an answer, but no Retry-After: another request would get the same answer.
        await asyncio.sleep(0.2 * 2**self._failed if failure.retry_after_s is None else failure.retry_after_s)


def _task(
    message: str,
    agent: str,
    context: ContextBody,
    strategy: StrategyName | None,
    tools: Literal["all", "read-only", "none"],
) -> TaskBody:
    return TaskBody(message, agent, strategy, context, tools=tools)


def _decoded(status: int, content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:  # another program answers, such as a proxy
        raise ClientError(status, f"The answer is not one of `ra serve`: {error}.") from error


def _failure(status: int, content: bytes, headers: Any) -> ClientError:
    try:
        body = msgspec.json.decode(content)
    except msgspec.DecodeError:
        body = {}
    error = body.get("error", f"HTTP {status}") if isinstance(body, dict) else f"HTTP {status}"
    text = error.get("message", "") if isinstance(error, dict) else str(error)
    field = body.get("field", "") if isinstance(body, dict) else ""
    wait = headers.get("retry-after", "")
    return ClientError(status, text, field=field, retry_after_s=float(wait) if wait.isdigit() else None)


async def _parsed(lines: AsyncIterator[str]) -> AsyncIterator[RunEvent]:
    number = 0
    async for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            body = msgspec.json.decode(value, type=JsonObject)
            yield RunEvent(number, str(body.get("type")), body)
            number = 0
