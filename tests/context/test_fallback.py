from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compaction.cut import fall_back, split
from ra.context.render import level
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, say
from tests.context.sessions import CONFIGURED, Log, answers, asks, paired, step

COUNT = Estimator()


def words(count: int, word: str = "word") -> str:
    return f"{word} " * count


def view_of(*messages: Message) -> View:
    view = View(COUNT)
    log = Log(view.apply)
    log.record(CONFIGURED)
    log.say(*messages)
    return view


def lowered(view: View, room: int, *, goal: int | None = None, recent: int = 600) -> tuple[View, list[str]]:
    """The view after the ladder, and what each rung clipped, by position."""
    facts = fall_back(view, split(view, recent), goal or room, room, COUNT)
    after = view.after(*facts)
    return after, [",".join(f"#{clip.at}" for clip in fact.clips) or "hidden" for fact in facts]


def test_old_outputs_are_shortened_first():
    view = view_of(say("user", "Go"), *step(1, words(2000)), *step(2, words(400)))
    after, rungs = lowered(view, 1500)
    assert rungs == ["#4"]
    assert after.messages[-1] == view.messages[-1]


def test_recent_outputs_come_second():
    view = view_of(say("user", "Go"), *step(1, words(300)), *step(2, words(2000)))
    _, rungs = lowered(view, 600)
    assert rungs == ["#4", "#6"]


def test_then_the_largest_of_all_but_the_prompts():
    view = view_of(say("user", "Go"), say("assistant", words(3000)), *step(1, "ok"))
    after, rungs = lowered(view, 1000)
    assert rungs == ["#3"]
    assert 'recall("#3")' in after.messages[1].text


def test_the_input_is_cut_last_and_says_so():
    view = view_of(say("user", f"BEGIN {words(5000)} END"), *step(1, words(200)), *step(2, words(200)))
    after, rungs = lowered(view, 900)
    assert rungs[-1].startswith("#2")
    prompt = after.messages[0].text
    assert prompt.startswith("BEGIN word")
    assert prompt.endswith("word  END")
    assert 'recall("#2") reads the rest' in prompt


def test_long_arguments_pictures_and_thinking_do_not_stand_in_the_way():
    write = ToolCall("w", "Write", {"path": "a.txt", "content": words(4000)})
    thought = Message("assistant", (Thinking(words(3000), "seal"), write), model="m")
    look = Message("user", (Text("Look"), Image("image/png", b"x")))
    view = view_of(look, thought, answers(write, "ok"), say("user", "Well?"))
    after, _ = lowered(view, 700)
    assert after.tokens() <= 700
    assert paired(after.messages)


def test_the_first_prompt_stays_word_for_word_while_anything_else_can_give_way():
    view = view_of(say("user", words(300, "first")), *step(1, words(900)), say("user", words(300, "newest")))
    after, _ = lowered(view, 650)
    assert after.messages[0] == view.messages[0]
    assert 'recall("#5") reads the rest' in after.messages[-1].text
    assert after.tokens() <= 650


def test_a_prompt_with_more_files_than_references_fit_keeps_the_first_and_the_last():
    files = tuple(Text(words(50, f"file{n}")) for n in range(60))
    view = view_of(Message("user", (Text("Compare these:"), *files)))
    after, _ = lowered(view, 400)
    assert after.tokens() <= 400
    assert [block.text[:12] for block in after.messages[0].blocks] == ["Compare thes", "file59 file5"]


def test_a_summary_of_a_larger_window_is_shortened():
    view = view_of(say("user", "Go"), *step(1, "ok"))
    view = view.after(Checkpointed("summarize", "", summary=words(5000)))
    after, _ = lowered(view, 900)
    assert after.messages[0].text.startswith("Go")
    assert after.tokens() <= 900


def test_sealed_thinking_without_text_does_not_stand_in_the_way():
    call = ToolCall("c", "Read", {"path": "a.txt"})
    view = view_of(say("user", "Go"), Message("assistant", (Thinking("", "s" * 9000), call)), answers(call, "ok"))
    after, rungs = lowered(view, 600)
    assert rungs == ["#3"]
    assert after.messages[1].blocks == (call,)


def test_a_rung_that_saves_nothing_leaves_no_fact():
    view = view_of(say("user", words(400)), say("user", "And now?"))
    facts = fall_back(view, split(view, 0), 100, 100, COUNT)
    sizes = [view.tokens(), *(view.after(*facts[: number + 1]).tokens() for number in range(len(facts)))]
    assert sizes == sorted(set(sizes), reverse=True)


def test_a_rung_that_is_taken_goes_down_to_the_goal():
    view = view_of(say("user", "Go"), *step(1, words(2000)), *step(2, words(100)))
    after, _ = lowered(view, 2000, goal=1200)
    assert after.tokens() <= 1200


def test_nothing_is_done_when_it_fits():
    assert lowered(view_of(say("user", "Go")), 1000)[1] == []


blocks = st.one_of(
    st.builds(lambda n: say("user", words(n)), st.integers(0, 1500)),
    st.builds(lambda n: say("assistant", "压缩" * n), st.integers(0, 900)),
    st.builds(
        lambda sizes: [
            asks(*(c := [ToolCall(f"c{i}", "T", {"x": words(n // 4)}) for i, n in enumerate(sizes)])),
            *(answers(one, words(n)) for one, n in zip(c, sizes, strict=True)),
        ],
        st.lists(st.integers(0, 2000), min_size=1, max_size=4),
    ),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(blocks, min_size=1, max_size=8), st.integers(500, 3000))
def test_the_ladder_always_ends_in_what_fits(groups, room):
    view = view_of(say("user", "Go"), *(m for group in groups for m in (group if isinstance(group, list) else [group])))
    after, rungs = lowered(view, room, goal=room * 4 // 5, recent=room // 5)
    assert after.tokens() <= room
    assert len(rungs) <= 6
    assert paired(after.messages)


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_a_level_fills_the_room_and_no_more(sizes, room):
    mark = level(sizes, room)
    assert sum(min(size, mark) for size in sizes) <= room
    if sum(sizes) > room:
        assert sum(min(size, mark + 1) for size in sizes) > room
