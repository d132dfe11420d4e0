"""The real thing: llama.cpp and SmolLM2 in this process, over our own transport."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ra.core.errors import AuthFailed, Overflowed, UserError
from ra.core.events import TextDelta
from ra.core.messages import Message, Text, ToolCall, ToolResult, say
from ra.core.model import ModelInfo, Reply, Request, Section, ToolSpec
from ra.core.ports import Provider
from ra.providers import local
from ra.providers.connect import connect, info
from ra.providers.local import LocalProvider
from ra.providers.retry import Retries
from ra.providers.settings import ProviderSettings

SYSTEM = (Section("system", "pinned", "You are a helpful assistant."),)


def request(*texts: str, max_output: int = 24) -> Request:
    roles = ("user", "assistant")
    messages: tuple[Message, ...] = tuple(say(roles[i % 2], text) for i, text in enumerate(texts))
    return Request(local.MODEL, SYSTEM, messages, max_output=max_output)


@pytest.fixture(scope="module")
def provider(model_dir: Path) -> Iterator[LocalProvider]:
    """One running model for all tests here; each of them has an event loop of its own."""
    made = connect("local", None, ProviderSettings(), {}, data_dir=model_dir)
    assert isinstance(made, LocalProvider)
    yield made
    asyncio.run(made.close())


async def ask(provider: Any, asked: Request) -> tuple[list[str], Reply]:
    items = [item async for item in provider.stream(asked)]
    assert isinstance(items[-1], Reply)
    return [item.text for item in items if isinstance(item, TextDelta)], items[-1]


async def behind(provider: LocalProvider, name: Any, transport: Any, key: str | None = None) -> Provider:
    """Another client of the same server, as a user's settings make it."""
    running = await provider.start()
    settings = ProviderSettings(base_url=running.url, api_key=running.key if key is None else key)
    return connect(name, "x", settings, {}, transport=transport, data_dir=Path("unused"), retries=Retries(tries=1))


every_way = pytest.mark.parametrize(
    ("name", "transport"), list(product(("openai-chat", "openai", "anthropic"), ("http", "sdk")))
)
"""All dialects that llama.cpp speaks, over our own bytes and over the vendors' clients."""


@every_way
def test_it_answers_in_streamed_text(provider: LocalProvider, name: str, transport: str) -> None:
    async def main() -> None:
        client = await behind(provider, name, transport)
        pieces, reply = await ask(client, request("What is the capital of France?"))
        await client.close()
        assert len(pieces) > 3
        assert "".join(pieces) == reply.message.text
        assert "Paris" in reply.message.text
        assert (reply.usage.output > 3, reply.usage.total_input > 20) == (True, True)

    asyncio.run(main())


@every_way
def test_a_longer_prompt_is_read_from_the_cache(provider: LocalProvider, name: str, transport: str) -> None:
    long = f"{name} {transport}: count the words of this sentence. " * 20

    async def main() -> None:
        client = await behind(provider, name, transport)
        _, first = await ask(client, request(long, max_output=16))
        _, second = await ask(client, request(long, first.message.text, "Again.", max_output=16))
        await client.close()
        assert first.usage.cache_read < 30  # no more than what every chat begins with
        assert second.usage.cache_read >= first.usage.total_input - 8
        assert second.usage.total_input > first.usage.total_input

    asyncio.run(main())


