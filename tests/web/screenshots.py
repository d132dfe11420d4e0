"""`python -m tests.web.screenshots`: the pictures of the documentation, taken of the page as it is."""

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.cli.conftest import Shell
from tests.pages import ROOT
from tests.web import transcripts
from tests.web.conftest import CHROMIUM, FLAGS, OpenPage

SIZE = {"width": 1280, "height": 860}
FOLDER = ROOT / "docs/img"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shell = Shell(Path(folder))
        files = shell.home / "sessions"
        files.mkdir()
        transcripts.write(files / "orders.jsonl", 82, files=100)
        for number, words in enumerate(
            ("Where is the cart's total wrong?", "Add a test for refunds.", "Who calls tax()?")
        ):
            earlier = transcripts.START - 86_400 * (number + 1)
            transcripts.write(files / f"more-{number}.jsonl", 18 + 9 * number, words=words, start=earlier)
        server = OpenPage(shell, str(files))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        page.goto(server.address)
        page.wait_for_selector(".sessions tbody tr:nth-child(4) a")
        _take(page, "open-list")
        page.click("text=Read the orders")
        page.wait_for_selector(".tile-link:not([hidden])", timeout=60_000)
        page.locator(".stage").focus()
        for _ in range(30):
            page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(300)
        _take(page, "open-session")
        page.emulate_media(color_scheme="dark")
        page.click("#tab-whatif")
        page.click("label[for=if-nothing]")
        page.click("label[for=if-digest]")
        page.fill("#if-window", "120000")
        page.click("text=Replay")
        page.wait_for_selector(".results tbody tr:nth-child(3)", timeout=60_000)
        page.wait_for_timeout(300)
        _take(page, "open-whatif")
        browser.close()
        server.stop()


def _take(page: Any, name: str) -> None:
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=FOLDER / f"{name}.png")
    print(f"wrote docs/img/{name}.png")


if __name__ == "__main__":
    main()
