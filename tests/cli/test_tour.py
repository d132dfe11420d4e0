"""`ra tour`: the real program with a recorded model; and what a newcomer is offered."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ra.cli import welcome
from ra.cli.output import Streams
from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal


def test_the_tour_plays_by_itself_without_key_and_network(shell: Shell) -> None:
    done = shell.ra("tour", "--play", env={"COLUMNS": "60"})
    text = done.stdout.decode()
    assert done.returncode == 0
    in_order = [
        "Only the model is scripted",
        "• Read cart.py",
        '   10 +         result += item["price"] * item["quantity"]',
        "Edit cart.py?  n no · y yes",
        "• Read test-run.log",
        "tool:Read: ",
        "you save from call",
        "Compacted (truncate)",
        "• Recall FAILED",
        "SHOP-482",
        "Killed, with no time to save anything.",
        "It stopped here, before the answer was complete.",
        "I was writing the changelog",
        "Compaction hid the log from the model.",
    ]
    places = [text.find(words) for words in in_order]
    assert places == sorted(places), dict(zip(in_order, places, strict=True))
    assert -1 not in places
    closing = text[text.index("What you have seen:") :].splitlines()
    assert max(map(len, closing)) <= 60
    assert not (shell.home / ".local").exists()  # nothing of it is left in the user's own store


def test_the_tour_is_driven_by_real_keys_and_left_at_any_time(shell: Shell) -> None:
    with PtyTerminal([RA, "tour"], env=shell.env, cwd=shell.project, columns=100, rows=40) as terminal:
        terminal.wait("› What does cart.py do? Is the total right?")
        terminal.type("\r")
        terminal.wait("2 of 6")
        terminal.wait(lambda: "› Fix it." in terminal.text)
        terminal.type("\r")
        terminal.wait("Edit cart.py?")
        terminal.look(0.4)
        terminal.type("y")
        terminal.wait("3 of 6")
        terminal.type("\x15\x04")
        assert terminal.wait_exit() == 0


@pytest.fixture
def lists_models() -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": "qwen3:8b"}, {"id": "llama3"}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_on_this_machine_lists_its_models(lists_models: int) -> None:
    assert welcome._models(lists_models) == ["qwen3:8b", "llama3"]


def test_nobody_is_asked_about_servers_that_do_not_run() -> None:
    assert welcome._models(1) == []
    assert Streams({}).asking is False
