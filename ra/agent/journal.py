"""How is a fact recorded? On disk first, then in every fold that stands on the timeline."""

from collections.abc import Callable, Iterable, Sequence

from ra.core.errors import StoreError
from ra.core.facts import Fact, TimelineEvent
from ra.core.ports import Timeline

Fold = Callable[[TimelineEvent], None]


class Journal:
    """Writes to a timeline and keeps the folds in step. When the disk is full it goes on in memory, and says so."""

    def __init__(
        self,
        timeline: Timeline,
        folds: Sequence[Fold],
        *,
        in_memory: Callable[[Timeline], Timeline],
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.timeline = timeline
        self.warn = warn
        self.torn_off = False  # facts since then are lost when the process ends
        self._folds = folds
        self._in_memory = in_memory
        for event in timeline.events():
            self._apply(event)

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

    def keep(self, texts: Iterable[str]) -> None:
        """Store what was cut, so that its references can be recalled."""
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
        self.warn(f"{error} This run goes on, but what follows is not saved.")
        self.timeline = self._in_memory(self.timeline)

    def _apply(self, event: TimelineEvent) -> None:
        for fold in self._folds:
            fold(event)
