"""Taking messages out of the window, bringing them back, and going back: facts, so that a replay agrees."""

from hypothesis import given
from hypothesis import strategies as st

from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, Clip, Fact, Kept, Rewound, Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, ToolResult, say

FACTS: tuple[Fact, ...] = (
    Said(say("user", "first")),  # 1
    Said(Message("assistant", (Text("I look."), ToolCall("c1", "Read", {"path": "a"})))),  # 2
    Said(Message("tool", (ToolResult("c1", "Read", (Text("word " * 400),)),))),  # 3
    Said(say("assistant", "It says word.")),  # 4
    Said(say("user", "second")),  # 5
    Said(say("assistant", "Yes.")),  # 6
    Said(say("user", "third")),  # 7
    Said(say("assistant", "No.")),  # 8
)


def folded(*facts: Fact) -> View:
    view = View(Estimator())
    for at, fact in enumerate(facts, 1):
        view.apply(TimelineEvent(at, float(at), fact))
    return view


def test_going_back_is_the_fold_of_what_came_before() -> None:
    assert folded(*FACTS, Rewound(4)).messages == folded(*FACTS[:4]).messages


def test_going_back_behind_a_compaction_takes_it_back() -> None:
    cut = Checkpointed(
        "truncate", "asked", hidden=((2, 3),), clips=(Clip(4, 0, 1),), marker="[hidden]", summary="so far"
    )
    view = folded(*FACTS[:6], cut, *FACTS[6:], Rewound(4))
    assert view.messages == folded(*FACTS[:4]).messages
    assert (view.hidden, view.summary) == ((), "")


@given(st.lists(st.sampled_from(["cut", "keep", "talk"]), max_size=12), st.data())
def test_going_back_agrees_with_never_having_gone_on(steps: list[str], data: st.DataObject) -> None:
    facts: list[Fact] = list(FACTS[:4])
    prompts = []
    for number, step in enumerate(steps):
        if step == "talk":
            prompts.append(len(facts))
            facts += [Said(say("user", f"more {number}")), Said(say("assistant", f"done {number}"))]
        elif step == "cut":
            facts.append(Checkpointed("truncate", "asked", hidden=((2, 3),), clips=(Clip(4, 0, 1),), marker="[hidden]"))
        else:
            facts.append(Kept(3))
    to = data.draw(st.sampled_from(prompts)) if prompts else len(facts)
    assert folded(*facts, Rewound(to)).messages == folded(*facts[:to]).messages


def test_what_was_hidden_comes_back_where_it_was_and_stays() -> None:
    cut = Checkpointed("truncate", "asked", hidden=((2, 4),), marker="[hidden]")
    view = folded(*FACTS, cut, Kept(3))
    assert [message.role for message in view.messages[1:4]] == ["user", "assistant", "tool"]  # marker, call, result
    assert 2 in [group.at for group in view.pinned()]


def test_the_marker_of_an_omission_goes_when_the_message_comes_back() -> None:
    omission = Checkpointed("omit", "omitted by the user", hidden=((4, 4),), marker="[The user took #4 out.]")
    assert len(folded(*FACTS, omission).messages) == len(FACTS)
    assert folded(*FACTS, omission, Kept(4)).messages == folded(*FACTS).messages


def test_a_shortened_result_comes_back_whole() -> None:
    clip = Checkpointed("omit", "omitted by the user", clips=(Clip(3, 0, 0),))
    assert folded(*FACTS, clip).messages != folded(*FACTS).messages
    assert folded(*FACTS, clip, Kept(3)).messages == folded(*FACTS).messages
