"""A real `ra open`, and a real browser where one is installed."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import RA, Shell, hello, shell
from tests.pages import ROOT
from tests.web import transcripts

__all__ = ["hello", "shell"]  # fixtures

DEMO = ROOT / "docs/traces/demo.jsonl"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


class OpenPage:
    """`ra open --no-browser …` from start to stop."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self.process = subprocess.Popen(
            [RA, "open", "--no-browser", *words],
            cwd=shell.project,
            env=shell.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().decode().strip()
        self.base, _, self.token = self.address.partition("?token=")
        self.port = int(self.base.rsplit(":", 1)[1].strip("/") or 0)

    def ask(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
        """Status, body, headers in lower case."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body, {name.lower(): value for name, value in response.getheaders()}

    def enter(self) -> dict[str, str]:
        """Use the token up; the header that lets one in from then on."""
        status, _, headers = self.ask(f"/?token={self.token}")
        assert status == 303
        return {"Cookie": headers["set-cookie"].partition(";")[0]}

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            assert self.process.stdout
            self.process.stdout.close()


@pytest.fixture
def transcript(shell: Shell) -> Path:
    return transcripts.write(shell.home / "orders.jsonl")


class Visited(NamedTuple):
    """A page that was entered: the server, and the header that lets one in."""

    server: OpenPage
    cookie: dict[str, str]


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    server = OpenPage(Shell(tmp_path_factory.mktemp("opened")), str(DEMO))
    yield Visited(server, server.enter())
    server.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab of its own profile; whatever its console says or throws is in `page.said`."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.said = []
    tab.on("console", lambda message: tab.said.append(message.text))
    tab.on("pageerror", lambda error: tab.said.append(str(error)))
    yield tab
    context.close()
