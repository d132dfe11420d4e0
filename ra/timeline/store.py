"""The Store port (all sessions of a user), what its implementations share, and the encoding of facts."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

import msgspec

from ra.core.errors import StoreError, UserError
from ra.core.facts import Configured, Fact, TimelineEvent
from ra.core.model import Usage
from ra.core.ports import Hit, Timeline
from ra.core.value import Value, encode
from ra.timeline import folds

CLOCK_SLACK_S = 60.0
"""A stored time this far in the future was written while the clock was wrong, and does not make a session latest."""

_DEEP = 20_000
_facts = msgspec.json.Decoder(Fact)

T = TypeVar("T")


class SessionInfo(Value, frozen=True):
    """A line of `ra sessions list`.

    Dollars and tokens do not include what a fork copied. `dollars` is None if no call had a known price.
    """

    id: str
    project: str
    title: str
    created: float
    updated: float
    events: int
    model: str
    dollars: Decimal | None
    tokens: Usage
    parent: str = ""
    forked_at: int = 0
    agent: str = ""
    channel: str = ""
    chat_id: str = ""


class Endpoint(Value, frozen=True):
    """A model at an address. At another address, a model of the same name may have another window."""

    provider: str
    base_url: str
    model: str


class Learned(Value, frozen=True):
    """What was learned from an endpoint's errors and bills: its window, and its tokens per token of o200k_base.

    `text` is the error that revealed the window; `guessed` if it named no number. Times are in seconds since 1970.
    """

    window: int | None = None
    factor: float | None = None
    guessed: bool = False
    text: str = ""
    window_at: float = 0.0
    factor_at: float = 0.0


class StoredTimeline(Timeline, Protocol):
    """A session in a store. If `append` raises StoreError, nothing of that call was recorded; the session is usable."""

    def texts(self) -> list[str]:
        """All texts that this session stores outside its log."""
        ...

    def configured(self) -> Configured | None:
        """The configuration of the last request, without reading the log; None before the first."""
        ...


class Store(Protocol):
    """All sessions of a user: in one SQLite file, or in a PostgreSQL database that many machines share.

    Reading creates nothing; the first write creates what is missing. Every method raises StoreError if the storage
    cannot be used.
    """

    @property
    def place(self) -> str:
        """The location, for people: a path, or an address without its password."""
        ...

    def close(self) -> None: ...

    def create(self, project: str, *, agent: str = "", channel: str = "", chat_id: str = "") -> StoredTimeline:
        """A new session. It is stored when the first fact is recorded in it."""
        ...

    def open(self, session: str, *, write: bool) -> StoredTimeline:
        """A session by its id or a unique beginning of it. Raises UserError, SessionInUse."""
        ...

    def open_chat(self, project: str, agent: str, channel: str, chat_id: str) -> StoredTimeline:
        """The session of a served chat, for writing; created if there is none. Raises SessionInUse.

        A chat has one session, however many processes open it at the same time.
        """
        ...

    def latest(self, project: str) -> str | None:
        """The project's session with the latest activity."""
        ...

    def find(self, agent: str, channel: str, chat_id: str) -> str | None:
        """The newest session of a served chat that is not a fork."""
        ...

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """Latest first."""
        ...

    def info(self, session: str) -> SessionInfo:
        """Raises UserError."""
        ...

    def fork(self, session: str, at: int | None = None) -> str:
        """A new session that begins with the events up to `at` (default: all) of another."""
        ...

    def adopt(
        self,
        project: str,
        events: Sequence[TimelineEvent],
        *,
        texts: Iterable[str] = (),
        like: SessionInfo | None = None,
    ) -> str:
        """Store a session that was recorded elsewhere, with its own times. Positions count from 1.

        `like` is the row of the session that is copied from another store: its id, chat and origin are kept.
        Raises UserError if there is such a session already.
        """
        ...

    def delete(self, session: str) -> None:
        """Remove a session and everything that belongs to it alone. Raises SessionInUse while it is being written."""
        ...

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, project: str | None = None
    ) -> list[str]:
        """Delete sessions that were inactive for so long, or all but the newest `keep`.

        With both arguments, only sessions that match both. Returns the deleted ids; sessions in use stay.
        """
        ...

    def search(
        self, query: str, *, project: str | None = None, exclude: str | None = None, limit: int = 20
    ) -> list[Hit]:
        """Events of all sessions that match the query, best first; `exclude` leaves out one session.

        Removed entries match too: `folds.entries` says which are live.
        """
        ...

    def spent(self, *, since: float = 0.0, project: str | None = None) -> Iterator[tuple[str, TimelineEvent]]:
        """Every bill since a time, with its session, oldest first. Bills that a fork copied are not repeated."""
        ...

    def learned(self, endpoint: Endpoint) -> Learned: ...

    def all_learned(self) -> list[tuple[Endpoint, Learned]]:
        """Everything learned from endpoints, by model."""
        ...

    def learn_window(self, endpoint: Endpoint, window: int, *, text: str, guessed: bool = False) -> None:
        """Store the window that an error revealed, with the error's text."""
        ...

    def learn_factor(self, endpoint: Endpoint, factor: float) -> None:
        """Store the factor that bills revealed for the model's tokens."""
        ...

    def forget(self, model: str | None = None) -> list[Endpoint]:
        """Drop what was learned about a model at every endpoint, or about all models. Returns what was dropped."""
        ...


