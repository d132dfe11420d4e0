"""A server that sends exactly the bytes it is told to, and a dialect as small as can be."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ra.core.errors import BadStream
from ra.core.events import Delta, TextDelta
from ra.core.messages import Message, Text, say
from ra.core.model import ModelInfo, Reply, Request, Usage

REQUEST = Request("m", (), (say("user", "hi"),))


class EchoDialect:
    """Each event is `{"text": …}`; the answer is complete with `{"end": true}`."""

    name = "anthropic"

    def path(self, request: Request) -> str:
        return "/v1/messages"

    def headers(self, api_key: str) -> dict[str, str]:
        return {"x-api-key": api_key}

    def body(self, request: Request, info: ModelInfo) -> dict[str, Any]:
        return {"model": request.model}

    def reader(self, model: str) -> "EchoReader":
        return EchoReader()


class EchoReader:
    def __init__(self) -> None:
        self.text = ""
        self.usage = Usage()
        self.ended = False

    def feed(self, event: dict[str, Any]) -> Iterator[Delta]:
        self.ended = self.ended or bool(event.get("end"))
        if "text" in event:
            self.text += event["text"]
            yield TextDelta(event["text"])

    def finish(self) -> Reply:
        message = Message("assistant", (Text(self.text),) if self.text else ())
        if not self.ended:
            raise BadStream("The answer ended too early.", partial=message, usage=Usage(output=len(self.text)))
        return Reply(message, Usage(output=len(self.text)), "end")


class Asked:
    def __init__(self, connection: int, head: str, body: bytes) -> None:
        self.connection = connection
        self.line, *rest = head.split("\r\n")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest) if name}
        self.body = body


class RawServer:
    """Answers the nth request with the nth of `answers`: pieces of bytes; None in one closes the connection there.

    A float is a pause in seconds; `Ellipsis` says nothing for ever.
    """

    def __init__(self, answers: Sequence[Sequence[Any]]) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.connections = 0
        self.gone = 0  # connections that the client closed
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip()
                length = next(
                    (
                        int(v)
                        for n, _, v in (x.partition(": ") for x in head.split("\r\n"))
                        if n.lower() == "content-length"
                    ),
                    0,
                )
                self.asked.append(Asked(number, head, await reader.readexactly(length)))
                for piece in self.answers.pop(0) if self.answers else [None]:
                    if piece is None:
                        return
                    if piece is ...:
                        await reader.read()
                        self.gone += 1
                        return
                    if isinstance(piece, float):
                        await asyncio.sleep(piece)
                        continue
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone += 1
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator["RawServer"]:
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0, **options)
        self.url = f"http{'s' if options.get('ssl') else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()


def answer(*chunks: bytes, status: str = "200 OK", kind: str = "text/event-stream", headers: str = "") -> list[bytes]:
    """A whole HTTP answer in chunked encoding, one piece for each chunk."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n".encode()
    return [head, *(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks if chunk), b"0\r\n\r\n"]


HELLO = b'data: {"text": "Hello"}\n\n'
END = b'data: {"end": true}\n\n'