@every_way
def test_tools_are_offered_and_a_result_is_read(provider: LocalProvider, name: str, transport: str) -> None:
    """This model calls none by itself: what is tried is that the server takes the tools and a call that was made."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    call = ToolCall("call_1", "Read", {"path": "a.txt"})
    result = Message("tool", (ToolResult("call_1", "Read", (Text("Bananas are yellow."),)),))
    asked = Request(
        local.MODEL,
        SYSTEM,
        (say("user", "Read a.txt"), Message("assistant", (call,)), result),
        (ToolSpec("Read", "Read a file.", schema),),
        max_output=16,
    )

    async def main() -> None:
        client = await behind(provider, name, transport)
        _, reply = await ask(client, asked)
        await client.close()
        assert reply.message.text or reply.message.calls
        assert reply.usage.total_input > 20

    asyncio.run(main())


@every_way
def test_an_overflow_names_the_window_and_what_was_sent(provider: LocalProvider, name: str, transport: str) -> None:
    async def main() -> None:
        client = await behind(provider, name, transport)
        with pytest.raises(Overflowed) as caught:
            await ask(client, request("word " * 9000))
        await client.close()
        assert (caught.value.limit, (caught.value.sent or 0) > 9000) == (local.WINDOW, True)

    asyncio.run(main())


@every_way
def test_nobody_without_its_key_gets_in(provider: LocalProvider, name: str, transport: str) -> None:
    async def main() -> None:
        client = await behind(provider, name, transport, key="wrong")
        with pytest.raises(AuthFailed):
            await ask(client, request("Hi"))
        await client.close()

    asyncio.run(main())


def test_an_answer_can_be_cancelled_and_the_next_one_comes(provider: LocalProvider) -> None:
    async def main() -> None:
        async with aclosing(provider.stream(request("Tell a long story.", max_output=900))) as items:
            async for _ in items:
                break
        _, reply = await ask(provider, request("What is the capital of France?"))
        assert reply.message.text

    asyncio.run(main())


def test_a_provider_can_be_closed_and_used_again(provider: LocalProvider) -> None:
    async def main() -> None:
        await ask(provider, request("Hi", max_output=4))
        await provider.close()
        assert (await ask(provider, request("Hi", max_output=4)))[1].message.text

    asyncio.run(main())


def test_calls_at_the_same_time_share_one_model(provider: LocalProvider) -> None:
    async def main() -> None:
        await provider.close()
        first, second = await asyncio.gather(provider.start(), provider.start())
        assert first is second
        replies = await asyncio.gather(*(ask(provider, request(text, max_output=4)) for text in ("Hi", "Hello")))
        assert all(reply.message.text for _, reply in replies)

    asyncio.run(main())


PROGRAM = """
import asyncio, sys
from pathlib import Path
from ra.core.messages import say
from ra.core.model import Request
from ra.providers.connect import connect
from ra.providers.settings import ProviderSettings

async def main():
    provider = connect("local", None, ProviderSettings(), {}, data_dir=Path(sys.argv[1]))
    async for _ in provider.stream(Request("local", (), (say("user", "Hi"),), max_output=4)):
        pass
    if sys.argv[2] == "close":
        await provider.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("ending", ["close", "leave"])
def test_it_writes_nothing_of_its_own_and_ends_with_the_process(model_dir: Path, ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model_dir), ending], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_any_other_gguf_is_taken_by_its_path(model_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.symlink_to(local.weights(None, model_dir))

    async def main() -> str:
        provider = connect("local", str(other), ProviderSettings(), {}, data_dir=tmp_path)
        try:
            return (await ask(provider, request("Hi", max_output=8)))[1].message.text
        finally:
            await provider.close()

    assert asyncio.run(main())
    assert info("local", str(other)) == ModelInfo(str(other), 8192, 1024)


def test_what_is_known_of_the_embedded_model() -> None:
    assert info("local", local.MODEL) == ModelInfo(local.MODEL, 8192, 1024, "none", 1.15, tools=False)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"not a model", "not a GGUF file"), (b"GGUF\x00\x00", "cannot load")],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)

    async def main() -> None:
        await ask(connect("local", str(file), ProviderSettings(), {}, data_dir=tmp_path), request("Hi"))

    with pytest.raises(UserError, match=words):
        asyncio.run(main())


def test_without_weights_the_command_that_fetches_them_is_named(tmp_path: Path) -> None:
    assert not local.available(tmp_path)
    with pytest.raises(UserError, match="ra local install"):
        connect("local", None, ProviderSettings(), {}, data_dir=tmp_path)


def test_the_notice_is_given_once(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    assert [local.notice(tmp_path), local.notice(tmp_path)] == [local.NOTICE, ""]
    assert "\n" not in local.NOTICE
