"""An instant model on raw sockets: answers with as many tool calls as it was told to, then with text.

It speaks just enough of Anthropic's wire format; what it takes itself is measured in the same run by a raw client.
"""

import json
import socket
import threading
import time


def _event(name: str, **data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _answer(block: dict[str, object], delta: dict[str, object], stop: str) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": []}
    body = (
        _event("message_start", message={**message, "stop_reason": None, "usage": usage})
        + _event("content_block_start", index=0, content_block=block)
        + _event("content_block_delta", index=0, delta=delta)
        + _event("content_block_stop", index=0)
        + _event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 5})
        + _event("message_stop")
    )
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answer_text(text: str) -> bytes:
    """A whole answer on Anthropic's wire."""
    return _answer({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")


class InstantModel:
    """Context manager; `url`, and `arrivals` (time.monotonic of each request's last byte) with `bodies`."""

    def __init__(self, calls: int = 0, path: str = "a.txt") -> None:
        self.calls = calls
        self.arrivals: list[float] = []
        self.bodies: list[bytes] = []
        self._path = path
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> "InstantModel":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        with connection:
            while True:
                while b"\r\n\r\n" not in data:
                    if not (chunk := connection.recv(1 << 20)):
                        return
                    data += chunk
                head, _, data = data.partition(b"\r\n\r\n")
                length = int(
                    next(row.split(b":")[1] for row in head.lower().split(b"\r\n") if row.startswith(b"content-length"))
                )
                while len(data) < length:
                    data += connection.recv(1 << 20)
                self.arrivals.append(time.monotonic())
                self.bodies.append(data[:length])
                data = data[length:]
                connection.sendall(self._next(len(self.bodies)))

    def _next(self, number: int) -> bytes:
        if number <= self.calls:
            block = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
            args = json.dumps({"path": self._path, "offset": number})
            return _answer(block, {"type": "input_json_delta", "partial_json": args}, "tool_use")
        return answer_text("done")
