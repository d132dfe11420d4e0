"""Records facts, first on disk and then in every fold, and reports the progress of a run."""

import asyncio
import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Protocol

from ra.core.errors import StoreAway, StoreError
from ra.core.events import Event, Warned
from ra.core.facts import Fact, Spent, TimelineEvent
from ra.core.functions import Emit, Price
from ra.core.model import Request
from ra.core.ports import Timeline
from ra.session.budget import Budget, Limits, Reservation, Tally
from ra.session.recipe import Notices
from ra.timeline.in_memory import MemoryTimeline

AWAY_S = (0.1, 0.5, 1.0)  # pauses between attempts to reach a database; the last one repeats


class Progress:
    """Counts and reports one run at a time. Between runs, warnings go to the session's notices."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._listener: Emit | None = None
        self.budget = Budget(Limits())
        self.spent = Tally()
        self.iteration = self.compactions = 0
        self.last_text = ""

    def begin(self, listener: Emit, budget: Budget) -> None:
        self._listener = listener
        self.budget = budget
        self.spent = Tally()
        self.iteration = self.compactions = 0
        self.last_text = ""

    def end(self) -> None:
        self._listener = None

    def emit(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)

    def warn(self, text: str) -> None:
        if self._listener is not None:
            self._listener(Warned(text))
        else:
            self._notices.warn(text)

    async def reserve(self, request: Request, input_tokens: int, price: Price) -> tuple[Request, Reservation]:
        """As `Budget.reserve`, but waits for an agent's ledger whose database cannot be reached. Raises Stopped."""
        outage = Outage(self)
        while True:
            try:
                return self.budget.reserve(request, input_tokens, price)
            except StoreAway as error:
                await outage.wait(error)

    def count(self, *facts: Fact) -> None:
        """Add the cost of calls; the run's total includes summaries, plans and sub-agents."""
        for fact in facts:
            if isinstance(fact, Spent):
                self.spent = self.spent.plus(fact.usage, Decimal(fact.dollars) if fact.dollars else None)


class Outage:
    """An unreachable database: warns once, and waits between attempts."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tries = 0

    async def wait(self, error: StoreAway) -> None:
        if not self._tries:
            self._progress.warn(f"{error} The run continues when the database is back.")
        await asyncio.sleep(AWAY_S[min(self._tries, len(AWAY_S) - 1)])
        self._tries += 1


@contextmanager
def _without_collection() -> Iterator[None]:
    """What a session is read into stays: to look through it for garbage would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Fold(Protocol):
    """State computed from the facts: the engine's view, the current segment."""

    def apply(self, event: TimelineEvent) -> None: ...


class Journal:
    """Writes to a timeline and keeps the folds in step. When the disk is full it warns and continues in memory."""

    def __init__(self, timeline: Timeline, folds: Sequence[Fold], progress: Progress) -> None:
        self.timeline = timeline
        self.torn_off = False  # later facts exist in memory only
        self._folds = folds
        self._progress = progress
        self._last = 0  # the position of the newest event
        appliers = [fold.apply for fold in folds]
        with _without_collection():
            for event in timeline.events():
                self._last = event.at
                for apply in appliers:
                    apply(event)

    @property
    def session(self) -> str:
        return self.timeline.session

    def record(self, *facts: Fact) -> Sequence[TimelineEvent]:
        if not facts:
            return ()
        try:
            events = self.timeline.append(*facts)
        except StoreError as error:
            self._tear_off(error)
            events = self.timeline.append(*facts)
        for event in events:
            self._apply(event)
        return events

    async def durable(self) -> None:
        """Return once everything recorded is stored. Nothing may be sent to a model or a tool before that.

        Waits for an unreachable database without a limit, unless the run has one or is interrupted.
        """
        outage = Outage(self._progress)
        while True:
            try:
                self.timeline.flush()
                return
            except StoreAway as error:
                await outage.wait(error)
            except StoreError as error:
                self._tear_off(error)

    def keep(self, texts: Iterable[str]) -> None:
        """Store texts that were cut, so that their references can be recalled."""
        for text in texts:
            try:
                self.timeline.keep(text)
            except StoreError as error:
                self._tear_off(error)
                self.timeline.keep(text)

    def _tear_off(self, error: StoreError) -> None:
        if self.torn_off:
            raise error
        self.torn_off = True
        self._progress.warn(f"{error} This run continues, but nothing more of it is saved.")
        stored = self.timeline
        try:
            events = list(stored.events())
        except StoreError:  # a damaged database; the folds hold what the next request needs
            events = []
        self.timeline = MemoryTimeline(stored.session, events=events, after=self._last, texts=stored.kept)

    def _apply(self, event: TimelineEvent) -> None:
        self._last = event.at
        for fold in self._folds:
            fold.apply(event)
