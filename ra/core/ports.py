"""Protocols with at least two shipped implementations each."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from ra.core.events import Streamed
from ra.core.facts import Fact, TimelineEvent
from ra.core.model import Request
from ra.core.value import Value


class Provider(Protocol):
    """A model that can be called: a dialect over a transport, the embedded model, or a script."""

    name: str

    def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        """Sent, deltas, then exactly one Reply.

        Raises Overflowed, AuthFailed, QuotaExceeded, Unavailable (retries used up) or BadStream.
        """
        ...

    async def close(self) -> None: ...


class Hit(Value, frozen=True):
    """A find of a search: where it is, what kind of fact it is (its tag, such as `said`) and the words around it."""

    session: str
    at: int
    time: float
    kind: str
    snippet: str


class Timeline(Protocol):
    """The append-only log of one session: in a file, or in memory with `--no-session`."""

    session: str

    @property
    def durable(self) -> bool:
        """Whether what is recorded outlives the process."""
        ...

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        """Record facts, durably, in order. While a database is away they wait for `flush`. Raises StoreError."""
        ...

    def flush(self) -> None:
        """Make everything that was recorded durable. Raises StoreAway while the database is away, StoreError."""
        ...

    def events(self, since: int = 0) -> Iterable[TimelineEvent]:
        """Everything after position `since`, oldest first."""
        ...

    def search(self, query: str, limit: int = 20) -> Sequence[Hit]: ...

    def keep(self, text: str) -> str:
        """Store text outside the log and return its reference: the same text has the same reference."""
        ...

    def kept(self, ref: str) -> str | None:
        """The text behind a reference, in a later process too."""
        ...

    def close(self) -> None: ...
