"""`make bench`: how fast is ra? Ratios against things measured in the same run; nothing here is a test."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import context, http_api, repl, replay, tasks, tools, versions
from tests.bench.server import InstantModel

RA = str(Path(sys.executable).parent / "ra")
PYTHON = sys.executable


def best(work: Callable[[], float], runs: int = 9) -> float:
    return min(work() for _ in range(runs))


def timed(command: list[str], **kwargs: object) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, **kwargs)
    return time.monotonic() - began


def environment(home: Path, url: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "RA_HOME": str(home / "data"),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": url,
    }


def raw_call_ms(url: str, body: bytes, count: int = 50) -> float:
    """What the same exchange takes on a raw socket: the floor under every client."""
    host, port = url.removeprefix("http://").split(":")
    times = []
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            began = time.monotonic()
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            data = b""
            while b"message_stop" not in data:
                data += connection.recv(1 << 20)
            times.append(time.monotonic() - began)
    return statistics.median(times) * 1000


def main() -> None:
    bare = best(lambda: timed([PYTHON, "-c", "pass"]))
    version = best(lambda: timed([RA, "--version"]))
    print(f"bare python                {bare * 1000:7.1f} ms")
    print(f"ra --version               {version * 1000:7.1f} ms   {version / bare:4.1f} × bare   (aim ≤ 3 ×)")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "a.txt").write_text("hello\n" * 300)
        first = best(lambda: first_request(home))
        print(f"start to first request     {first * 1000:7.1f} ms   {first / bare:4.1f} × bare   (aim ≤ 250 ms)")
        steps(home)
    versions.main()
    imports()
    context.main()
    http_api.main()
    repl.main()
    tools.main()
    replay.main()
    tasks.main()


def first_request(home: Path) -> float:
    with InstantModel() as model:
        began = time.monotonic()
        subprocess.run([RA, "hi"], env=environment(home, model.url), cwd=home, check=True, capture_output=True)
        return model.arrivals[0] - began


def steps(home: Path, calls: int = 100) -> None:
    with InstantModel(calls) as model:
        subprocess.run([RA, "hi"], env=environment(home, model.url), cwd=home, check=True, capture_output=True)
        gaps = [b - a for a, b in zip(model.arrivals, model.arrivals[1:], strict=False)]
        body = model.bodies[0]
    with InstantModel() as other:
        raw = raw_call_ms(other.url, body)
    per_call = statistics.median(gaps) * 1000
    print(
        f"one tool call              {per_call:7.1f} ms   {per_call / raw:4.1f} × a raw socket's {raw:.2f}   (aim ≤ 6)"
    )
    print(f"peak memory                {versions.memory(RA):7.1f} MB   (aim ≤ 70)")
    from ra.context.tokens import Estimator

    request = json.loads(body)
    tokens = Estimator().text(json.dumps({"system": request["system"], "tools": request["tools"]}, ensure_ascii=False))
    print(f"first request              {tokens:7d} tokens of system and {len(request['tools'])} tools   (aim ≤ 1 400)")


def imports() -> None:
    """The dearest imports before the first request."""
    with tempfile.TemporaryDirectory() as folder, InstantModel() as model:
        done = subprocess.run(
            [PYTHON, "-X", "importtime", "-m", "ra", "hi"],
            env=environment(Path(folder), model.url),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    rows = [
        line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:") and "[us]" not in line
    ]
    dearest = sorted(((int(own.split(":")[1]), name.strip()) for own, _, name in rows), reverse=True)[:12]
    print("dearest imports:           " + ", ".join(f"{name} {us / 1000:.1f}" for us, name in dearest) + " ms")


if __name__ == "__main__":
    main()
