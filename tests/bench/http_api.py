"""What does `POST /task` cost over the bare agent call? The same messages in process and through a real server."""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

from ra.app import App
from ra.config.load import resolve
from ra.config.options import Options
from ra.core.messages import say
from tests.bench.server import InstantModel

RA = str(Path(sys.executable).parent / "ra")
CHATS, TURNS = 20, 10


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, InstantModel() as model:
        home = Path(folder)
        env = {"PATH": "/usr/bin:/bin", "HOME": folder, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": model.url}
        bare = asyncio.run(_bare(home, env | {"RA_HOME": str(home / "bare")}))
        served, first_kb, last_kb = _served(home, env | {"RA_HOME": str(home / "served")})
    extra = statistics.median(served) - statistics.median(bare)
    print(f"the bare agent call        {statistics.median(bare) * 1000:7.1f} ms")
    print(f"POST /task                 {extra * 1000:7.1f} ms above it   (aim ≤ 10 ms)")
    first, last = first_kb / 1024, last_kb / 1024
    print(f"memory of ra serve         {first:7.1f} MB at first, {last:.1f} MB after {len(served)} tasks")


async def _bare(home: Path, env: dict[str, str]) -> list[float]:
    resolved = resolve(cwd=home, env=env)
    app = App(resolved, Options(served=True), env=env, warn=lambda _: None)
    times = []
    for chat in range(CHATS):
        session = app.session(app.store.create(str(home), agent="", channel="bench", chat_id=str(chat)))
        for turn in range(TURNS):
            began = time.monotonic()
            async for _ in session.prompt(say("user", f"message {turn}")):
                pass
            times.append(time.monotonic() - began)
        await session.close()
    return times


def _served(home: Path, env: dict[str, str]) -> tuple[list[float], int, int]:
    command = [RA, "serve", "--port", "0"]
    process = subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    host, port = process.stdout.readline().decode().strip().removeprefix("http://").split(":")
    times = []
    first_kb = 0
    for chat in range(CHATS):
        connection = HTTPConnection(host, int(port))
        for turn in range(TURNS):
            body = json.dumps({"message": f"message {turn}", "context": {"channel": "bench", "chatId": str(chat)}})
            began = time.monotonic()
            connection.request("POST", "/task", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = json.loads(answer.read())
            times.append(time.monotonic() - began)
            assert (answer.status, "error" in told) == (200, False), told
            first_kb = first_kb or _resident_kb(process.pid)
        connection.close()
    last_kb = _resident_kb(process.pid)
    process.terminate()
    process.wait(20)
    return times, first_kb, last_kb


def _resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


if __name__ == "__main__":
    main()
