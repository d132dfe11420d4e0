"""The protocols of providers and timelines; each has at least two shipped implementations."""

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
        """Yields Sent, deltas, then exactly one Reply.

        Raises Overflowed, AuthFailed, QuotaExceeded, Unavailable (retries used up) or BadStream.
        """
        ...

    async def close(self) -> None: ...


class Hit(Value, frozen=True):
    """A match of a search: its position, the kind of its fact (a tag such as `said`) and the words around it."""

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
        """Records facts in order, durably. While the database is away, they wait for `flush`. Raises StoreError."""
        ...

    def flush(self) -> None:
        """Makes every recorded fact durable. Raises StoreAway while the database is away, else StoreError."""
        ...

    def events(self, since: int = 0) -> Iterable[TimelineEvent]:
        """The events after position `since`, oldest first."""
        ...

    def search(self, query: str, limit: int = 20) -> Sequence[Hit]: ...

    def keep(self, text: str) -> str:
        """Stores text outside the log and returns its reference: the same text has the same reference."""
        ...

    def kept(self, ref: str) -> str | None:
        """The text with this reference, also one that an earlier process stored; None when there is none."""
        ...

    def close(self) -> None: ...
