"""The typed client against a real server, and against the document that describes it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ra.client import Client, ClientError, client
from ra.providers.script import Step
from ra.server.openapi import OPERATIONS
from tests.server.conftest import Daemon, Model

METHODS = {
    "task": "task",
    "chat": "chat",
    "listSessions": "sessions",
    "showSession": "session",
    "listRuns": "runs",
    "showRun": "run",
    "followRun": "follow",
    "cancelRun": "cancel",
    "models": "models",
    "health": "health",
}
LEFT_OUT = {
    "completions",
    "showModel",
    "metrics",
    "alive",
}  # OpenAI's own client, Prometheus and a supervisor ask for these


def test_the_client_has_every_operation_of_the_document_with_its_type() -> None:
    assert {operation.name for operation in OPERATIONS} == set(METHODS) | LEFT_OUT
    for operation in OPERATIONS:
        if operation.name in METHODS:
            assert callable(getattr(Client, METHODS[operation.name]))
            assert operation.answer is None or getattr(client, operation.answer.__name__) is operation.answer


def test_a_task_its_stream_its_run_and_its_session(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello, world."))
    daemon: Daemon = start()

    async def main() -> None:
        async with Client(daemon.url, token=daemon.token) as ra:
            answer = await ra.task("hi", agent="devops-agent", chat_id=42, channel="test")
            assert (answer.content, answer.usage.output_tokens > 0) == ("Hello, world.", True)
            heard = [event async for event in ra.chat("again", agent="devops-agent", chat_id=42, channel="test")]
            assert "".join(event.body["delta"] for event in heard if event.type == "text") == "Hello, world."
            assert heard[-1].body["sessionId"] == answer.session_id
            runs = await ra.runs(chat_id="42")
            assert [run.state for run in runs] == ["succeeded"] * 2
            late = [event async for event in ra.follow(runs[0].id, after=heard[0].number)]
            assert late == heard[1:]
            assert (await ra.cancel(runs[0].id)).state == "succeeded"
            assert (await ra.run(runs[0].id)).id == runs[0].id
            session = await ra.session(answer.session_id)
            assert [message.role for message in session.messages] == ["user", "assistant"] * 2
            assert [one.id for one in (await ra.sessions()).sessions] == [session.id]
            assert [one.id for one in (await ra.models()).data] == ["ra", "devops-agent"]
            assert (await ra.health()).status == "ok"
            with pytest.raises(ClientError, match="No agent is named") as refused:
                await ra.task("hi", agent="nobody")
            assert (refused.value.status, refused.value.field) == (404, "agent")

    asyncio.run(main())
    daemon.stop()

    async def unreachable() -> None:
        async with Client(daemon.url, tries=2) as ra:
            await ra.task("hi")

    with pytest.raises(ClientError, match="cannot be reached"):
        asyncio.run(unreachable())


@asynccontextmanager
async def answers(*responses: bytes) -> AsyncIterator[tuple[str, Sequence[str]]]:
    """A server that gives one of the responses to each request and closes; its address, and the heads it was sent."""
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(responses[len(heads) - 1])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    server.close()


def head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode()


def test_a_stream_that_ends_before_its_run_is_resumed_after_the_last_event() -> None:
    first = head("200 OK", "Run-Id: r1") + b'id: 1\nevent: text\ndata: {"type":"text","delta":"Hel"}\n\n'
    rest = head("200 OK") + (
        b'id: 2\nevent: text\ndata: {"type":"text","delta":"lo"}\n\nevent: done\ndata: {"type":"done"}\n\n'
    )
    busy = head("503 Service Unavailable", "Retry-After: 0")

    async def main() -> None:
        async with answers(busy, first, rest) as (url, heads), Client(url) as ra:
            heard = [event async for event in ra.chat("hi", key="k")]
            assert "".join(event.body["delta"] for event in heard if event.type == "text") == "Hello"
            assert [line.partition(" http")[0] for line in heads] == ["post /chat", "post /chat", "get /runs/r1/events"]
            assert "idempotency-key: k" in heads[1]
            assert "last-event-id: 1" in heads[2]

    asyncio.run(main())


def test_what_does_not_pass_is_not_tried_again() -> None:
    page = head("200 OK", "Content-Length: 6") + b"<html>"
    interrupted = head("503 Service Unavailable", "Content-Length: 15") + b'{"error":"cut"}'

    async def main() -> None:
        async with answers(page, interrupted) as (url, heads), Client(url) as ra:
            with pytest.raises(ClientError, match="not one of `ra serve`"):
                await ra.task("hi")
            with pytest.raises(ClientError, match="cut"):
                await ra.task("hi")
            assert len(heads) == 2

    asyncio.run(main())
