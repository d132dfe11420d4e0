"""The two halves of a call over a wire: a dialect says what the bytes mean, a transport carries them."""

from collections.abc import AsyncGenerator, Iterator
from typing import Final, Protocol

from ra.core.events import Delta
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.core.value import JsonObject
from ra.providers.settings import ProviderName


class Reader(Protocol):
    """Reads the events of one answer, in order."""

    @property
    def usage(self) -> Usage:
        """What was told of it so far."""
        ...

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        """What this event says. Raises a ProviderError when the event is an error."""
        ...

    def finish(self) -> Reply:
        """The whole answer. Raises BadStream, with what had arrived, when the stream ended before it was complete."""
        ...


class Dialect(Protocol):
    """Two pure functions: Request → body, and event dicts → deltas and a Reply."""

    name: ProviderName

    def path(self, request: Request) -> str:
        """Below the base URL, such as `/v1/messages`."""
        ...

    def headers(self, api_key: str) -> dict[str, str]: ...

    def body(self, request: Request, info: ModelInfo) -> JsonObject: ...

    def reader(self, model: str) -> Reader: ...


SENT: Final[JsonObject] = {}
"""Not an event of the server's: the place in the stream of events where the whole request has left."""


class Transport(Protocol):
    """Carries one body to the server and its events back: `http` (our own bytes) or `sdk` (the vendor's client)."""

    def events(self, dialect: Dialect, request: Request, body: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """SENT, then the decoded events of the answer.

        Raises AuthFailed, QuotaExceeded, Overflowed, Unavailable, BadStream.
        """
        ...

    async def close(self) -> None: ...
