"""Several servers on one data folder: a key runs once, a chat has one session and is handed over."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ra.providers.script import Step
from ra.server import peer_user
from ra.server.presence import Presence
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.server.conftest import Daemon, asked

SERVED = [Step(text="Done.")] * 200


@pytest.fixture
def model(shell: Shell) -> Iterator[LoopbackServer]:
    with LoopbackServer("anthropic", SERVED) as server:
        shell.serve(server)
        yield server


@pytest.fixture
def pair(shell: Shell, model: LoopbackServer) -> Iterator[tuple[Daemon, Daemon]]:
    daemons = Daemon(shell), Daemon(shell)
    yield daemons
    for daemon in daemons:
        daemon.end()


def test_a_key_that_two_servers_get_at_once_runs_once_and_its_chat_has_one_session(
    pair: tuple[Daemon, Daemon], model: LoopbackServer
) -> None:
    names = [f"n{number}" for number in range(12)]

    def send(daemon: Daemon, name: str) -> int:
        status = 409
        while status == 409:
            status, _ = daemon.task(name, name, key=name)
        return status

    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(send, daemon, name) for name in names for daemon in pair]
        assert [future.result() for future in sent] == [200] * len(sent)
    assert Counter(asked(body).splitlines()[0] for body in model.bodies) == Counter(names)
    chats = [one["chatId"] for one in pair[0].get("/sessions?limit=500")["sessions"]]
    assert sorted(chats) == sorted(names)


def test_a_chat_goes_on_at_the_other_server_without_waiting(pair: tuple[Daemon, Daemon]) -> None:
    began = time.monotonic()
    for turn in range(6):
        assert pair[turn % 2].task(f"message {turn}", "shared")[0] == 200
    assert time.monotonic() - began < 60  # five times a chat that is kept for 20 s
    assert [text for role, text in pair[0].messages("shared") if role == "user"] == [f"message {n}" for n in range(6)]


def test_the_key_of_a_dead_server_does_not_stay_taken_beside_a_living_one(
    pair: tuple[Daemon, Daemon], model: LoopbackServer
) -> None:
    dead, living = pair
    dead.process.send_signal(signal.SIGSTOP)  # takes connections, answers none
    dead.process.kill()
    dead.process.wait()
    assert living.task("hi", "c", key="k")[0] == 200
    assert len(model.bodies) == 1


def test_presence_knows_the_living_and_cleans_up_after_the_dead(tmp_path: Path) -> None:
    here = Presence(tmp_path)
    code = (
        "import sys, time, pathlib; from ra.server.presence import Presence; "
        "p = Presence(pathlib.Path(sys.argv[1])); print(p.id, flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert other.stdout
    name = other.stdout.readline().decode().strip()
    assert here.alive(name)
    assert not here.alone
    other.kill()
    other.wait()
    other.stdout.close()
    assert not here.alive(name)
    assert [path.stem for path in (tmp_path / "servers").iterdir()] == [here.id]
    here.close()


def test_connections_beyond_the_most_are_answered_with_429(shell: Shell, model: LoopbackServer) -> None:
    daemon = Daemon(shell)
    sockets: list[socket.socket] = []
    try:
        place = daemon.host, daemon.port
        sockets += [socket.create_connection(place) for _ in range(peer_user.MAX_CONNECTIONS)]
        time.sleep(0.5)
        for _ in range(50):
            status, body, headers = daemon.ask("POST", "/task", {"message": "x" * 100_000})
            assert (status, body, headers["retry-after"]) == (429, {"error": "Busy: too many connections."}, "5")
        for held in sockets[:10]:
            held.close()
        time.sleep(0.5)
        assert daemon.task("hi", "c")[0] == 200
    finally:
        for held in sockets:
            held.close()
        daemon.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_the_user_of_a_connection_is_the_one_that_made_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        client = os.fork()
        if not client:
            os.setuid(65534)
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.recv(1)  # until the other end closes
            os._exit(0)
        accepted, address = listening.accept()
        with accepted:
            assert peer_user.user_of(address, ("127.0.0.1", port)) == 65534
        os.waitpid(client, 0)
