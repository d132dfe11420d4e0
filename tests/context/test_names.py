from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compaction.cut import hole, split
from ra.context.compaction.digest import Digest
from ra.context.compaction.names import choose, fold, written
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say


def test_a_name_is_known_by_its_weight_and_where_it_was_seen_last():
    seen = fold([(2, ["oldName"] * 4), (5, ["oldName", "newName"]), (9, ["newName"] * 3)])
    assert {name: (one.weight, one.order, one.at) for name, one in seen.items()} == {
        "oldName": (5, 1, 5),
        "newName": (4, 2, 9),
    }


def test_names_that_were_used_often_and_lately_come_first_and_long_ones_later():
    groups = [(at, [*["often_used"] * 3, f"seen_once_{at}"]) for at in range(1, 30)]
    seen = fold([(0, ["long_ago"] * 3), *groups, (30, ["src/" + "very/" * 30 + "long.py"] * 3)])
    chosen = choose(seen, 60, len)
    assert chosen[0] == "often_used"
    assert "seen_once_29" in chosen
    assert "seen_once_1" not in chosen


def test_names_share_a_reference_with_those_seen_nearby():
    seen = fold([(at, [f"name_{at}"]) for at in range(1, 101)])
    lines = written(sorted(seen), seen).splitlines()
    assert len(lines) <= 40
    assert lines[0] == "#1-3: name_1 name_2 name_3"
    assert written(["name_7"], seen) == "#7: name_7"
    assert written([], seen) == ""


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.text("abcXYZ_/", min_size=1, max_size=8)), max_size=12),
    st.integers(-5, 60),
)
def test_what_is_chosen_fits(groups: list[list[str]], room: int):
    seen = fold(enumerate(groups))
    chosen = choose(seen, room, len)
    assert sum(map(len, chosen)) <= max(0, room)
    assert len(set(chosen)) == len(chosen)
    assert chosen == choose(seen, room, len)


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
