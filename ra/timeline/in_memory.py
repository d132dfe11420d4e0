"""A timeline in memory, for a session that must not or cannot be stored."""

import time
from collections.abc import Callable, Iterable, Sequence

from ra.core.facts import Fact, TimelineEvent
from ra.core.ports import Hit
from ra.core.text import reference


class MemoryTimeline:
    """A timeline without a file: for `--no-session`, and to keep answering when the disk is full.

    `events` and `texts` come from the timeline that this one replaces; its positions continue from there, or `after`
    a position where the events could not be read back.
    """

    durable = False

    def __init__(
        self,
        session: str = "",
        *,
        events: Iterable[TimelineEvent] = (),
        after: int = 0,
        texts: Callable[[str], str | None] = lambda ref: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.session = session
        self._events = list(events)
        self._after = after
        self._texts: dict[str, str] = {}
        self._older_texts = texts
        self._clock = clock

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        now = self._clock()
        after = self._events[-1].at if self._events else self._after
        new_events = [TimelineEvent(at, now, fact) for at, fact in enumerate(facts, after + 1)]
        self._events += new_events
        return new_events

    def flush(self) -> None:
        """Do nothing: no writes are pending."""

    def events(self, since: int = 0) -> list[TimelineEvent]:
        if not self._events or since < self._events[0].at:
            return list(self._events)
        return self._events[since - self._events[0].at + 1 :]

    def search(self, query: str, limit: int = 20) -> list[Hit]:
        from ra.timeline.query import scan  # start-up time: only a search needs it

        return scan(self.session, self._events, query, limit)

    def keep(self, text: str) -> str:
        ref = reference(text)
        self._texts[ref] = text
        return ref

    def kept(self, ref: str) -> str | None:
        return self._texts[ref] if ref in self._texts else self._older_texts(ref)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
