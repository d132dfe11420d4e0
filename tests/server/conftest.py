"""A real `ra serve` process, with a real server where the model would be."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell, measured

AGENTS = """\
agents:
  devops-agent: {systemPrompt: You keep things running.}
"""


class Daemon:
    """`ra serve` on a free port, from start to stop. What it logs is in `log`."""

    def __init__(self, shell: Shell, *flags: str, port: int = 0) -> None:
        self.shell = shell
        self._log = (shell.home / "serve.log").open("ab")
        self.process = subprocess.Popen(
            [RA, "serve", "--port", str(port), *flags],
            cwd=shell.project,
            env=shell.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().decode().strip()
        self.host, _, port_text = self.url.removeprefix("http://").rpartition(":")
        self.port = int(port_text or 0)

    @property
    def log(self) -> str:
        return (self.shell.home / "serve.log").read_text()

    @property
    def token(self) -> str:
        return (Path(self.shell.env["RA_HOME"]) / "serve.token").read_text().strip()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, decoded body, headers (in lower case)."""
        connection = HTTPConnection(self.host.strip("[]"), self.port, timeout=60)
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if raw is not None else {}
        try:
            connection.request(method, path, raw, sent | (headers or {}))
            answer = connection.getresponse()
            return answer.status, _decoded(answer), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def task(self, message: str = "hi", chat: str = "c1", *, key: str = "", **more: Any) -> tuple[int, Any]:
        body = {"agent": "devops-agent", "message": message, "context": {"channel": "test", "chatId": chat}} | more
        status, answer, _ = self.ask("POST", "/task", body, {"Idempotency-Key": key} if key else {})
        return status, answer

    def get(self, path: str) -> Any:
        return self.ask("GET", path)[1]

    def send_and_go(self, message: str, chat: str, *, key: str = "") -> None:
        """A client that sends a task and hangs up before there is an answer."""
        context = {"channel": "test", "chatId": chat}
        body = json.dumps({"agent": "devops-agent", "message": message, "context": context}).encode()
        extra = f"Idempotency-Key: {key}\r\n" if key else ""
        head = f"POST /task HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{extra}"
        with socket.create_connection((self.host, self.port)) as client:
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.3)

    def messages(self, chat: str) -> list[tuple[str, str]]:
        """The conversation of a chat: role and text."""
        found = [one["id"] for one in self.get("/sessions?limit=500")["sessions"] if one["chatId"] == chat]
        if not found:
            return []
        said = self.get(f"/sessions/{found[0]}?limit=1000")["messages"]
        return [(one["role"], one["content"]) for one in said]

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(30)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            assert self.process.stdout
            self.process.stdout.close()
            self._log.close()

    def end(self) -> None:
        """After a test: at once, or when it is measured so that it can still tell what it ran."""
        if measured() and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        self.stop(signal.SIGKILL)


def _decoded(answer: HTTPResponse) -> Any:
    raw = answer.read()
    return json.loads(raw) if answer.headers.get_content_type() == "application/json" else raw.decode()


def until(true: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait for something that happens in another process."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.03)
    return found


def events(stream: str) -> list[dict[str, Any]]:
    """The data of server-sent events; each is named after its type."""
    found = []
    for part in stream.strip().split("\n\n"):
        numbered, _, rest = part.partition("\n")
        name, _, data = (rest if numbered.startswith("id: ") else part).partition("\n")
        told = json.loads(data.removeprefix("data: "))
        assert name == f"event: {told['type']}"
        found.append(told)
    return found


def asked(body: dict[str, Any]) -> str:
    """The last thing that the user said in a request to the model."""
    content = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    folder = made.home / ".config/ra"
    folder.mkdir(parents=True)
    (folder / "ra.yaml").write_text(AGENTS)
    return made


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., Daemon]]:
    """Start a daemon; all are stopped at the end."""
    made: list[Daemon] = []

    def started(*flags: str, port: int = 0) -> Daemon:
        made.append(Daemon(shell, *flags, port=port))
        return made[-1]

    yield started
    for daemon in made:
        daemon.end()


Model = Callable[..., LoopbackServer]


@pytest.fixture
def model(shell: Shell) -> Iterator[Model]:
    """Start a model that says what `script` has, and point ra at it."""
    running: list[LoopbackServer] = []

    def started(script: Any = None, **options: Any) -> LoopbackServer:
        server = LoopbackServer("anthropic", script or (lambda body: Step(text="Hello, world.")), **options).start()
        running.append(server)
        shell.serve(server)
        return server

    yield started
    for server in running:
        server.close()


@pytest.fixture(scope="module")
def greeter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for tests that leave no trace, shared by a file."""
    made = Shell(tmp_path_factory.mktemp("greeter"))
    (made.home / ".config/ra").mkdir(parents=True)
    (made.home / ".config/ra/ra.yaml").write_text(AGENTS)
    with LoopbackServer("anthropic", lambda body: Step(text="Hello, world.")) as server:
        made.serve(server)
        daemon = Daemon(made)
        yield daemon
        daemon.end()


AS_ROOT = os.geteuid() == 0
