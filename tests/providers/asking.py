"""How do tests talk to a loopback server with nothing of ours in between but the dialect?"""

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from ra.core.events import CallDelta, Delta, TextDelta, ThinkingDelta
from ra.core.messages import Text, Thinking
from ra.core.model import Reply, Request
from ra.core.value import JsonObject, encode
from ra.providers.dialects import dialect as dialect_of
from ra.providers.errors import failure
from ra.testing import LoopbackServer


def post(server: LoopbackServer, dialect: str, request: Request, body: JsonObject) -> Iterator[JsonObject]:
    """The events of one answer, as far as they came."""
    spoken = dialect_of(dialect)
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    try:
        headers = spoken.headers("key") | {"content-type": "application/json"}
        connection.request("POST", spoken.path(request), encode(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise failure(response.status, dict(response.headers), response.read(), provider=dialect)
        try:
            raw = response.read()
        except http.client.IncompleteRead as error:
            raw = error.partial
    finally:
        connection.close()
    *whole, _unfinished = raw.split(b"\n\n")
    for event in whole:
        data = b"\n".join(line[6:] for line in event.split(b"\n") if line.startswith(b"data: "))
        if data and data != b"[DONE]":
            yield json.loads(data)


def read(dialect: str, request: Request, events: Iterator[JsonObject]) -> tuple[list[Delta], Reply]:
    reader = dialect_of(dialect).reader(request.model)
    deltas = [delta for event in events for delta in reader.feed(event)]
    return deltas, reader.finish()


def heard(deltas: list[Delta]) -> tuple[str, str, list[str]]:
    """What a face was told: text, thinking, names of calls."""
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thinking = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    return text, thinking, [delta.name for delta in deltas if isinstance(delta, CallDelta)]


def said(reply: Reply) -> tuple[str, str, list[str]]:
    """The same, taken from the Reply."""
    text = "".join(block.text for block in reply.message.blocks if isinstance(block, Text))
    thinking = "".join(block.text for block in reply.message.blocks if isinstance(block, Thinking))
    return text, thinking, [call.name for call in reply.message.calls]
