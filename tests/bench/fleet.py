"""How much work do servers carry? Workers with a slow model, a crowd, ten thousand tasks, clients that only hang on.

`python -m tests.bench.fleet [overhead] [workers] [crowd] [memory] [clients]`, with `--postgres` on that instead of
SQLite; `workers` needs it always.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ra.app import App
from ra.config.load import resolve
from ra.config.options import Options
from ra.core.messages import say
from tests.bench.server import answer_text
from tests.postgres import PostgresServer, programs

RA = str(Path(sys.executable).parent / "ra")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


class Model:
    """Answers every request with a word, after a while."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):  # the server or the bench is done
            while await _message(reader) is not None:
                await asyncio.sleep(self._delay_s)
                writer.write(answer_text("done"))
        writer.close()


class Server:
    """`ra serve` on a free port, and what it uses."""

    def __init__(self, home: Path, env: dict[str, str], workers: int) -> None:
        command = [RA, "serve", "--port", "0", *(["--workers", str(workers)] if workers > 1 else [])]
        log = (home / "serve.log").open("wb")
        self.process = subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout
        address = self.process.stdout.readline().decode().strip().removeprefix("http://")
        self.host, _, port = address.rpartition(":")
        self.port = int(port)

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection(self.host, self.port)
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        answer = await _message(reader)
        writer.close()
        assert answer is not None, "the connection was closed without an answer"
        status = int(answer[0].split(b" ")[1])
        return Answer(status, answer[1], answer[2], time.monotonic() - began)

    async def task(self, chat: str) -> Answer:
        return await self.ask("POST", "/task", {"message": "hi", "context": {"channel": "bench", "chatId": chat}})

    async def ready(self) -> None:
        while (await self.ask("GET", "/healthz")).status != 200:
            await asyncio.sleep(0.1)

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def cpu_s(process: int) -> float:
    """What a process and its descendants have used, those that ended included."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(map(int, fields[11:15])) * TICK_S + sum(cpu_s(int(child)) for child in children)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, str], bytes] | None:
    """First line, headers and body of a request or an answer; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rows = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows if row)}
    return first.encode(), headers, await reader.readexactly(int(headers.get("content-length", 0)))


