from pathlib import Path

import pytest

from ra.bench import runs
from ra.bench.measures import TraceNames
from ra.bench.runs import STRATEGIES, Conditions, TraceResult, compare
from ra.bench.trace import Trace
from ra.context.tokens import Estimator
from ra.core.errors import UserError
from ra.core.facts import Checkpointed, Cut, Fact, Said, Spent, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say
from ra.core.model import Usage
from ra.costs.prices import Prices
from tests.bench_context.shapes import SHAPES, session

OPUS = "claude-opus-4-5"
PRICES = Prices({}, None)
SHAPE = {shape.name: shape for shape in SHAPES}


def timeline(*facts: tuple[float, Fact]) -> list[TimelineEvent]:
    return [TimelineEvent(at, time, fact) for at, (time, fact) in enumerate(facts, 1)]


def run(events: list[TimelineEvent], *strategies: str, window: int | None = None) -> TraceResult:
    found = compare("file", "name", OPUS, events, Conditions(PRICES, strategies, window=window))
    assert found is not None
    return found


def spoken(text: str, *calls: ToolCall) -> Said:
    return Said(Message("assistant", (Text(text), *calls), model=OPUS))


def billed(read: int, write: int, output: int = 10) -> Spent:
    return Spent(OPUS, Usage(0, output, read, write))


def test_messages_have_the_size_that_two_bills_say():
    first, second, third = say("user", "hello " * 400), spoken("word " * 300), say("user", "more " * 100)
    trace = Trace(
        "t",
        OPUS,
        timeline(
            (0, Said(first)),
            (1, second),
            (1, billed(0, 5000)),
            (2, Said(third)),
            (3, spoken("end")),
            (3, billed(5000, 600)),
        ),
        Estimator(),
    )
    assert trace.size(second.message) + trace.size(third) == 600
    assert trace.base + trace.size(first) == 5000


def test_what_was_recorded_costs_what_was_billed():
    prompt = say("user", "hello " * 400)
    events = timeline(
        (0, Said(prompt)),
        (5, spoken("one " * 200)),
        (5, billed(0, 5000, 300)),
        (20, Said(say("user", "two " * 200))),
        (25, spoken("three")),
        (25, billed(5000, 600, 30)),
    )
    found = run(events)
    assert found.calibration is not None
    assert found.calibration.billed == float(PRICES.price(OPUS, Usage(0, 330, 5000, 5600)) or 0)
    assert found.calibration.difference == 0
    assert found.rows[0].lost == 0


def test_a_cache_that_was_lost_outside_is_lost_in_the_recorded_row_alone():
    events = timeline(
        (0, Said(say("user", "hello " * 400))),
        (5, spoken("one " * 200)),
        (5, billed(0, 5000)),
        (20, Said(say("user", "two " * 200))),
        (25, spoken("three")),
        (25, billed(0, 5600)),
    )
    found = run(events, "nothing")
    recorded, nothing = found.rows
    assert recorded.lost == 1
    assert nothing.cost < recorded.cost
    assert found.calibration is not None
    assert found.calibration.outside == 1
    assert found.calibration.difference == 0


def test_an_idle_hour_costs_the_whole_window_again():
    def cost(pause: float) -> float:
        events = timeline(
            (0, Said(say("user", "hello " * 9000))),
            (5, spoken("one")),
            (5 + pause, Said(say("user", "two"))),
            (9 + pause, spoken("three")),
        )
        return run(events, "nothing").rows[1].cost

    assert cost(3600) > 1.8 * cost(60)


def test_recall_counts_names_that_were_seen_before_and_are_used_again():
    call = ToolCall("1", "Read", {"path": "src/one.py", "name": "loadAll", "fresh": "neverSeen"})
    events = timeline(
        (0, Said(say("user", "look at src/one.py and loadAll"))),
        (1, spoken("reading", call)),
        (2, Said(result(call, "ok"))),
        (3, spoken("done")),
    )
    trace = Trace("t", OPUS, events, Estimator())
    assert [need.names for need in TraceNames(trace).needs] == [frozenset({"src/one.py", "loadAll"}), frozenset()]


def test_a_recorded_compaction_hides_what_it_hid():
    call = ToolCall("1", "Read", {"name": "oldName"})
    events = timeline(
        (0, Said(say("user", "oldName " + "word " * 3000))),
        (1, spoken("one")),
        (2, Checkpointed("summarize", "recorded", hidden=((1, 2),), summary="what happened")),
        (3, Said(say("user", "go on"))),
        (4, spoken("now", call)),
    )
    recorded, nothing = run(events, "nothing").rows
    assert (recorded.rewrites, recorded.recall) == (1, 0.0)
    assert (nothing.rewrites, nothing.recall) == (0, 1.0)


