"""Which connection is let in, and to which user it belongs: the decisions by themselves."""

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.server.access import AccessRules, admit
from ra.server.peer_user import MAX_SILENT_OF_OTHERS, PeerConnection, user_of
from ra.server.task import MAX_DEPTH, Refusal, Task, read
from ra.system.loopback import is_local

OPEN_TO_ALL = AccessRules("the-token-of-the-server", uid=1000, local=False)
LOCAL = AccessRules("the-token-of-the-server", uid=1000)


def _status(access_rules: AccessRules, headers: dict[str, str], uid: int | None = 1000, path: str = "/task") -> int:
    try:
        admit(access_rules, headers, path=path, peer_uid=uid)
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize(
    ("headers", "uid", "status"),
    [
        ({"host": "localhost"}, 1000, 200),
        ({"host": "localhost"}, 1001, 401),
        ({"host": "localhost"}, 0, 401),
        ({"host": "localhost"}, None, 401),
        ({"host": "localhost", "authorization": "Bearer the-token-of-the-server"}, None, 200),
        ({"host": "localhost", "authorization": "bearer  the-token-of-the-server "}, 1001, 200),
        ({"host": "localhost", "authorization": "the-token-of-the-server"}, 1000, 401),
        ({"host": "localhost", "authorization": "Bearer the-token-of-the-server, Bearer x"}, 1000, 401),
        ({"host": "localhost", "via": "1.1 proxy"}, 1000, 401),
        ({}, 1000, 403),
    ],
)
def test_the_user_or_the_token_open_the_door(headers: dict[str, str], uid: int | None, status: int) -> None:
    assert _status(LOCAL, headers, uid) == status


def test_bound_elsewhere_the_token_is_needed_and_any_host_is_taken() -> None:
    token = {"authorization": "Bearer the-token-of-the-server"}
    assert _status(OPEN_TO_ALL, {"host": "build-server:18800"} | token, None) == 200
    assert _status(OPEN_TO_ALL, {"host": "build-server:18800"}, None) == 401
    assert _status(OPEN_TO_ALL, {"host": "build-server:18800", "origin": "https://evil.example"} | token, None) == 403


def test_health_is_told_to_everybody_on_this_machine() -> None:
    assert _status(LOCAL, {"host": "localhost"}, None, "/healthz") == 200
    assert _status(LOCAL, {"host": "evil.example"}, None, "/healthz") == 403


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_only_names_of_this_machine_are_local(host: str) -> None:
    if is_local(host):
        name = host.casefold().rsplit(":", 1)[0] if not host.endswith("]") else host.casefold()
        assert name.rstrip(".") == "localhost" or name.startswith(("127.", "[", "localhost"))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the table of sockets is Linux's")
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_user_of_a_connection_is_known_while_somebody_holds_it(family: socket.AddressFamily, address: str) -> None:
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with server:
        client = socket.create_connection(server.getsockname()[:2])
        held, peer = server.accept()
        ends = (peer[0], peer[1]), server.getsockname()[:2]
        assert user_of(*ends) == os.geteuid()
        client.close()
        assert user_of(*ends) is None  # nobody's: the kernel would say root's
        held.close()


@pytest.mark.parametrize("client", [None, ("10.0.0.7", 1), ("::ffff:10.0.0.7", 1), ("nonsense", 1)])
def test_the_user_of_another_machine_is_not_known(client: tuple[str, int] | None) -> None:
    assert user_of(client, ("127.0.0.1", 18800)) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "agent": _JSON,
        "message": st.text(max_size=20) | _JSON,
        "contextStrategy": _JSON,
        "context": st.fixed_dictionaries({}, optional={"channel": _JSON, "chatId": _JSON, "sender": _JSON, "x": _JSON}),
        "stream": _JSON,
        "tools": _JSON,
    },
)


