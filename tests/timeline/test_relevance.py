"""A question in plain words finds the passage that answers it, among the first."""

import pytest

from ra.core.facts import Checkpointed, Said
from ra.core.messages import Message, Text, ToolCall, ToolResult, say
from ra.timeline.relevance import keywords
from tests.timeline.conftest import Home

FACTS = (
    "My name is Michael, and what I am going to ask is a question that I do have had for some time now.",
    "I live in Seattle, where it rains. The parcel did arrive, but its steam wand was bent.",
    "What my father does is what many do: he builds ships. What is it to you, though?",
    "We qualified for free shipping after I had added two accessories to the order.",
    "What do I do when it is what I do not like? It is what it is, and I do as I do.",
)


@pytest.mark.parametrize(
    ("question", "at"),
    [
        ("Where do I live?", 2),
        ("What's my father's profession?", 3),
        ("Which part of the parcel arrived bent?", 2),
        ("Which accessory do I have to add to qualify?", 4),
        ("(what did the PARCEL's wand look like, again?)", 2),
    ],
)
def test_a_question_finds_its_answer_first(question: str, at: int, home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(*(Said(say("user", text)) for text in FACTS))
    assert next(hit.at for hit in timeline.search(question)) == at


def test_words_in_one_passage_are_better_than_words_all_over_a_file(home: Home) -> None:
    timeline = home.open().create("/p")
    filler = "Nothing of note. " * 60
    timeline.append(
        Said(say("user", f"The staging server. {filler} A port of call. {filler} Which database? {filler}")),
        Said(say("user", f"{filler} The staging database listens on port 5433. {filler}")),
    )
    hits = timeline.search("port of the staging database")
    assert [hit.at for hit in hits] == [2, 1]
    assert "The staging database listens on port 5433." in hits[0].snippet


def test_earlier_searches_are_no_answers(home: Home) -> None:
    timeline = home.open().create("/p")
    call = ToolCall("1", "Recall", {"query": "colour of the depot door"})
    timeline.append(
        Said(say("user", "The door of the depot is green.")),
        Said(Message("assistant", (call,))),
        Said(
            Message("tool", (ToolResult("1", "Recall", (Text("#1: The door of the depot is green. Which colour?"),)),))
        ),
        Said(Message("assistant", (Text("The depot has a green door."), call))),
    )
    assert [hit.at for hit in timeline.search("Which colour is the depot door?")] == [4, 1]


def test_an_index_or_a_summary_comes_after_what_it_stands_for(home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(
        Said(say("user", "One of the things that I know of the depot is this: its colour, which is green.")),
        Checkpointed("digest", "threshold", marker="depot colour: green"),
    )
    assert [hit.at for hit in timeline.search("depot colour")] == [1, 2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (("What's", "my", "dog's", "name?"), ("dog", "nam")),
        (("first-time", "buyers"), ("first", "tim", "buy")),
        (("src/agent/loop_test.py:", "v1.2", "running"), ("src/agent/loop_test.py", "v1.2", "run")),
        (("two words", "Größe"), ("two words", "Größ")),
        (("what", "is", "it?"), ("what", "is", "it?")),
        (("重启", "->"), ("重启",)),
        (("->",), ("->",)),
    ],
)
def test_what_of_a_query_says_something(query: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert keywords(query) == expected
