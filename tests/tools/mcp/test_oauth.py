"""Signing in to a remote server: a real authorisation server on the loopback, and a browser that is redirected."""

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ra.tools.mcp.oauth import PORT
from ra.tools.settings import McpServerSettings
from tests.tools.kit import words
from tests.tools.mcp.test_servers import World, run, world

__all__ = ["world"]

GUARDED = str(Path(__file__).with_name("guarded.py"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, GUARDED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        for _ in range(1200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(address.split(":")[2].split("/")[0]))) == 0:
                    break
            time.sleep(0.05)
        yield address
        process.kill()


@pytest.fixture
def remote(url: str) -> McpServerSettings:
    return McpServerSettings(name="garden", url=url, timeout=60)


async def sign_in(world: World, server: McpServerSettings, capsys: pytest.CaptureFixture[str]) -> int:
    """What `ra mcp login` does, with a browser: how many tools there are."""
    login = asyncio.create_task(world.servers(server).login(server))
    shown = ""
    while "\n" not in shown.partition("Sign in here:\n")[2] and not login.done():
        shown += capsys.readouterr().err
        await asyncio.sleep(0.02)
    if not login.done():
        address = shown.partition("Sign in here:\n")[2].strip()
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(address).read())
        assert b"You are signed in" in page
    return len((await login).tools)


def test_a_server_that_does_not_know_us_is_named_with_its_status_and_what_to_do(
    world: World, remote: McpServerSettings
) -> None:
    failed = world.servers(remote).listings()["garden"].failed
    assert failed == "it wants you to sign in (401); run `ra mcp login garden`"
    header = msgspec.structs.replace(remote, headers={"Authorization": "Bearer wrong"})
    failed = world.servers(header).listings()["garden"].failed
    assert failed == "it wants you to sign in (401); its Authorization header is not accepted"


def test_tokens_are_kept_in_a_file_of_the_users_own_and_used_from_then_on(
    world: World, remote: McpServerSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(sign_in(world, remote, capsys)) == 1
    (file,) = (world.folder / "shelf/tokens").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o077) == (0o600, 0)
    (done,) = run(world.box(remote), ("mcp__garden__secret", {}))
    assert words(done) == "the garden gate"


def test_a_token_that_is_over_is_renewed_in_a_later_process(
    world: World, remote: McpServerSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(sign_in(world, remote, capsys))
    (file,) = (world.folder / "shelf/tokens").iterdir()
    before = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode(before | {"expires": time.time() - 1}))
    (done,) = run(world.box(remote), ("mcp__garden__secret", {}))
    assert words(done) == "the garden gate"
    after = msgspec.json.decode(file.read_bytes())
    assert after["tokens"]["refresh_token"] != before["tokens"]["refresh_token"]
    assert after["expires"] > time.time()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_sign_in_works_when_somebody_has_its_port(
    world: World, remote: McpServerSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        if other.connect_ex(("127.0.0.1", PORT)) != 0:
            other.close()
            with socket.create_server(("127.0.0.1", PORT)):
                assert asyncio.run(sign_in(world, remote, capsys)) == 1
        else:
            assert asyncio.run(sign_in(world, remote, capsys)) == 1


def test_forgotten_tokens_are_gone_and_a_damaged_file_is_none(
    world: World, remote: McpServerSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(sign_in(world, remote, capsys))
    tokens = world.servers(remote).tokens(remote)
    assert tokens is not None
    (file,) = (world.folder / "shelf/tokens").iterdir()
    file.write_bytes(b"{")
    assert "run `ra mcp login garden`" in world.servers(remote).listings(fresh=True)["garden"].failed
    assert (tokens.forget(), tokens.forget(), file.exists()) == (True, False, False)
