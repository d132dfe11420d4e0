"""The Store port: all sessions of a user, what both its implementations share, and how a fact becomes bytes."""

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
"""A time this far ahead of the clock was written when the clock was wrong: it says nothing about what is latest."""

_DEEP = 20_000
_facts = msgspec.json.Decoder(Fact)

T = TypeVar("T")


class SessionInfo(Value, frozen=True):
    """A line of `ra sessions list`.

    Dollars and tokens are what this session spent itself, not what it was forked with; `dollars` is None when no
    call had a known price.
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
    """A model at an address: behind another address the same name may have another window."""

    provider: str
    base_url: str
    model: str


class Learned(Value, frozen=True):
    """What the errors and the bills of an endpoint have taught: its window, and its tokens per token of o200k_base.

    `text` is the error that taught the window, `guessed` says that it named no number; times are in seconds since 1970.
    """

    window: int | None = None
    factor: float | None = None
    guessed: bool = False
    text: str = ""
    window_at: float = 0.0
    factor_at: float = 0.0


class StoredTimeline(Timeline, Protocol):
    """A session in a store. When `append` raises StoreError nothing of that call was recorded, and it can go on."""

    def texts(self) -> list[str]:
        """All that this session keeps outside its log."""
        ...

    def configured(self) -> Configured | None:
        """What the last request was made with, without reading the log; None before the first."""
        ...


class Store(Protocol):
    """All sessions of a user: in one SQLite file, or in a PostgreSQL database that many machines share.

    Reading never makes anything; the first write makes what is missing. Every method raises StoreError when the
    storage cannot be used.
    """

    @property
    def place(self) -> str:
        """Where it is, for people: a path, or an address without its password."""
        ...

    def close(self) -> None: ...

    def create(self, project: str, *, agent: str = "", channel: str = "", chat_id: str = "") -> StoredTimeline:
        """A new session. It is stored as soon as something has been recorded in it, not before."""
        ...

    def open(self, session: str, *, write: bool) -> StoredTimeline:
        """A session by its id, or by a beginning that no other id has. Raises UserError, SessionInUse."""
        ...

    def open_chat(self, project: str, agent: str, channel: str, chat_id: str) -> StoredTimeline:
        """The one session of a served chat, for writing; made when there is none. Raises SessionInUse.

        However many processes ask at the same time, a chat has one session.
        """
        ...

    def latest(self, project: str) -> str | None:
        """The session of the project in which something happened last."""
        ...

    def find(self, agent: str, channel: str, chat_id: str) -> str | None:
        """The session of a served chat: the newest that is not a fork of it."""
        ...

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """Latest first."""
        ...

    def info(self, session: str) -> SessionInfo:
        """Raises UserError."""
        ...

    def fork(self, session: str, at: int | None = None) -> str:
        """A new session that begins with the events up to `at` (all, if None) and goes its own way from there."""
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

        `like` is the session that it copies from another store: its id, chat and origin are taken over.
        Raises UserError when there is such a session already.
        """
        ...

    def delete(self, session: str) -> None:
        """Remove a session with everything that only it has. Raises SessionInUse while it is being written."""
        ...

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, project: str | None = None
    ) -> list[str]:
        """Delete sessions in which nothing happened for so long, or all but the newest `keep`.

        With both, what fits both. Returns the ids that are gone; sessions in use stay.
        """
        ...

    def search(
        self, query: str, *, project: str | None = None, exclude: str | None = None, limit: int = 20
    ) -> list[Hit]:
        """Events of all sessions that hold the words of the query, best first; `exclude` leaves out one session.

        An entry that was removed since is found too: what is live is for `folds.entries` to say.
        """
        ...

    def spent(self, *, since: float = 0.0, project: str | None = None) -> Iterator[tuple[str, TimelineEvent]]:
        """Every bill since a moment, with its session, oldest first; what a fork copied is not billed again."""
        ...

    def learned(self, endpoint: Endpoint) -> Learned: ...

    def all_learned(self) -> list[tuple[Endpoint, Learned]]:
        """What every endpoint taught, by model."""
        ...

    def learn_window(self, endpoint: Endpoint, window: int, *, text: str, guessed: bool = False) -> None:
        """Remember the window that an error taught, and its words."""
        ...

    def learn_factor(self, endpoint: Endpoint, factor: float) -> None:
        """Remember what bills taught of the model's tokens."""
        ...

    def forget(self, model: str | None = None) -> list[Endpoint]:
        """Drop what was learned of a model wherever it was met, or of all. Returns what is gone."""
        ...


class SessionRow(Value, frozen=True):
    """What a store holds of a session besides its events."""

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
    """Ten hex digits: short enough to type, and a beginning of it will do."""
    return os.urandom(5).hex()


def adopted_row(project: str, events: Sequence[TimelineEvent], like: SessionInfo | None, now: float) -> SessionRow:
    """Raises UserError when the events are not numbered as a session's are."""
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
    """The session that an id, or the beginning of one, names. Raises UserError, which says what there is."""
    exact = [match for match in matches if match[1].id == session] or list(matches)
    if len(exact) == 1:
        return exact[0]
    if matches:
        raise UserError(
            f"More than one session begins with {session}: {_some([row.id for _, row in matches])}; write more of it."
        )
    raise UserError(f"There is no session {session!r}. {_near(session, all_ids())}")


def _near(session: str, ids: Sequence[str]) -> str:
    from difflib import get_close_matches  # only on this error's path

    if not ids:
        return "Nothing has been stored yet."
    if near := get_close_matches(session, ids):
        return f"Did you mean {_some(near)}? `ra sessions list` shows all."
    return f"The latest are {_some(ids)}; `ra sessions list` shows all."


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")


def fork_row(row: SessionRow, at: int | None, last: int, now: float) -> SessionRow:
    """Raises UserError when there is nothing at that position."""
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
    """The fact of the one row, if there is one, of the kind `configured`."""
    for row in rows:
        fact = event_of(*row).fact
        assert isinstance(fact, Configured)
        return fact
    return None


def _however_deep(convert: Callable[[Any], T], value: Any) -> T:
    # A model may nest the arguments of a call as deep as its dialect could just read. What was recorded once must
    # be readable for ever, from a deeper stack too.
    try:
        return convert(value)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            return convert(value)
        finally:
            sys.setrecursionlimit(limit)
