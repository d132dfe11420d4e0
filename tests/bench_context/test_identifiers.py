from hypothesis import given, settings
from hypothesis import strategies as st

from ra.bench.measures import Need, Sight, TraceNames, asked
from ra.bench.trace import Trace
from ra.context.compaction.names import identifiers, spoken
from ra.context.tokens import Estimator
from ra.core.messages import Message, Text, Thinking, ToolCall, result, say


def test_paths_symbols_and_numbers_are_identifiers_and_words_are_not():
    text = (
        "Please read src/app/main.py, then call getUser() or parse_args in HTTPServer; see https://example.org/a?x=1. "
        "Line 42 of v2.10.3 on 2026-11-18 costs 7. ABC-123 and résumé stay; so does x1."
    )
    assert identifiers(text) == {
        "src/app/main.py",
        "getUser",
        "parse_args",
        "HTTPServer",
        "https://example.org/a?x=1",
        "42",
        "10.3",
        "2026-11-18",
        "ABC-123",
    }


def test_a_long_text_without_blanks_is_read_quickly():
    assert identifiers("a." * 500_000) == frozenset()
    assert identifiers("/" * 200_000) == frozenset()
    assert len(identifiers("aB" * 500_000)) == 0


def test_arguments_are_read_without_their_json():
    call = ToolCall("1", "Edit", {"path": "a/b.py", "new": "\tresolveAll(\n)", "lines": [10, {"end": 12}], "all": True})
    message = Message("assistant", (Text("see nextStep"), Thinking("secretPlan"), call))
    assert asked(message) == {"a/b.py", "resolveAll", "10", "12"}
    assert spoken(message) == {"a/b.py", "resolveAll", "10", "12", "nextStep"}


def test_a_result_is_read_too():
    assert spoken(result(ToolCall("1", "Read", {}), "def load_all(): ...")) == {"load_all"}


messages = st.lists(
    st.sampled_from([say("user", f"name_{a} name_{b}") for a in range(4) for b in range(4)]), max_size=8
)


@settings(max_examples=60, deadline=None)
@given(st.lists(messages, min_size=1, max_size=5))
def test_sight_sees_what_the_last_request_holds(requests: list[list[Message]]):
    sight = Sight(TraceNames(Trace("t", "", [], Estimator())))
    for request in requests:
        sight.look(request)
    names = frozenset(f"name_{index}" for index in range(4))
    visible = frozenset().union(*(spoken(message) for message in requests[-1])) & names
    assert sight.sees(Need(names, {}, 0)).names == len(visible)
