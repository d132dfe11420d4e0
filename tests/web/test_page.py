"""The page in a real browser: what it shows, how it is moved through, and what hostile words cannot do to it."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ra.testing.server import LoopbackServer
from ra.web.server import page_files
from tests.cli.conftest import Shell
from tests.web import transcripts
from tests.web.conftest import OpenPage, Visited

SOON = 20_000  # milliseconds on a busy machine
HOSTILE = (
    "<img src=x onerror=\"window.ran='img'\"><script>window.ran='script'</script></script><svg onload=\"window.ran=1\">"
    '<a href="javascript:window.ran=2">link</a> <iframe src="https://evil.example/"></iframe> {{7*7}} ${window.ran=3} '
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x1b[2J\u202e\u2066 \ud83d \u0000 </pre></textarea><!-- ]]>"
)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    shell = Shell(tmp_path_factory.mktemp("orders"))
    server = OpenPage(shell, str(transcripts.write(shell.home / "orders.jsonl")))
    yield Visited(server, server.enter())
    server.stop()


@pytest.fixture
def shown(orders: Visited, page: Any) -> Iterator[Any]:
    """The session of the transcript in a tab that has been here before."""
    name, _, value = orders.cookie["Cookie"].partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": orders.server.base}])
    page.goto(orders.server.base)
    page.wait_for_selector(".stage[aria-valuetext]", timeout=SOON)
    yield page
    assert page.said == []  # no error, no breach of the policy


def test_keys_and_wheel_move_through_the_calls_and_a_screen_reader_hears_the_figures(shown: Any) -> None:
    stage = shown.locator(".stage")
    assert stage.get_attribute("role") == "slider"
    assert stage.get_attribute("aria-valuetext").startswith("Call 24 of 24: ")
    shown.keyboard.press("Home")  # nothing has the focus yet: the picture takes the key
    stage.focus()
    for key, call in (("ArrowRight", "2"), ("PageUp", "12"), ("]", "13"), ("]", "18"), ("[", "13"), ("End", "24")):
        shown.keyboard.press(key)
        _until(shown, f"document.querySelector('.stage').getAttribute('aria-valuenow') === '{call}'")
    shown.keyboard.press("[")
    _until(shown, "document.querySelector('.stage').getAttribute('aria-valuetext').includes('was lost')")
    assert "Call 18 of 24" in stage.get_attribute("aria-valuetext")
    shown.locator(".bill h2", has_text="Call 18 of 24").wait_for()
    stage.hover()
    shown.mouse.wheel(0, -80)
    _until(shown, "document.querySelector('.stage').getAttribute('aria-valuenow') === '16'")
    box = stage.bounding_box()
    shown.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 60)
    _until(shown, "Math.abs(Number(document.querySelector('.stage').getAttribute('aria-valuenow')) - 12) <= 2")


def test_the_picture_is_drawn_and_a_frame_of_scrubbing_is_short(shown: Any) -> None:
    colours = shown.evaluate(
        """() => { const c = document.querySelector('canvas.picture');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set();
        for (let i = 0; i < d.length; i += 4) s.add(`${d[i] >> 4},${d[i+1] >> 4},${d[i+2] >> 4}`); return s.size; }"""
    )
    assert colours > 20
    shown.locator(".stage").focus()
    for _ in range(12):
        shown.keyboard.press("ArrowLeft")
    _until(shown, "document.querySelector('.bill h2').textContent.startsWith('Call 12')")


def test_a_piece_tells_its_life_and_its_words_by_keyboard_alone(shown: Any) -> None:
    shown.locator(".scroller").focus()
    shown.keyboard.press("Home")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".words pre", timeout=SOON)
    assert shown.locator(".words pre").inner_text() == "Read the orders and tell me what stands out."
    life = shown.locator(".life").inner_text()
    assert "in 24 requests up to call 24, of 24 in all" in life
    assert 'ra recall "#' in life
    # What the browser adds up call by call is what the server divided.
    sums = shown.evaluate(
        """async () => { const { Recording } = await import('./recording.js');
        const id = (await (await fetch('api/sessions')).json()).cards[0].id;
        const session = await (await fetch(`api/sessions/${id}`)).json();
        const recording = new Recording(session);
        return session.pieces.map((piece, at) => [piece.dollars, recording.soFar(at, 1e9).dollars, piece.requests,
            recording.soFar(at, 1e9).requests]); }"""
    )
    for server, browser, travelled, counted in sums:
        assert browser == pytest.approx(server, abs=2e-8)
        assert counted == travelled


def test_search_costs_and_what_if(shell: Shell, transcript: Path, shown: Any) -> None:
    shown.keyboard.press("/")
    shown.keyboard.type("REFUNDED")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".findings mark", timeout=SOON)
    assert shown.locator(".findings mark").first.inner_text() == "refunded"
    shown.click("#tab-costs")
    shown.wait_for_selector("text=After a pause of", timeout=SOON)
    (row,) = [line for line in shown.locator(".costs-grid tr").all_inner_texts() if line.startswith("tool:read")]
    assert "$" in row
    shown.click("#tab-whatif")
    shown.click("label[for=if-auto]")
    shown.fill("#if-window", "20000")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".results tbody tr:nth-child(2)", timeout=SOON)
    flags = ["--trace", str(transcript), "--window", "20000", "--strategies", "nothing", "--json"]
    (trace,) = json.loads(shell.ra("bench", "context", *flags).stdout)["traces"]
    figures = [
        f"${row['cost']:.4f}" if row["cost"] < 1 else f"${row['cost']:.2f}"
        for row in trace["rows"]
        if row["strategy"] in ("recorded", "nothing")
    ]
    assert [text.split("\t")[1] for text in shown.locator(".results tbody tr").all_inner_texts()] == figures


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_and_scheme_is_readable(shown: Any, scheme: str) -> None:
    shown.emulate_media(color_scheme=scheme)
    for width in (360, 768, 1280, 2560):
        shown.set_viewport_size({"width": width, "height": 900})
        for tab in ("call", "costs", "whatif", "events", "search"):
            shown.click(f"#tab-{tab}")
            assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (width, tab)
            assert shown.evaluate(CONTRAST) == []


def test_colours_follow_the_system_until_the_reader_chooses(shown: Any) -> None:
    shown.emulate_media(color_scheme="dark")
    _until(shown, "document.documentElement.dataset.theme === 'dark'")
    shown.emulate_media(color_scheme="light")
    _until(shown, "document.documentElement.dataset.theme === 'light'")
    shown.get_by_label("Light or dark").click()
    _until(shown, "document.documentElement.dataset.theme === 'dark'")
    shown.reload()
    _until(shown, "document.documentElement.dataset.theme === 'dark'")


def test_every_module_is_asked_for_at_once() -> None:
    files = page_files()
    preloaded = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', files["index.html"][0].decode()))
    assert preloaded == {name for name in files if name.endswith(".js") and name != "app.js"}


def test_costs_and_findings_keep_room_for_their_words_on_a_telephone(shown: Any) -> None:
    shown.set_viewport_size({"width": 360, "height": 800})
    shown.click("#tab-costs")
    shown.wait_for_selector(".costs-grid .findings .what", timeout=SOON)
    widths = "[...document.querySelectorAll(selector)].map((each) => each.clientWidth || each.offsetWidth)"
    narrowest = f"selector => Math.min(...{widths})"
    assert shown.evaluate(narrowest, ".costs-grid .findings .what") > 250
    assert shown.evaluate(narrowest, ".costs-grid td:first-child") > 60
    assert shown.evaluate(
        "[...document.querySelectorAll('.costs-grid > .panel')].every((each) => each.scrollWidth <= each.clientWidth)"
    )


def test_a_file_that_cannot_be_shown_says_why(shell: Shell, page: Any) -> None:
    (shell.home / "broken.jsonl").write_bytes(b"\xff\xfe{not json\n")
    server = OpenPage(shell, str(shell.home / "broken.jsonl"))
    page.goto(server.address)
    page.wait_for_selector("text=None of these files could be shown", timeout=SOON)
    assert "broken.jsonl" in page.locator("details[open] li").inner_text()
    server.stop()


def test_hostile_words_run_nothing_and_nothing_leaves(shell: Shell, page: Any) -> None:
    transcripts.write(shell.home / "hostile.jsonl", 14, words=HOSTILE, result=HOSTILE + "x" * 300_000)
    server = OpenPage(shell, str(shell.home / "hostile.jsonl"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.address)
    page.wait_for_selector(".stage[aria-valuetext]", timeout=SOON)
    for line in (1, 3):
        page.evaluate("document.querySelector('.scroller').scrollTop = 0")
        page.click(f"#line-{line}")
        page.wait_for_selector(".words pre", timeout=SOON)
        assert "<script>" in page.locator(".words pre").first.inner_text()
    page.click("text=Show more")
    page.click("#tab-costs")
    page.wait_for_selector(".findings .what", timeout=SOON)
    page.keyboard.press("/")
    page.keyboard.type("<script>")
    page.keyboard.press("Enter")
    page.wait_for_selector(".findings mark", timeout=SOON)
    assert page.evaluate("window.ran") is None
    assert page.locator("main iframe, main img, main a[href^=javascript], main script").count() == 0
    assert [url for url in asked if not url.startswith(server.base)] == []
    assert page.said == []
    server.stop()


@pytest.mark.parametrize("text", [True, False], ids=["with-text", "without-text"])
def test_an_export_opens_from_a_file_offline(shell: Shell, page: Any, *, text: bool) -> None:
    secret = "sk-ant-REDACTED"
    transcripts.write(shell.home / "shared.jsonl", 14, words=f"{HOSTILE} my key is {secret}", result="</script>" * 50)
    target = shell.home / "page.html"
    flags = ["open", str(shell.home / "shared.jsonl"), "--export", str(target)]
    done = shell.ra(*flags, *([] if text else ["--without-text"]))
    assert done.returncode == 0, done.stderr
    page.context.set_offline(True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(target.as_uri())
    page.wait_for_selector(".stage[aria-valuetext]", timeout=SOON)
    page.click("#tab-whatif")
    page.click("text=Replay")
    page.wait_for_selector(".results tbody tr:nth-child(3)", timeout=SOON)
    page.click("#tab-costs")
    page.wait_for_selector("text=After a pause of", timeout=SOON)
    assert [url for url in asked if not url.startswith("data:")] == [target.as_uri()]
    assert page.evaluate("window.ran") is None
    assert page.said == []
    written = target.read_text()
    assert "modulepreload" not in written
    assert secret not in written
    assert ("onerror" in written) is text
    assert ("orders.csv" in written or "shop" in written) is text


def test_an_open_session_follows_a_running_one(shell: Shell, hello: LoopbackServer, page: Any) -> None:
    shell.ra("-q", "One.")
    server = OpenPage(shell)
    page.goto(server.address)
    page.click(".sessions a", timeout=SOON)
    page.wait_for_selector(".stage[aria-valuemax='1']", timeout=SOON)
    shell.ra("-q", "-c", "Two.")
    page.wait_for_selector(".stage[aria-valuemax='2'][aria-valuenow='2']", timeout=SOON)
    assert page.locator(".tiles dd").first.inner_text().startswith("2")
    assert page.said == []
    server.stop()


def test_the_list_filters_and_adds_up(shell: Shell, page: Any) -> None:
    folder = shell.home / "all"
    folder.mkdir()
    transcripts.write(folder / "one.jsonl", 6, words="Find the cart.")
    transcripts.write(folder / "two.jsonl", 14, words="Mend the cart.")
    server = OpenPage(shell, str(folder))
    page.goto(server.address)
    _until(page, "document.querySelectorAll('.sessions tbody a').length === 2")
    assert page.locator("[role=status]").first.inner_text().startswith("2 sessions, 20 calls, $")
    assert page.locator(".spark").count() == 2
    page.fill("#by-words", "mend")
    _until(page, "document.querySelectorAll('.sessions tbody tr').length === 1")
    page.keyboard.press("Tab")
    page.locator(".sessions a").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".stage[aria-valuemax='14']", timeout=SOON)
    page.click(".back")
    page.wait_for_selector(".sessions", timeout=SOON)
    assert page.said == []
    server.stop()


def _until(page: Any, condition: str) -> None:
    """Polls from here: the policy of the page lets nobody evaluate a string inside it."""
    end = time.monotonic() + SOON / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


# Text of less than 4.5 : 1 against what is behind it (WCAG AA), by the colours that the style sheet gives.
CONTRAST = """() => {
  const light = (c) => { const v = c.map((x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${e.tagName}.${e.className}: ${e.textContent.slice(0, 30)}`);
  }
  return bad;
}"""
