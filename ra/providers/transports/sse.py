"""Reads server-sent events from a byte stream, however the bytes are split."""

from collections.abc import Iterator

import msgspec

from ra.core.errors import BadStream
from ra.core.value import JsonObject

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Enough for an image in base64; a server that never ends its event cannot exhaust memory."""

DONE = "[DONE]"
_BOM = b"\xef\xbb\xbf"


class EventReader:
    """Turns chunks of a response body into the `data` of its events. A chunk may end anywhere, even in a character."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest: list[bytes] = []  # pieces of an unfinished line
        self._data: list[bytes] = []  # data lines of an unfinished event
        self._size = 0
        self._first = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The events that this chunk completes."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF that was split between two chunks
            self._after_cr = False
        for line in chunk.splitlines(keepends=True):  # on bytes: CR, LF and CRLF, nothing else
            self._size += len(line)
            if self._size > self._max_bytes:
                raise BadStream(f"The server sent one event of more than {self._max_bytes} bytes.")
            self._rest.append(line)
            if line.endswith((b"\n", b"\r")):
                yield from self._end_line()
        self._after_cr = chunk.endswith(b"\r") or (self._after_cr and not chunk)

    def finish(self) -> Iterator[str]:
        """The last event, if the body ended properly but without the empty line that should close the event."""
        if self._rest:
            yield from self._end_line()
        yield from self._end_event()

    def _end_line(self) -> Iterator[str]:
        line = b"".join(self._rest).rstrip(b"\r\n")
        self._rest.clear()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            yield from self._end_event()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"")
        # Every other line is a comment, an id, a retry time or the event's name, which its data repeats.

    def _end_event(self) -> Iterator[str]:
        self._size = 0
        if self._data:
            payload = b"\n".join(self._data).decode("utf-8", "replace")
            self._data.clear()
            if payload:
                yield payload


def decode(data: str | bytes) -> object:
    """JSON from a server. Input that msgspec refuses (a lone surrogate, NaN) is read leniently and cleaned."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        import json  # start-up time: hardly ever needed

        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        try:
            lenient = json.loads(text, strict=False)
            return json.loads(json.dumps(lenient, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise BadStream(f"The server sent invalid JSON: {_excerpt(text)}.") from error
    except RecursionError as error:
        raise BadStream("The server sent JSON that is nested too deeply.") from error


def event(data: str) -> JsonObject:
    """The dict in the data of an event."""
    value = decode(data)
    if not isinstance(value, dict):
        raise BadStream(f"The server sent an event that is not an object: {_excerpt(data)}.")
    return value


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:120] + "…")