class Bench:
    """One folder, one model and one kind of store; a server for each measurement."""

    def __init__(self, store: PostgresServer | None) -> None:
        self.store = store

    @asynccontextmanager
    async def server(self, *, delay_s: float = 0, workers: int = 1) -> AsyncIterator[tuple[Server, dict[str, str]]]:
        model = Model(delay_s)
        listening = await asyncio.start_server(model.answer, "127.0.0.1", 0, backlog=1024)
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            env = {"PATH": "/usr/bin:/bin", "HOME": folder, "RA_HOME": f"{folder}/data"}
            env |= {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
            if self.store is not None:
                (home / ".config/ra").mkdir(parents=True)
                config = {"app": {"store": self.store.fresh()}}
                (home / ".config/ra/ra.yaml").write_text(json.dumps(config))
            server = await asyncio.to_thread(Server, home, env, workers)
            try:
                await server.ready()
                yield server, env
            finally:
                await asyncio.to_thread(server.stop)
                listening.close()

    async def overhead(self, tasks: int) -> None:
        """A task over HTTP beside the same prompts in process, both on the same store."""
        async with self.server() as (server, env):
            for number in range(20):
                await server.task(f"warm{number // 10}")
            began_s = cpu_s(server.process.pid)
            served = [(await server.task(f"chat{number // 10}")).seconds for number in range(tasks)]
            served_cpu_s = (cpu_s(server.process.pid) - began_s) / tasks
            bare, bare_cpu_s = await _bare(env, tasks)
        rows = {"POST /task": _figures(served, served_cpu_s), "bare prompt": _figures(bare, bare_cpu_s)}
        rows["above it"] = [of_task - of_prompt for of_task, of_prompt in zip(*rows.values(), strict=True)]
        for name, (middle, quick, cpu_ms) in rows.items():
            print(f"{name:12} median {middle:6.1f} ms, fastest tenth {quick:6.1f} ms, CPU {cpu_ms:5.1f} ms")

    async def workers(self, rounds: int) -> None:
        """Throughput of one worker and of four, with a model that takes a second, and the CPU that it takes."""
        assert self.store is not None, "workers share a database"
        rates = []
        for workers in (1, 4):
            clients = 8 * workers
            async with self.server(delay_s=1, workers=workers) as (server, _):
                # Each worker loads its tokenizer with its first tasks, half a second of CPU: that is not throughput.
                await _rounds(server, clients, 2)
                processes = {"servers": server.process.pid, "database": self.store.process}
                before = {name: cpu_s(process) for name, process in processes.items()} | {"bench": time.process_time()}
                seconds = await _rounds(server, clients, rounds)
                after = {name: cpu_s(process) for name, process in processes.items()} | {"bench": time.process_time()}
            rates.append(clients * rounds / seconds)
            cpu = ", ".join(f"{name} {(after[name] - before[name]) / clients / rounds * 1e3:.1f}" for name in after)
            print(f"{workers} workers: {rates[-1]:.1f} tasks a second of {clients}; CPU ms per task: {cpu}")
        print(f"4 workers / 1: {rates[1] / rates[0]:.2f}")

    async def crowd(self, clients: int) -> None:
        """That many requests at the same moment."""
        async with self.server(delay_s=0.2) as (server, _):
            await server.task("warm")
            answers = await asyncio.gather(*(server.task(f"chat{number}") for number in range(clients)))
            statuses = Counter(answer.status for answer in answers)
            bare = sum(answer.status == 429 and "retry-after" not in answer.headers for answer in answers)
            print(f"{clients} at once: {dict(statuses)}; 429 without Retry-After: {bare}")
            assert (await server.task("after")).status == 200

    async def memory(self, tasks: int) -> None:
        async with self.server() as (server, _):
            done = 0

            async def client(number: int, until: int) -> None:
                nonlocal done
                while done < until:
                    done += 1
                    assert (await server.task(f"chat{number}-{done // 200}")).status == 200

            await server.task("warm")
            print(f"after {done:6} tasks {server.resident_mb():6.1f} MB")
            for part in range(1, 6):
                await asyncio.gather(*(client(number, part * tasks // 5) for number in range(4)))
                print(f"after {done:6} tasks {server.resident_mb():6.1f} MB")

    async def clients(self, number: int) -> None:
        """Clients that follow a run in silence, read nothing, or vanish: what stays of them?"""
        async with self.server(delay_s=30) as (server, _):
            run_ended = asyncio.create_task(server.task("quiet"))
            await asyncio.sleep(3)  # what a first task loads is there
            # With PostgreSQL the server keeps the connections that a crowd made it open, for ten minutes.
            await asyncio.gather(*(server.ask("GET", "/runs") for _ in range(number)))
            before = server.open_files(), server.resident_mb()
            runs: list[str] = []
            while not runs:
                body = json.loads((await server.ask("GET", "/runs?state=running")).body)
                runs = [run["id"] for run in body["runs"]]
            connections = [await asyncio.open_connection(server.host, server.port) for _ in range(number)]
            for _, writer in connections:
                writer.write(f"GET /runs/{runs[0]}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            for reader, _ in connections[: number // 2]:
                await reader.readuntil(b"\r\n\r\n")
            began_s = cpu_s(server.process.pid)
            await asyncio.sleep(5)
            idle = (cpu_s(server.process.pid) - began_s) / 5
            during = server.open_files(), server.resident_mb()
            healthy = (await server.ask("GET", "/healthz")).seconds
            for _, writer in connections:
                writer.transport.abort()
            await server.ask("DELETE", f"/runs/{runs[0]}")
            await run_ended
            with contextlib.suppress(TimeoutError):  # what is left then is what the table shows
                async with asyncio.timeout(10):
                    while server.open_files() > before[0]:
                        await asyncio.sleep(0.1)
            after = server.open_files(), server.resident_mb()
        for name, (open_files, resident_mb) in (("before", before), ("during", during), ("after", after)):
            print(f"{name:7} {open_files:4} files, {resident_mb:6.1f} MB")
        print(f"{number} followers cost {idle:.1%} of a core; /healthz answered in {healthy * 1e3:.0f} ms meanwhile")


async def _rounds(server: Server, clients: int, rounds: int) -> float:
    """That many clients, each with a chat, one task after the other; returns the seconds."""

    async def client(number: int) -> None:
        for _ in range(rounds):
            assert (await server.task(f"chat{number}")).status == 200

    began = time.monotonic()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return time.monotonic() - began


def _figures(times: Sequence[float], cpu_s: float) -> list[float]:
    """Milliseconds: the median, the bound of the fastest tenth, CPU."""
    return [statistics.median(times) * 1e3, statistics.quantiles(times, n=10)[0] * 1e3, cpu_s * 1e3]


async def _bare(env: dict[str, str], tasks: int) -> tuple[Sequence[float], float]:
    """The same prompts in this process, with the same store: seconds of each, and CPU seconds of one."""
    resolved = resolve(cwd=Path(env["HOME"]), env=env)
    os.environ.update(env)
    app = App(resolved, Options(served=True), env=env, warn=lambda _: None)
    times: list[float] = []
    began_s = 0.0
    for chat in range(tasks // 10 + 1):
        if chat == 1:  # the first chat warms up
            times, began_s = [], time.process_time()
        session = app.session(app.store.create(env["HOME"], agent="", channel="bare", chat_id=str(chat)))
        for turn in range(10):
            began = time.monotonic()
            async for _ in session.prompt(say("user", f"message {turn}")):
                pass
            times.append(time.monotonic() - began)
        await session.close()
    return times, (time.process_time() - began_s) / len(times)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["overhead", "workers", "crowd", "memory", "clients"])
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--tasks", type=int, default=0)
    options = parser.parse_args()
    postgres = PostgresServer(folder) if (folder := programs()) else None
    try:
        for name in options.what:
            bench = Bench(postgres if options.postgres or name == "workers" else None)
            store = "SQLite" if bench.store is None else "PostgreSQL"
            print(f"{name}, {store}, load {os.getloadavg()[0]:.0f}")
            match name:
                case "overhead":
                    await bench.overhead(options.tasks or 200)
                case "workers":
                    await bench.workers(options.tasks or 10)
                case "crowd":
                    await bench.crowd(options.tasks or 1_000)
                case "memory":
                    await bench.memory(options.tasks or 10_000)
                case "clients":
                    await bench.clients(options.tasks or 200)
                case _:
                    raise SystemExit(f"{name} is not measured here")
    finally:
        if postgres is not None:
            postgres.remove()


if __name__ == "__main__":
    asyncio.run(main())
