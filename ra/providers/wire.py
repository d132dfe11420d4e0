"""Declares the two halves of a call over the network: a dialect defines the bytes, a transport carries them."""

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
        """The usage reported so far."""
        ...

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        """The deltas in this event. Raises a ProviderError if the event is an error."""
        ...

    def finish(self) -> Reply:
        """The whole answer. Raises BadStream, with the partial answer, if the stream ended too early."""
        ...


class Dialect(Protocol):
    """Two pure functions: Request → body, and event dicts → deltas and a Reply."""

    name: ProviderName

    def path(self, request: Request) -> str:
        """The path below the base URL, such as `/v1/messages`."""
        ...

    def headers(self, api_key: str) -> dict[str, str]: ...

    def body(self, request: Request, info: ModelInfo) -> JsonObject: ...

    def reader(self, model: str) -> Reader: ...


SENT: Final[JsonObject] = {}
"""Not a server's event: marks the position in the stream at which the whole request has been sent."""


class Transport(Protocol):
    """Carries a body to the server and its events back: `http` (our own code) or `sdk` (the vendor's client)."""

    def events(self, dialect: Dialect, request: Request, body: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Yields SENT, then the decoded events of the answer.

        Raises AuthFailed, QuotaExceeded, Overflowed, Unavailable, BadStream.
        """
        ...

    async def close(self) -> None: ...
