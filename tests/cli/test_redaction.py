"""A key that a server echoes is neither printed nor stored."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ra.core.errors import UserError
from ra.core.redaction import Redaction, redacted
from tests.cli.conftest import Shell

KEY = "sk-echoed-4711-abcdefgh"


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = f'{{"error": {{"message": "Incorrect API key provided: {self.headers["authorization"]}"}}}}'.encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None: ...


def test_a_key_that_a_server_echoes_is_not_printed_and_not_stored(shell: Shell) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    shell.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}
    done = shell.ra("--provider", "openai-chat", "--model", "m", "hello")
    server.shutdown()
    assert b"[redacted]" in done.stderr
    stored = [path for path in shell.home.parent.rglob("*") if path.is_file()]
    assert KEY.encode() not in done.stderr + done.stdout
    assert not [path for path in stored if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("text", ["/run/agent.sock-1", "localhost", "short1"])
def test_words_and_paths_are_no_keys(text: str) -> None:
    redaction = Redaction()
    redaction.register(text)
    assert redaction(f"see {text}") == f"see {text}"


def test_the_password_of_an_address_is_taken_out_of_every_error() -> None:
    redacted.register("postgresql://ann:pass-word-1@db/x")
    assert str(UserError("no role ann with pass-word-1")) == "no role ann with [redacted]"