def test_calls_that_broke_off_are_paid_and_not_seen_again():
    events = timeline(
        (0, Said(say("user", "hello " * 5000))),
        (1, Cut(Message("assistant", (Text("half an"),)), "interrupted")),
        (1, billed(0, 9000)),
        (2, Cut(Message("assistant", ()), "interrupted")),
        (2, Spent(OPUS, Usage())),
        (3, spoken("whole")),
        (3, billed(9000, 0)),
    )
    found = run(events, "nothing")
    assert found.calls == 2
    assert found.calibration is not None
    assert abs(found.calibration.difference) < 0.01


def test_every_strategy_has_its_row_and_stays_within_the_window():
    found = run(session(SHAPE["tool run"], model=OPUS), *STRATEGIES, window=60_000)
    assert [row.strategy for row in found.rows] == ["recorded", *STRATEGIES]
    rows = {row.strategy: row for row in found.rows}
    for name in ("truncate", "summarize", "digest", "auto", "rolling-mask", "batch-prune"):
        assert rows[name].peak <= 60_000
        assert rows[name].rewrites > 0
        assert rows[name].cost < rows["nothing"].cost or name == "rolling-mask"
    assert rows["nothing"].recall == 1.0
    assert all(len(row.points) == found.calls for row in found.rows)
    assert all(row.points[-1].cost == pytest.approx(row.cost, abs=1e-5) for row in found.rows)


def test_a_strategy_that_cannot_fit_is_left_out_and_said():
    events = timeline((0, Said(say("user", "hi"))), (1, spoken("yes")), (1, billed(0, 5000)))
    found = run(events, "nothing", "digest", window=2000)
    assert [row.strategy for row in found.rows] == ["recorded", "nothing"]
    assert found.skipped[0].startswith("digest: The system part")


def test_a_transcript_without_a_call_has_no_result():
    assert compare("f", "n", OPUS, timeline((0, Said(say("user", "hello")))), Conditions(PRICES)) is None
    assert compare("f", "n", OPUS, [], Conditions(PRICES)) is None


def test_a_transcript_without_times_gets_a_steady_pace():
    events = timeline(*[(0.0, Said(say("user", "hi")) if index % 2 == 0 else spoken("yes")) for index in range(8)])
    trace = Trace("t", OPUS, events, Estimator())
    assert [call.time for call in trace.calls] == [0.0, 10.0, 20.0, 30.0]


def test_a_model_without_a_price_is_said_to_be_billed_as_another():
    found = compare("f", "n", "nobody", session(SHAPE["short chat"], model="nobody"), Conditions(PRICES, ("nothing",)))
    assert found is not None
    assert (found.priced_as, found.window) == (runs.DEFAULT_MODEL, 1_000_000)


def test_an_unknown_strategy_is_refused_by_name():
    with pytest.raises(UserError, match="Unknown strategy 'rolling'; use nothing, truncate"):
        runs.check(["rolling"])


def test_prices_of_another_model_can_be_tried():
    events = session(SHAPE["tool run"], model=OPUS)
    costs = [
        compare("f", "n", OPUS, events, Conditions(PRICES, ("nothing",), model=model)) for model in ("", "gpt-5.1")
    ]
    assert all(found is not None for found in costs)
    opus, gpt = (found.rows[1].cost for found in costs if found)
    assert gpt < opus / 2


def test_the_demo_trace_shows_what_auto_saves():
    from ra.timeline.importers import read

    (transcript,) = read(Path(__file__).parents[2] / "docs" / "traces" / "demo.jsonl")
    found = compare("demo", transcript.name, transcript.model, transcript.events, Conditions(PRICES))
    assert found is not None
    rows = {row.strategy: row for row in found.rows}
    assert found.calls == 88
    assert rows["auto"].cost < 0.8 * rows["nothing"].cost
    assert rows["auto"].recall >= 0.995
    assert found.bounds is not None
    assert all(found.bounds.floor <= row.cost for row in found.rows)
    assert all(found.bounds.bound <= row.with_rereads for row in found.rows)


def test_writes_for_an_hour_are_billed_as_such_where_the_bills_say_so_and_no_pause_shows_it():
    def bill(*, long_lived: bool) -> runs.Calibration:
        facts: list[tuple[float, Fact]] = []
        for number in range(6):
            usage = Usage(output=10, cache_read=5000 * number, cache_write=5000)
            facts += [
                (number, Said(say("user", " word" * 4000))),
                (number, spoken(" word" * 900)),
                (number, Spent(OPUS, usage, long_lived=long_lived)),
            ]
        calibration = run(timeline(*facts), "auto").calibration
        assert calibration is not None
        return calibration

    short, long = bill(long_lived=False), bill(long_lived=True)
    assert long.billed - short.billed == pytest.approx(30_000 * (10 - 6.25) / 1e6)
    assert abs(long.difference) < 0.02


