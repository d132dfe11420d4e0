"""What is recorded is on the disk first; when the disk gives up, the run goes on in memory and says so."""

from collections.abc import Sequence

from ra.core.errors import StoreError
from ra.core.facts import Fact, Said, TimelineEvent
from ra.core.messages import say
from ra.session.journal import Journal, Progress
from ra.session.recipe import Notices
from ra.timeline.in_memory import MemoryTimeline


class Disk(MemoryTimeline):
    """A disk with room for so many facts."""

    def __init__(self, room: int) -> None:
        super().__init__("s")
        self.room = room

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        if len(self.events()) + len(facts) > self.room:
            raise StoreError("The disk is full.")
        return super().append(*facts)

    def keep(self, text: str) -> str:
        if not self.room:
            raise StoreError("The disk is full.")
        return super().keep(text)


class Heard:
    """A fold that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[TimelineEvent] = []

    def apply(self, event: TimelineEvent) -> None:
        self.events.append(event)


def progress(*warnings: list[str]) -> Progress:
    return Progress(Notices(warnings[0].append if warnings else print))


def prompt(number: int) -> Said:
    return Said(say("user", f"prompt {number}"))


def test_folds_hear_what_was_stored_and_then_what_is_recorded_in_order() -> None:
    disk = Disk(9)
    disk.append(prompt(1), prompt(2))
    heard = Heard()
    journal = Journal(disk, [heard], progress())
    journal.record(prompt(3))
    assert [(event.at, event.fact) for event in heard.events] == [(n, prompt(n)) for n in (1, 2, 3)]


def test_nothing_is_recorded_without_facts() -> None:
    assert Journal(Disk(0), [], progress()).record() == ()


def test_a_full_disk_is_said_once_and_positions_go_on() -> None:
    disk, said, heard = Disk(2), list[str](), Heard()
    journal = Journal(disk, [heard], progress(said))
    for number in (1, 2, 3, 4):
        journal.record(prompt(number))
    assert [event.at for event in heard.events] == [1, 2, 3, 4]
    assert (journal.torn_off, journal.session) == (True, "s")
    assert said == ["The disk is full. This run continues, but nothing more of it is saved."]
    assert [event.fact for event in disk.events()] == [prompt(1), prompt(2)]


def test_texts_are_kept_in_memory_when_the_disk_is_full() -> None:
    journal = Journal(Disk(0), [], progress())
    journal.keep(["a long text"])
    assert journal.timeline.kept(MemoryTimeline().keep("a long text")) == "a long text"


class Damaged(Disk):
    """A disk that can no longer be written to, nor read back."""

    broken = False

    def append(self, *facts: Fact) -> Sequence[TimelineEvent]:
        if self.broken:
            raise StoreError("The database is damaged.")
        return super().append(*facts)

    def events(self, since: int = 0) -> list[TimelineEvent]:
        if self.broken:
            raise StoreError("The database is damaged.")
        return super().events(since)


def test_a_run_continues_and_its_positions_go_on_where_the_stored_events_cannot_be_read_back() -> None:
    disk, heard, warnings = Damaged(9), Heard(), list[str]()
    disk.append(prompt(1), prompt(2))
    journal = Journal(disk, [heard], progress(warnings))
    disk.broken = True
    journal.record(prompt(3))
    journal.record(prompt(4))
    assert [event.at for event in heard.events] == [1, 2, 3, 4]
    assert [event.at for event in journal.timeline.events(since=3)] == [4]
    assert len(warnings) == 1
