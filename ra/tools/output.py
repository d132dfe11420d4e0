"""How is output of any size kept? Both ends in bounded memory, with a line on what is missing between them."""

import codecs

HEAD_BYTES = 500_000
TAIL_BYTES = 500_000


class Ends:
    """The first and the last bytes of a stream. Memory stays constant however much goes through."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut only at twice the size: a cut moves bytes, and this way each byte is moved once.
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def text(self) -> str:
        tail = self._tail[-self._tail_bytes :] if self._tail_bytes else bytearray()
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (self._head + tail).decode("utf-8", "replace")
        first = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)  # a torn last character is dropped
        start = next((place for place in range(min(4, len(tail))) if tail[place] & 0xC0 != 0x80), 0)
        last = tail[start:].decode("utf-8", "replace")
        return f"{first}\n[… {missing} bytes left out …]\n{last}"