@given(st.binary(max_size=60) | _BODIES.map(lambda body: json.dumps(body).encode()))
@settings(max_examples=100, deadline=None)
def test_any_body_is_a_task_or_refused(raw: bytes) -> None:
    try:
        task: Task | None = read(raw)
    except Refusal as refusal:
        task, status = None, refusal.status
    else:
        status = 200
    assert (task is None, status) in {(True, 400), (False, 200)}
    if task is None:
        return
    assert task.message.strip()
    assert not any("\ud800" <= char <= "\udfff" for char in task.message)
    assert not {"/", "\\", "\0"} & set(task.context.chat_id + task.context.channel)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH])
def test_a_context_is_as_deep_as_it_may_be(depth: int) -> None:
    raw = b'{"message": "hi", "context": {"x": %b}}' % (b"[" * depth + b"]" * depth)
    if depth < MAX_DEPTH:
        assert read(raw).context.more
    else:
        with pytest.raises(Refusal, match="too deep"):
            read(raw)


@contextlib.asynccontextmanager
async def serving(kind: type[PeerConnection]) -> AsyncIterator[tuple[str, int]]:
    """A server with our connections that always says ok; its address."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    server = uvicorn.Server(uvicorn.Config(app, http=kind, lifespan="off", log_config=None, port=0))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    await task


class Hasty(PeerConnection):
    headers_s = 0.4


@pytest.mark.parametrize("pause_s", [0.0, 0.6])
def test_half_a_request_does_not_hold_a_connection_for_ever(pause_s: float) -> None:
    async def go() -> tuple[bytes, float]:
        async with serving(Hasty) as address:
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(3):  # whole requests keep it
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
                await asyncio.sleep(pause_s)
            writer.write(b"GET / HT")
            began = time.monotonic()
            rest = await asyncio.wait_for(reader.read(), 5)
        return rest, time.monotonic() - began

    rest, took_s = asyncio.run(go())
    assert rest == b""
    assert took_s < 2


async def answers(*requests: bytes) -> list[bytes]:
    """The status lines that raw requests get, each on a connection of its own."""
    lines = []
    async with serving(PeerConnection) as address:
        for request in requests:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(request)
            lines.append((await asyncio.wait_for(reader.readline(), 5)).strip())
            writer.close()
    return lines


LOOSE = {
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "one bare LF": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "a line that goes on": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
    "more headers than a hundred": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 101 + b"\r\n",
    "large headers": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 40_000 + b"\r\n\r\n",
}


def test_a_request_is_framed_in_the_one_way_that_all_read_alike() -> None:
    usual = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n" + b"a: b\r\n" * 90 + b"\r\nabc"
    lines = asyncio.run(answers(usual, *LOOSE.values()))
    assert dict(zip(["usual", *LOOSE], lines, strict=True)) == {
        "usual": b"HTTP/1.1 200 OK",
        **dict.fromkeys(LOOSE, b"HTTP/1.1 400 Bad Request"),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_half_open_requests_of_another_user_starve_nobody() -> None:
    async def go() -> tuple[int, bytes]:
        async with serving(PeerConnection) as (host, port):
            code = (
                "import socket,sys,time\n"
                f"s=[socket.create_connection(('{host}',{port})) for _ in range(900)]\n"
                "[x.send(b'GET / HT') for x in s]\ntime.sleep(.5)\nn=0\n"
                "for x in s:\n x.settimeout(.01)\n try: n+=x.recv(12)==b'HTTP/1.1 429'\n except OSError: pass\n"
                "print(n,flush=True)\nsys.stdin.read()"
            )
            other = await asyncio.create_subprocess_exec(
                "/usr/bin/python3", "-c", code, stdin=-1, stdout=-1, user=65534, group=65534, extra_groups=[]
            )
            assert other.stdout
            refused = int(await other.stdout.readline())
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            line = await asyncio.wait_for(reader.readline(), 5)
            other.kill()
            await other.wait()
        return refused, line.strip()

    refused, line = asyncio.run(go())
    assert refused >= 900 - MAX_SILENT_OF_OTHERS - 1
    assert line == b"HTTP/1.1 200 OK"
