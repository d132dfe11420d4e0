"""What is recorded is on the disk first; when the disk gives up, the run goes on in memory and says so."""

from collections.abc import Sequence

import pytest

from ra.agent.journal import Journal
from ra.core.errors import StoreError
from ra.core.facts import Fact, Said, TimelineEvent
from ra.core.messages import say
from ra.core.ports import Timeline
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


def in_memory(timeline: Timeline) -> Timeline:
    return MemoryTimeline(timeline.session, events=timeline.events(), texts=timeline.kept)


def prompt(number: int) -> Said:
    return Said(say("user", f"prompt {number}"))


def test_folds_hear_what_was_stored_and_then_what_is_recorded_in_order() -> None:
    disk = Disk(9)
    disk.append(prompt(1), prompt(2))
    heard: list[TimelineEvent] = []
    journal = Journal(disk, [heard.append], in_memory=in_memory)
    journal.record(prompt(3))
    assert [(event.at, event.fact) for event in heard] == [(n, prompt(n)) for n in (1, 2, 3)]


def test_nothing_is_recorded_without_facts() -> None:
    assert Journal(Disk(0), [], in_memory=in_memory).record() == ()


def test_a_full_disk_is_said_once_and_positions_go_on() -> None:
    disk, said, heard = Disk(2), list[str](), list[TimelineEvent]()
    journal = Journal(disk, [heard.append], in_memory=in_memory, warn=said.append)
    for number in (1, 2, 3, 4):
        journal.record(prompt(number))
    assert [event.at for event in heard] == [1, 2, 3, 4]
    assert (journal.torn_off, journal.session) == (True, "s")
    assert said == ["The disk is full. This run goes on, but what follows is not saved."]
    assert [event.fact for event in disk.events()] == [prompt(1), prompt(2)]


def test_texts_are_kept_in_memory_when_the_disk_is_full() -> None:
    journal = Journal(Disk(0), [], in_memory=in_memory)
    journal.keep(["a long text"])
    assert journal.timeline.kept(MemoryTimeline().keep("a long text")) == "a long text"


def test_a_second_failure_is_not_hidden() -> None:
    journal = Journal(Disk(0), [], in_memory=lambda timeline: Disk(0))
    with pytest.raises(StoreError):
        journal.record(prompt(1))
