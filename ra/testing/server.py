"""A loopback server that replaces a provider: it speaks a dialect, streams, and fails on request."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import msgspec

from ra.core.errors import UserError
from ra.core.model import Usage
from ra.core.value import JsonObject, Value, encode
from ra.providers.script import Fault, Script, Step
from ra.testing.wires import wire
from ra.testing.wires.wire import Wire, countable

MAX_BYTES = 50 * 1024 * 1024

DialectName = Literal["anthropic", "openai", "openai-chat", "google"]
Faults = Sequence[Fault | None] | Mapping[int, Fault] | Callable[[int, JsonObject], Fault | None]


class Received(Value, frozen=True):
    """A received request: header names are in lower case, `at` is on the monotonic clock."""

    path: str
    headers: dict[str, str]
    body: JsonObject
    at: float


class LoopbackServer:
    """A provider on 127.0.0.1, in a separate thread, from `with` to the end of the block.

    `script`     its answers: steps, a Script, or a function of the decoded body.
    `window`     its limit in tokens; a larger request is refused with the provider's own text.
    `chunk`      how the stream is split: one write per event, per byte, or per number of bytes.
    `faults`     the faults of request 0, 1, …; a request that fails in this way does not use up a step.
    `api_key`    the only accepted key; None accepts any.
    `cache`      body → (tokens read from, tokens written to) a prompt cache.
    `count`      text → tokens; o200k_base by default.
    """

    def __init__(
        self,
        dialect: DialectName,
        script: Script[JsonObject] | Iterable[Step] | Callable[[JsonObject], Step],
        *,
        window: int | None = None,
        chunk: Literal["event", "byte"] | int = "event",
        faults: Faults = (),
        api_key: str | None = None,
        cache: Callable[[JsonObject], tuple[int, int]] | None = None,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.requests: list[Received] = []
        self.wire: Wire = wire(dialect)
        self.script = script if isinstance(script, Script) else Script(script)
        self.window = window
        self.chunk = chunk
        self.api_key = api_key
        self._faults = faults
        self._cache = cache
        self._count = count or _o200k
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http: _Http | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL in the form that a client of this dialect expects."""
        assert self._http, "the server runs inside its `with` block"
        return f"http://127.0.0.1:{self._http.server_port}{self.wire.BASE}"

    @property
    def bodies(self) -> list[JsonObject]:
        return [request.body for request in self.requests]

    def start(self) -> "LoopbackServer":
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        self._closing.set()
        if self._http and self._thread:
            self._http.shutdown()
            self._thread.join()
            self._http.hang_up()

    def __enter__(self) -> "LoopbackServer":
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def answer(self, received: Received) -> "ServerAnswer":
        """The answer to a request: a refusal, or a stream with or without a fault."""
        body = received.body
        with self._lock:
            number = len(self.requests)
            self.requests.append(received)
            fault = self._fault(number, body)
            if fault and fault.kind == "status":
                return self._failed(fault)
            if self.api_key is not None and self.wire.key(received.headers) != self.api_key:
                return self._refused(*self.wire.BAD_KEY, {})
            model = str(body.get("model") or received.path.rpartition("/")[2].partition(":")[0])
            if request_fault := self.wire.fault(body, model=model):
                return self._refused(400, request_fault, {})
            sent = self._count(encode(countable(body)).decode())
            if self.window is not None and sent > self.window:
                kind, message = self.wire.overflow(sent, self.window)
                return self._refused(400, message, kind)
            try:
                step = self.script.step(body, turn=self.wire.turns(body))
            except UserError as error:
                return self._refused(400, str(error), {})
            if fault is None:
                self.script.done()
                fault = step.fault
        if fault and fault.kind == "status":
            return self._failed(fault)
        usage = step.usage or self._usage(step, body, sent)
        return ServerAnswer(
            frames=self.wire.frames(step, usage, body, model=model, number=number + 1), step=step, fault=fault
        )

    def wait(self, seconds: float) -> None:
        """Waits for some seconds, or until the server is closed."""
        if seconds > 0:
            self._closing.wait(seconds)

    def _fault(self, number: int, body: JsonObject) -> Fault | None:
        if callable(self._faults):
            return self._faults(number, body)
        if isinstance(self._faults, Mapping):
            return self._faults.get(number)
        return self._faults[number] if number < len(self._faults) else None

    def _usage(self, step: Step, body: JsonObject, sent: int) -> Usage:
        read, cache_write = self._cache(body) if self._cache else (0, 0)
        output = self._count(step.thinking + step.text + "".join(f"{call.name}{call.args}" for call in step.calls))
        return Usage(max(0, sent - read - cache_write), max(1, output), read, cache_write)

    def _refused(self, status: int, message: str, kind: JsonObject) -> "ServerAnswer":
        return ServerAnswer(status=status, payload=encode(self.wire.refusal(status, message, kind)))

    def _failed(self, fault: Fault) -> "ServerAnswer":
        retry_headers = {"retry-after": fault.retry_after, "retry-after-ms": fault.retry_after_ms}
        headers = {name: value for name, value in retry_headers.items() if value}
        if fault.message.startswith("<"):  # a proxy's page
            return ServerAnswer(fault.status, fault.message.encode(), headers | {"content-type": "text/html"})
        payload = encode(self.wire.refusal(fault.status, fault.message or "Overloaded", {}))
        return ServerAnswer(fault.status, payload, headers)


