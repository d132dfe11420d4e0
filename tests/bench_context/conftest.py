"""A real `agentx` and a real daemon, with an agent whose model has a prompt cache and the prices of Opus 4.6."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.billing import prompt_cache
from tests.session.talk import answering

NO_PLAN = '{"recentTurns": 0, "memory": {"include": false}, "crossChat": false, "reasoning": "stands alone"}'
ROLE = "You are devops-agent. You look after servers.\n" + "\n".join(
    f"Rule {n}: check host{n}.example first." for n in range(900)
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    folder = made.home / ".config/ra"
    folder.mkdir(parents=True)
    agents = {"devops-agent": {"systemPrompt": ROLE, "model": "claude-opus-4-6"}}
    (folder / "ra.yaml").write_text(yaml.safe_dump({"agents": agents}))
    return made


@pytest.fixture
def opus(shell: Shell) -> Iterator[LoopbackServer]:
    """Answers, plans, and bills what its cache read and wrote."""
    with LoopbackServer("anthropic", answering(NO_PLAN), cache=prompt_cache("claude-opus-4-6")) as server:
        shell.serve(server)
        yield server


class Fake:
    """A server that is no daemon, or not a good one: `answer` maps headers (in lower case) to a status and a body."""

    def __init__(self, answer: Callable[[dict[str, str]], tuple[int, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                status, body = answer({name.lower(): value for name, value in self.headers.items()})
                raw = b"<html>" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                """Tests want to read their own output."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "Fake":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
