"""The typed client against a real server, and against the document that describes it."""

import asyncio
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
LEFT_OUT = {"completions", "metrics", "alive"}  # OpenAI's own client, Prometheus and a supervisor ask for these


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
