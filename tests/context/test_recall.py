from hypothesis import given
from hypothesis import strategies as st

from ra.context.recall import recall
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, EntrySet, Noticed, Spent
from ra.core.messages import Image, Message, Text, ToolCall, ToolResult, say
from ra.core.model import Section, Usage
from ra.core.value import Value
from tests.context.sessions import CONFIGURED, Log, Recorded, answers, asks


class Hit(Value, frozen=True):
    session: str
    at: int
    snippet: str


def log_of(*messages: Message) -> Log:
    log = Log()
    log.say(*messages)
    return log


CALL = ToolCall("c", "Bash", {"command": "ls"})


def test_a_position_is_read_word_for_word():
    log = log_of(say("user", "  Hi\n\n there "), asks(CALL, text="Let me see."), answers(CALL, "a\tb\n"))
    timeline = Recorded(log)
    assert recall("#1", timeline) == "#1 user:\n  Hi\n\n there "
    assert recall("#2", timeline) == '#2 assistant:\nLet me see.\n[call Bash {"command":"ls"}]'
    assert recall("#3", timeline) == "#3 tool:\n[result of Bash]\na\tb\n"


def test_ranges_and_lists_of_positions():
    timeline = Recorded(log_of(*(say("user", f"m{n}") for n in range(1, 8))))
    assert recall("#2-3", timeline) == "#2 user:\nm2\n\n#3 user:\nm3"
    assert recall(" #2 - #3 ", timeline) == recall("#2-3", timeline)
    assert recall("#1, #6-7", timeline) == "#1 user:\nm1\n\n#6 user:\nm6\n\n#7 user:\nm7"


def test_other_facts_can_be_read_too():
    log = Log()
    log.record(
        Noticed(Section("AGENTS.md", "stable", "Use tabs.")),
        EntrySet("zone", "UTC+8"),
        Checkpointed("digest", "threshold", marker="[gap]", summary="sum"),
    )
    log.say(Message("tool", (ToolResult("x", "Shot", (Text("see"), Image("image/png", b"123")), is_error=True),)))
    timeline = Recorded(log)
    assert recall("#1", timeline) == "#1 context AGENTS.md:\nUse tabs."
    assert recall("#2", timeline) == "#2 entry zone:\nUTC+8"
    assert recall("#3", timeline) == "#3 compaction:\nsum\n[gap]"
    assert recall("#4", timeline) == "#4 tool:\n[error of Shot]\nsee\n[image/png, 3 bytes]"


def test_a_range_leaves_out_bills_and_settings_which_have_their_own_references():
    log = log_of(say("user", "m1"))
    log.record(Spent("m", Usage(input=5)), CONFIGURED)
    log.say(say("user", "m4"))
    timeline = Recorded(log)
    assert recall("#1-4", timeline) == "#1 user:\nm1\n\n#4 user:\nm4"
    assert recall("#2", timeline).startswith('#2 {"type":"spent"')
    assert '"type":"configured"' in recall("#2-3", timeline)


def test_text_that_was_kept_by_its_hash():
    timeline = Recorded(Log(), texts={"~0123456789ab": "the whole file"})
    assert recall("~0123456789ab", timeline) == "the whole file"
    assert recall("~000000000000", timeline) == "Nothing is stored under ~000000000000 in this session."


def test_what_is_not_there_is_said():
    assert recall("#99", Recorded(log_of(say("user", "x")))) == "Nothing is stored under #99 in this session."
    assert recall("#1+99", Recorded(log_of(say("user", "x")))) == "There are only 10 characters behind #1."


def test_words_are_searched_for():
    hits = [Hit("test", 12, "the  red\nbutton"), Hit("other", 3, "red")]
    found = recall("red button", Recorded(Log(), found=hits))
    assert found.splitlines() == [
        "#12: the red button",
        "session other #3: red",
        'Recall "#N" to read one of them word for word.',
    ]
    assert recall("blue", Recorded(Log())).startswith('Nothing was found for "blue".')
    assert recall("  ", Recorded(Log())).startswith("Nothing was found")


def test_words_with_a_number_sign_are_words():
    assert recall("issue #12 is open", Recorded(Log())).startswith("Nothing was found")


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=400), st.integers(8, 60))
def test_pages_put_together_are_the_text(text, page):
    timeline = Recorded(Log(), texts={"~0123456789ab": text})
    read, ref = "", "~0123456789ab"
    while True:
        answer = recall(ref, timeline, page=page)
        body, _, tail = answer.rpartition("\n[")
        if not tail.endswith(") goes on]"):
            break
        assert len(body.encode()) <= page
        read += body
        ref = tail.split('"')[1]
        assert ref == f"~0123456789ab+{len(read)}"
    assert read + answer == text


def test_what_was_cut_comes_before_what_the_model_sees_anyway():
    view = View(Estimator())
    log = Log(view.apply)
    log.say(say("user", "Keep books."), say("assistant", "The depot door is green."), say("user", "Thanks."))
    log.record(Checkpointed("truncate", "threshold", hidden=((2, 2),), marker="[gap]"))
    log.say(say("user", "Which colour is the depot door, is the door of the depot green?"))
    hits = [Hit("test", 5, "the question"), Hit("other", 5, "elsewhere"), Hit("test", 2, "the answer")]
    first, second, third, _ = recall("depot door", Recorded(log, found=hits), view=view).splitlines()
    assert (first, second, third) == ("session other #5: elsewhere", "#2: the answer", "#5: the question")
