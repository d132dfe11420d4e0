"""The page is for the user who opened it: nobody else's request is answered, and nothing but our own files runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ra.testing.server import LoopbackServer
from ra.web.api import ENDPOINTS
from tests.cli.conftest import RA, Shell
from tests.server.conftest import Daemon
from tests.web.conftest import OpenPage, Visited


def test_the_token_opens_once_and_a_cookie_comes_back(shell: Shell, transcript: Path) -> None:
    opened = OpenPage(shell, str(transcript))
    assert opened.ask(f"/?token={opened.token}", {"Sec-Fetch-Site": "cross-site"})[0] == 403  # and it is not used up
    cookie = opened.enter()
    status, body, headers = opened.ask("/", cookie)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<script" in body
    assert opened.ask(f"/?token={opened.token}")[0] == 403  # used up
    assert opened.ask(f"/?token={opened.token}", cookie)[0] == 303  # but not for who came with it
    assert opened.ask("/api/sessions", cookie)[0] == 200
    assert opened.stop() == 0  # Ctrl-C is how it ends


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/app.js", {}),
        ("/api/sessions", {}),
        ("/api/sessions", {"Cookie": "ra-open=x"}),
        ("/api/sessions", {"Authorization": "Bearer guess"}),
        ("/?token=guess", {}),
        ("/nothing", {}),
    ],
)
def test_without_the_token_everything_is_refused(visited: Visited, path: str, headers: dict[str, str]) -> None:
    assert visited.server.ask(path, headers)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.nip.io:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_origin_and_a_rebinding_name_are_refused_with_the_cookie_too(
    visited: Visited, headers: dict[str, str]
) -> None:
    assert visited.server.ask("/api/sessions", visited.cookie | headers)[0] == 403


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/sessions", "/api/nothing", "/?token=guess"])
def test_every_answer_forbids_foreign_code(visited: Visited, path: str) -> None:
    for sent in (visited.cookie, {}):
        headers = visited.server.ask(path, sent)[2]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/../values.py", 404),
        ("/types.d.ts", 404),
        ("/api/sessions/zz", 404),
        ("/api/sessions/0123456789ab", 404),
        ("/api/sessions/{id}/pieces/999999", 404),
        ("/api/sessions/{id}/pieces/x", 400),
        ("/api/sessions/{id}/search?q=", 400),
        ("/api/sessions/{id}/what-if?strategies=nonsense", 400),
        ("/api/sessions/{id}/what-if?strategies=nothing&window=12", 400),
        ("/api/sessions/{id}/what-if?strategies=nothing&model=no-such-model", 400),
    ],
)
def test_what_is_wrong_is_said(visited: Visited, path: str, status: int) -> None:
    answered, body, _ = visited.server.ask(path.replace("{id}", _only(visited)), visited.cookie)
    assert answered == status
    assert json.loads(body)["error"]


def test_the_api_is_described_as_it_answers(visited: Visited) -> None:
    def ask(path: str) -> Any:
        return json.loads(visited.server.ask(path, visited.cookie)[1])

    described = ask("/api/openapi.json")
    assert set(described["paths"]) == {endpoint.path for endpoint in ENDPOINTS}
    session = ask(f"/api/sessions/{_only(visited)}")
    schema = described["components"]["schemas"]["Overview"]
    assert set(session) == set(schema["properties"])
    hits = ask(f"/api/sessions/{session['id']}/search?q=WINDOW%20of")
    assert hits["hits"][0]["match"].lower() == "window of"


def test_ra_serve_shows_the_page_for_its_chats(shell: Shell, hello: LoopbackServer) -> None:
    daemon = Daemon(shell)
    try:
        daemon.ask("POST", "/task", {"message": "Hi.", "context": {"channel": "api", "chatId": "c1"}})
        assert daemon.ask("GET", "/open/api/sessions")[1]["cards"][0]["chat"].endswith("c1")  # the same user
        assert daemon.ask("GET", "/open/api/sessions", headers={"Origin": "https://evil.example"})[0] == 403
        assert daemon.ask("GET", "/open/api/sessions", headers={"X-Forwarded-For": "10.0.0.1"})[0] == 403
        assert daemon.ask("GET", f"/open/?token={daemon.token}")[0] == 303
        assert daemon.ask("GET", "/healthz")[0] == 200
    finally:
        daemon.stop()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--without-text"], "--export"),
        (["no-such-file.jsonl"], "no such file"),
        (["ffff"], "ffff"),
        (["--export", "page.html"], "one session"),
    ],
)
def test_a_mistake_is_named(shell: Shell, words: list[str], said: str) -> None:
    done = subprocess.run(
        [RA, "open", *words], cwd=shell.project, env=shell.env, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr


def _only(visited: Visited) -> str:
    while True:
        listing = json.loads(visited.server.ask("/api/sessions", visited.cookie)[1])
        if not listing["pending"]:
            return str(listing["cards"][0]["id"])