def test_a_first_request_whose_bill_shows_reads_was_warm():
    events = timeline(
        (0, Said(say("user", "hello " * 400))),
        (5, spoken("one " * 200)),
        (5, billed(8000, 1000)),
        (20, Said(say("user", "two " * 200))),
        (25, spoken("three")),
        (25, billed(9000, 600)),
    )
    found = run(events, "nothing")
    assert found.calibration is not None
    assert abs(found.calibration.difference) < 0.02
    assert found.rows[1].cost == pytest.approx(found.rows[0].cost)


def test_calls_without_a_bill_are_no_part_of_the_calibration():
    events = timeline(
        (0, Said(say("user", "hello " * 400))),
        (5, spoken("one " * 200)),
        (5, billed(0, 5000)),
        (20, Said(say("user", "two " * 200))),
        (25, spoken("three")),
    )
    calibration = run(events).calibration
    assert calibration is not None
    assert calibration.unbilled == 1
    assert calibration.difference == 0


def test_a_lost_cache_may_leave_the_system_part():
    events = timeline(
        (0, Said(say("user", "hello " * 4000))),
        (5, spoken("one " * 200)),
        (5, billed(0, 15_000)),
        (20, Said(say("user", "two " * 200))),
        (25, spoken("three")),
        (25, billed(9_140, 6_460)),
    )
    calibration = run(events).calibration
    assert calibration is not None
    assert calibration.outside == 1
    assert abs(calibration.difference) < 0.03


def gpt(read: int, new: int) -> Spent:
    return Spent("gpt-5.1", Usage(new, 10, read, 0))


def test_a_provider_without_a_cache_is_learned_from_its_bills():
    facts: list[tuple[float, Fact]] = []
    for number in range(5):
        facts += [
            (number * 10, Said(say("user", " word" * 3000))),
            (number * 10 + 5, Said(Message("assistant", (Text("yes"),), model="gpt-5.1"))),
            (number * 10 + 5, gpt(0, 3000 * (number + 1))),
        ]
    found = compare("f", "n", "gpt-5.1", timeline(*facts), Conditions(PRICES, ("nothing",)))
    assert found is not None
    assert found.calibration is not None
    assert found.calibration.lessons == ("no bill of gpt-5.1 shows a cache: no row has one",)
    assert abs(found.calibration.difference) < 0.03
    assert [row.hit_rate for row in found.rows] == [0.0, 0.0]


def test_a_client_that_asked_for_no_cache_is_not_a_provider_without_one():
    facts: list[tuple[float, Fact]] = []
    for number in range(8):
        facts += [
            (number * 10, Said(say("user", " word" * 3000))),
            (number * 10 + 5, Said(Message("assistant", (Text("yes"),), model="claude-opus-4-5"))),
            (number * 10 + 5, Spent("claude-opus-4-5", Usage(input=3000 * (number + 1), output=1))),
        ]
    found = compare("f", "n", "claude-opus-4-5", timeline(*facts), Conditions(PRICES, ("nothing",)))
    assert found is not None
    assert found.calibration is not None
    assert "its client asked for none" in found.calibration.lessons[0]
    assert abs(found.calibration.difference) < 0.03
    assert abs(found.calibration.predicted_difference) < 0.03
    recorded, nothing = found.rows
    assert (recorded.hit_rate, recorded.lost) == (0.0, 0)
    assert nothing.hit_rate > 0.4


def test_a_longer_life_of_the_cache_is_learned_from_the_bills():
    facts: list[tuple[float, Fact]] = []
    for number in range(5):
        facts += [
            (number * 900, Said(say("user", " word" * 3000))),
            (number * 900 + 5, Said(Message("assistant", (Text("yes"),), model="gpt-5.1"))),
            (number * 900 + 5, gpt(3072 * number, 3100)),  # whole steps of 128 of what was sent before
        ]
    found = compare("f", "n", "gpt-5.1", timeline(*facts), Conditions(PRICES, ("nothing",)))
    assert found is not None
    assert found.calibration is not None
    assert "lived for 900 s" in found.calibration.lessons[0]
    assert abs(found.calibration.difference) < 0.03


def test_lines_and_words_are_measured_and_a_line_that_is_gone_is_read_again():
    line = "    return compute_the_total(of_all, items)"
    read, edit = ToolCall("1", "Read", {"path": "a.py"}), ToolCall("2", "Edit", {"path": "a.py", "old": line})
    events = timeline(
        (0, Said(say("user", "Never touch the tests. Look at a.py."))),
        (1, spoken("reading", read)),
        (2, Said(result(read, f"def total():\n{line}\n"))),
        (3, spoken("so")),
        (4, Checkpointed("summarize", "recorded", hidden=((1, 4),), summary="what happened")),
        (5, Said(say("user", "go on"))),
        (6, spoken("now", edit)),
    )
    recorded, nothing = run(events, "nothing").rows
    assert (recorded.lines, nothing.lines) == (0.0, 1.0)
    assert recorded.words < 1.0 == nothing.words
    assert recorded.rereads == 1
    assert recorded.with_rereads > recorded.cost
    assert nothing.with_rereads == nothing.cost