class ServerAnswer:
    """A refusal with a payload, or a stream of frames."""

    def __init__(
        self,
        status: int = 200,
        payload: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        frames: Iterator[bytes] | None = None,
        step: Step | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.status = status
        self.payload = payload
        self.headers = {"content-type": "application/json"} | dict(headers or {})
        self.frames = frames
        self.step = step or Step()
        self.fault = fault

    def stream(self, server: LoopbackServer) -> Iterator[bytes]:
        """The writes of the body, including the fault. The last one is empty where the connection must be dropped."""
        frames = list(self.frames or ())
        size = sum(map(len, frames))
        fault = self.fault
        at = size if fault is None else size // 2 if fault.after_bytes is None else min(fault.after_bytes, size)
        sent = 0
        for frame in frames:
            if fault and fault.kind in ("cut", "stall") and sent + len(frame) > at:
                yield from _split(frame[: at - sent], server.chunk)
                server.wait(fault.seconds if fault.kind == "stall" else 0)
                yield b""
                return
            if fault and fault.kind in ("error", "garbage") and sent >= at:
                yield self._broken_frame(server, fault)
                return
            yield from _split(frame, server.chunk)
            sent += len(frame)
            server.wait(self.step.pace_s)
        if fault:
            yield b"" if fault.kind in ("cut", "stall") else self._broken_frame(server, fault)

    def _broken_frame(self, server: LoopbackServer, fault: Fault) -> bytes:
        if fault.kind == "garbage":
            return fault.message.encode() or b'data: {"type": "content_bl\xff\n\n'
        return server.wire.error_frame(fault.status, fault.message or "Overloaded")


def _split(frame: bytes, chunk: str | int) -> Iterator[bytes]:
    size = 1 if chunk == "byte" else len(frame) if isinstance(chunk, str) else chunk
    return (frame[i : i + size] for i in range(0, len(frame), max(1, size)))


def _o200k(text: str) -> int:
    from ra.context.ranks import encoder  # takes 0.3 s, only at the first request

    return encoder.count(text)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that hangs up; prints other errors to stderr."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        self.server_close()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # already gone


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        owner = self.server.owner
        path = self.path.partition("?")[0]
        size = int(self.headers.get("content-length") or 0)
        if not owner.wire.is_call(path):
            self._refuse(owner, 404, f"Not found: {path}")
        elif size > MAX_BYTES:
            self._refuse(owner, 413, "Request exceeds the maximum size")
        else:
            raw = self.rfile.read(size)
            at = time.monotonic()
            try:
                body = msgspec.json.decode(raw, type=JsonObject)
            except (msgspec.MsgspecError, RecursionError) as error:
                self._refuse(owner, 400, f"The request body is not valid JSON: {error}")
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(owner, owner.answer(Received(self.path, headers, body, at)))

    def do_GET(self) -> None:
        self._refuse(self.server.owner, 404, f"Not found: {self.path}")

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, so that tests can read their own output."""

    def _refuse(self, owner: LoopbackServer, status: int, message: str) -> None:
        self.close_connection = True  # the body may not have been read
        self._send(owner, ServerAnswer(status, encode(owner.wire.refusal(status, message, {}))))

    def _send(self, owner: LoopbackServer, answer: ServerAnswer) -> None:
        owner.wait(answer.step.delay_s)
        self.send_response(answer.status)
        if answer.frames is None:
            for name, value in (answer.headers | {"content-length": str(len(answer.payload))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.payload)
            return
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for write in answer.stream(owner):
            if not write:
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(write), write))
        self.wfile.write(b"0\r\n\r\n")