class SessionRow(Value, frozen=True):
    """What a store has of a session besides its events."""

    id: str
    project: str
    agent: str
    channel: str
    chat_id: str
    parent: str
    forked_at: int
    created: float


def new_row(project: str, created: float, *, agent: str = "", channel: str = "", chat_id: str = "") -> SessionRow:
    return SessionRow(new_id(), project, agent, channel, chat_id, "", 0, created)


def new_id() -> str:
    """Ten hex digits: short enough to type; a unique beginning is enough."""
    return os.urandom(5).hex()


def adopted_row(project: str, events: Sequence[TimelineEvent], like: SessionInfo | None, now: float) -> SessionRow:
    """The row of a session that is stored from elsewhere. Raises UserError if its events are not numbered 1, 2, 3…"""
    if misplaced := next((event.at for place, event in enumerate(events, 1) if event.at != place), None):
        raise UserError(f"The events to store must be numbered 1, 2, 3 …; number {misplaced} is out of order.")
    if like is None:
        return new_row(project, events[0].time if events else now)
    return SessionRow(
        like.id, project, like.agent, like.channel, like.chat_id, like.parent, like.forked_at, like.created
    )


def pick(
    session: str, matches: Sequence[tuple[int, SessionRow]], all_ids: Callable[[], Sequence[str]]
) -> tuple[int, SessionRow]:
    """The session with this id or beginning of an id. Raises UserError with the closest ids."""
    exact = [match for match in matches if match[1].id == session] or list(matches)
    if len(exact) == 1:
        return exact[0]
    if matches:
        raise UserError(
            f"More than one session begins with {session}: {_some([row.id for _, row in matches])}; write more of it."
        )
    raise UserError(f"There is no session {session!r}. {_near(session, all_ids())}")


def _near(session: str, ids: Sequence[str]) -> str:
    from difflib import get_close_matches  # start-up time: only for this error

    if not ids:
        return "Nothing has been stored yet."
    if near := get_close_matches(session, ids):
        return f"Did you mean {_some(near)}? `ra sessions list` shows all."
    return f"The latest are {_some(ids)}; `ra sessions list` shows all."


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")


def fork_row(row: SessionRow, at: int | None, last: int, now: float) -> SessionRow:
    """The row of a fork. Raises UserError if there is no event at that position."""
    upto = last if at is None else at
    if not 0 <= upto <= last:
        raise UserError(f"Session {row.id} can be forked at 0 to {last}, not at {upto}.")
    return SessionRow(new_id(), row.project, row.agent, row.channel, row.chat_id, row.id, upto, now)


def need_something_to_prune(older_than_s: float | None, keep: int | None) -> None:
    if older_than_s is None and keep is None:
        raise UserError("Say what to prune: an age, or how many of the newest sessions to keep.")


def describe(
    row: SessionRow, *, said: Sequence[TimelineEvent], bills: Sequence[TimelineEvent], events: int, updated: float
) -> SessionInfo:
    """`said` are the first messages and the newest title, `bills` all bills of the session."""
    spend = folds.spend(event for event in bills if event.at > row.forked_at)
    return SessionInfo(
        id=row.id,
        project=row.project,
        title=folds.title(said),
        created=row.created,
        updated=updated,
        events=events,
        model=folds.model(bills),
        dollars=spend.dollars if spend.priced else None,
        tokens=spend.usage,
        parent=row.parent,
        forked_at=row.forked_at,
        agent=row.agent,
        channel=row.channel,
        chat_id=row.chat_id,
    )


def tag(fact: Fact) -> str:
    """`said`, `spent`, `entry-set` …"""
    return str(fact.__struct_config__.tag)


def encoded(fact: Fact) -> bytes:
    return _however_deep(encode, fact)


def event_of(at: int, time: float, fact: bytes) -> TimelineEvent:
    try:
        return TimelineEvent(at, time, _however_deep(_facts.decode, fact))
    except msgspec.DecodeError as error:
        raise StoreError(f"The event at position {at} is damaged and cannot be read: {error}.") from error


def newest_configured(rows: Sequence[tuple[int, float, bytes]]) -> Configured | None:
    """The fact in the row of the kind `configured`, if there is one."""
    for row in rows:
        fact = event_of(*row).fact
        assert isinstance(fact, Configured)
        return fact
    return None


def _however_deep(convert: Callable[[Any], T], value: Any) -> T:
    # A model may nest the arguments of a call as deep as its dialect could just read. What was recorded must
    # stay readable, also from a deeper stack.
    try:
        return convert(value)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            return convert(value)
        finally:
            sys.setrecursionlimit(limit)
