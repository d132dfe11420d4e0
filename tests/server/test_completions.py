"""Any OpenAI client can use an agent: the real `openai` package against a real `ra serve`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import openai
import pytest

from ra.core.value import JsonObject
from ra.providers.script import Fault, Step
from ra.server import completions
from ra.server.task import Task, TaskContext
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.server.conftest import AGENTS, Daemon, asked


class Served:
    def __init__(self, daemon: Daemon, model: LoopbackServer) -> None:
        self.daemon = daemon
        self.model = model
        self.client = openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=daemon.token, max_retries=0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shell = Shell(tmp_path_factory.mktemp("openai"))
    (shell.home / ".config/ra").mkdir(parents=True, exist_ok=True)
    (shell.home / ".config/ra/ra.yaml").write_text(AGENTS)

    def script(body: JsonObject) -> Step:
        fault = Fault("status", status=403, message="No.") if asked(body).startswith("fail") else None
        return Step(text="Hello, world.", fault=fault)

    with LoopbackServer("anthropic", script) as model:
        shell.serve(model)
        daemon = Daemon(shell)
        yield Served(daemon, model)
        daemon.end()


def test_a_completion_is_a_task_of_the_agent_that_the_model_names(served: Served) -> None:
    done = served.client.chat.completions.create(
        model="devops-agent", messages=[{"role": "user", "content": "hi"}], user="ann", temperature=0.1
    )
    assert done.choices[0].message.content == "Hello, world."
    assert (done.choices[0].finish_reason, done.model) == ("stop", "devops-agent")
    assert done.usage.prompt_tokens > 0
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    run = served.daemon.get(f"/runs/{done.id.removeprefix('chatcmpl-')}")
    assert (run["agent"], run["channel"], run["state"]) == ("devops-agent", "openai", "succeeded")


def test_a_completion_is_streamed_with_its_usage(served: Served) -> None:
    stream = served.client.chat.completions.create(
        model="ra",
        messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello, world."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens > 0


def test_what_was_said_before_goes_along_unless_a_chat_holds_it(served: Served) -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My name is Ann."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "What is my name?"},
    ]
    served.client.chat.completions.create(model="ra", messages=history)
    told = asked(served.model.bodies[-1])
    assert all(message["content"] in told for message in history)
    assert told.startswith("What is my name?")
    for turn in (history[1:2], history[1:]):
        served.client.chat.completions.create(model="ra", messages=turn, metadata={"chatId": "c1"})
    assert asked(served.model.bodies[-1]).splitlines()[0] == "What is my name?"
    assert [text for role, text in served.daemon.messages("c1") if role == "user"] == [
        "My name is Ann.",
        "What is my name?",
    ]


def test_models_are_the_agents(served: Served) -> None:
    assert [model.id for model in served.client.models.list()] == ["ra", "devops-agent"]
    assert served.client.models.retrieve("devops-agent").owned_by == "ra"


def test_mistakes_are_errors_of_the_client(served: Served) -> None:
    with pytest.raises(openai.NotFoundError, match="devops-agent") as unknown:
        served.client.chat.completions.create(model="devops-agnt", messages=[{"role": "user", "content": "hi"}])
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    with pytest.raises(openai.BadRequestError, match="not supported"):
        served.client.chat.completions.create(model="ra", messages=[{"role": "user", "content": [image]}])
    with pytest.raises(openai.BadRequestError) as twice:
        served.client.chat.completions.create(model="ra", messages=[{"role": "user", "content": "hi"}], n=2)
    assert twice.value.param == "n"
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4o'"):
        served.client.models.retrieve("gpt-4o")
    with pytest.raises(openai.NotFoundError, match="no POST /v1/embeddings"):
        served.client.embeddings.create(model="ra", input="hi")
    with pytest.raises(openai.AuthenticationError, match="token"):
        served.client.with_options(api_key="x" * 20).chat.completions.create(
            model="ra", messages=[{"role": "user", "content": "hi"}]
        )


def test_a_message_without_text_is_refused(served: Served, tmp_path: Path) -> None:
    for messages in ([], [{"role": "user", "content": ""}], [{"role": "assistant", "content": "hi"}]):
        status, body, _ = served.daemon.ask("POST", "/v1/chat/completions", {"messages": messages})
        assert (status, body["error"]["type"]) == (400, "invalid_request_error")


def test_a_run_that_failed_is_not_run_again_by_the_client(served: Served) -> None:
    patient = served.client.with_options(max_retries=2)
    before = len(served.model.bodies)
    with pytest.raises(openai.InternalServerError, match="403"):
        patient.chat.completions.create(model="ra", messages=[{"role": "user", "content": "fail"}])
    assert len(served.model.bodies) == before + 1
    with pytest.raises(openai.APIError, match="403"):
        list(patient.chat.completions.create(model="ra", messages=[{"role": "user", "content": "fail"}], stream=True))
    assert len(served.model.bodies) == before + 2


@pytest.mark.parametrize(
    ("frames", "end"),
    [
        ([b'data: {"type":"done","content":"Hi"}\n\n'], b'"finish_reason":"stop"'),
        (
            [b'data: {"type":"error","error":"No."}\n\ndata: {"type":"done","error":"No.","content":"H"}\n\n'],
            b'"length"',
        ),
        ([b'data: {"type":"error","error":"No."}\n\ndata: {"type":"done","error":"No.","content":""}\n\n'], b'"No."'),
        ([b'data: {"type":"text","delta":"H"}\n\n'], b'"The server is stopping'),
    ],
)
def test_a_stream_says_how_it_ended(frames: list[bytes], end: bytes) -> None:
    request = completions.Asked(Task("", "hi", TaskContext("openai", "c")), "ra", stream=True, usage=False)

    async def told() -> list[bytes]:
        async def run() -> AsyncIterator[bytes]:
            for frame in frames:
                yield frame

        return [chunk async for chunk in completions.chunks(request, "1", run())]

    *_, last, done = asyncio.run(told())
    assert done == b"data: [DONE]\n\n"
    assert end in last
