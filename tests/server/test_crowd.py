"""Does it hold when many come at once? Order inside a chat, chats side by side, and a word for those who must wait."""

import json
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ra.providers.script import Step
from tests.server.conftest import Daemon, Model, asked, until


def test_two_hundred_tasks_over_fifty_chats(model: Model, start: Any) -> None:
    at_once: list[int] = []
    running = 0
    guard = threading.Lock()

    def script(body: dict[str, Any]) -> Step:
        nonlocal running
        with guard:
            running += 1
            at_once.append(running)
        threading.Timer(0.05, leave).start()
        word = re.findall(r"word-\d+-\d+", asked(body))[-1]
        return Step(text=f"heard {word}", delay_s=0.05)

    def leave() -> None:
        nonlocal running
        with guard:
            running -= 1

    model(script)
    daemon: Daemon = start()
    daemon.task("word-0-0", "warm")
    before = _resident_kb(daemon)
    statuses: Counter[int] = Counter()

    def client(number: int) -> str:
        chat, turn = divmod(number, 4)
        message = f"word-{chat}-{turn}"
        body = {"agent": "devops-agent", "message": message, "context": {"channel": "test", "chatId": f"chat{chat}"}}
        while True:
            status, answer, headers = daemon.ask("POST", "/task", body)
            with guard:
                statuses[status] += 1
            if status != 429:
                assert answer["content"] == f"heard {message}", answer
                return str(answer["sessionId"])
            assert 1 <= int(headers["retry-after"]) <= 60
            time.sleep(0.3)

    with ThreadPoolExecutor(200) as pool:
        sessions = list(pool.map(client, range(200)))
    assert statuses[200] == 200
    assert statuses[429] > 0
    assert set(statuses) == {200, 429}
    assert len(set(sessions)) == 50
    assert 1 < max(at_once) <= 9
    for chat in range(50):
        said = daemon.messages(f"chat{chat}")
        words = [text for role, text in said if role == "user"]
        assert sorted(words) == [f"word-{chat}-{turn}" for turn in range(4)]
        assert said == [pair for word in words for pair in (("user", word), ("assistant", f"heard {word}"))]
    assert _resident_kb(daemon) - before < 150_000


def test_tasks_of_a_chat_run_in_the_order_in_which_they_came(model: Model, start: Any) -> None:
    model(lambda body: Step(text="ok", delay_s=0.1))
    daemon: Daemon = start()
    with ThreadPoolExecutor(12) as pool:
        sent = []
        for number in range(10):
            sent.append(pool.submit(daemon.task, f"message {number}", "ordered"))
            time.sleep(0.02)
        other = pool.submit(daemon.task, "elsewhere", "another")
        assert other.result()[0] == 200  # a chat does not wait for another's line
        assert not sent[-1].done()
        assert {one.result()[0] for one in sent} == {200}
    words = [text for role, text in daemon.messages("ordered") if role == "user"]
    assert words == [f"message {number}" for number in range(10)]


def test_a_chat_that_is_idle_lets_go_of_its_session(model: Model, start: Any) -> None:
    """Sessions of many chats are not all kept open: what is open is bounded."""
    model()
    daemon: Daemon = start()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda n: daemon.task("hi", f"many{n}"), range(80)))
    assert {status for status, _ in told} == {200}
    locks = Path(daemon.shell.env["RA_HOME"]) / "locks"
    until(lambda: len(list(locks.glob("*.lock"))) <= 64)
    assert json.dumps(daemon.get("/healthz")) == '{"status": "ok", "running": 0, "waiting": 0}'


def _resident_kb(daemon: Daemon) -> int:
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found
    return int(found[1])
