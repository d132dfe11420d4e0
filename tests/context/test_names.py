from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compaction.cut import hole, split
from ra.context.compaction.digest import Digest
from ra.context.compaction.names import AGE, FADING, LATE, Seen, Sightings, written
from ra.context.tokens import Estimator
from ra.context.view import Group, Item, View
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say


def sightings(groups: Iterable[tuple[int, Sequence[str]]]) -> Sightings:
    row = Sightings(len)
    for at, names in groups:
        row.add(at, names)
    return row


def test_a_name_is_known_by_its_weight_and_where_it_was_seen_last():
    row = sightings([(2, ["oldName"] * 4), (5, ["oldName", "newName"]), (9, ["newName"] * 3)])
    assert (row["oldName"], row["newName"]) == (Seen(5, 1, 5, 7), Seen(4, 2, 9, 7))


def test_names_that_were_used_often_and_lately_come_first_and_long_ones_later():
    groups = [(at, [*["often_used"] * 3, f"seen_once_{at}"]) for at in range(1, 30)]
    row = sightings([(0, ["long_ago"] * 3), *groups, (30, ["src/" + "very/" * 30 + "long.py"] * 3)])
    chosen = row.within(60, row.best())
    assert chosen[0] == "often_used"
    assert "seen_once_29" in chosen
    assert "seen_once_1" not in chosen


def test_names_share_a_reference_with_those_seen_nearby():
    names = [f"name_{at}" for at in range(1, 101)]
    row = sightings((at, [name]) for at, name in enumerate(names, 1))
    lines = written(sorted(names), row).splitlines()
    assert len(lines) <= 40
    assert lines[0] == "#1-3: name_1 name_2 name_3"
    assert written(["name_7"], row) == "#7: name_7"
    assert written([], row) == ""


ROWS = st.lists(st.lists(st.text("abcXYZ_/", min_size=1, max_size=8)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(-5, 60))
def test_what_is_chosen_fits(groups: list[list[str]], room: int):
    row = sightings(enumerate(groups))
    chosen = row.within(room, row.best())
    assert sum(map(len, chosen)) <= max(0, room)
    assert len(set(chosen)) == len(chosen)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sets(st.text("abc", min_size=1, max_size=2)))
def test_the_best_names_are_those_of_most_worth(groups: list[list[str]], skipped: set[str]):
    row = sightings(enumerate(groups))
    names = {name for group in groups for name in group} - skipped
    newest = max((row[name].order for name in names), default=0)

    def worth(name: str) -> float:
        return float(row[name].weight / (newest - row[name].order + AGE) ** FADING / len(name) ** 0.5)

    best = list(row.best(skipped))
    assert set(best) == names
    assert [worth(name) for name in best] == pytest.approx(sorted(map(worth, names), reverse=True))


@settings(max_examples=100, deadline=None)
@given(ROWS, ROWS, ROWS)
def test_a_row_that_was_cut_back_is_as_if_it_had_never_been_longer(
    head: list[list[str]], lost: list[list[str]], tail: list[list[str]]
):
    row = sightings(enumerate([*head, *lost]))
    assert row.cut(len(head))
    for at, names in enumerate(tail, len(head)):
        row.add(at, names)
    fresh = sightings(enumerate([*head, *tail]))
    assert [(name, row[name]) for name in row.best()] == [(name, fresh[name]) for name in fresh.best()]


def test_a_row_is_not_cut_back_further_than_it_remembers():
    row = sightings((at, [f"name_{at}"]) for at in range(LATE + 2))
    assert not row.cut(1)
    assert len(row) == LATE + 2
    assert row.cut(2)
    assert len(row) == 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=1, max_size=6))
def test_an_index_does_not_depend_on_the_indexes_before(rows: list[set[int]]):
    """A resumed session has read no groups before, and its index is the same."""
    messages = [say("user", f"look at src/module_{number % 7}.py and handle_{number}") for number in range(31)]
    groups = [Group("said", Item((number, 0), message)) for number, message in enumerate(messages)]
    digest = Digest(Estimator())
    for row in rows:
        hidden = [groups[number] for number in sorted(row)]
        assert digest.names(hidden, 60) == Digest(Estimator()).names(hidden, 60)


def test_a_second_index_still_knows_what_the_first_one_hid():
    """The newest prompt stays where it is, between what the two compactions hide."""
    view = View(Estimator())
    at = 0

    def record(message: Message) -> None:
        nonlocal at
        at += 1
        view.apply(TimelineEvent(at, float(at), Said(message)))

    def work(first: int, last: int) -> None:
        for number in range(first, last):
            call = ToolCall(f"c{number}", "Read", {"path": f"src/module_{number}.py"})
            record(Message("assistant", (Text("next"), call)))
            record(result(call, f"def handle_{number}(): ...\n" + "word " * 200))

    digest = Digest(Estimator())
    record(say("user", "start"))
    work(0, 5)
    record(say("user", "go on"))
    for first in (5, 15):
        work(first, first + 10)
        gap = hole(view, split(view, 500).compactable)
        cut = gap.checkpoint("digest", digest.stand_in(gap.groups, gap.ref, 3000, visible=()))
        at += 1
        view.apply(TimelineEvent(at, float(at), cut))
    index = next(message.text for message in view.messages if message.name == "compacted")
    assert all(f"handle_{number}" in index for number in range(20))
    assert 'recall("#2-' in index
