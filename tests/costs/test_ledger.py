from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import Fact, Spent, TimelineEvent
from ra.core.model import Usage
from ra.costs.ledger import BYS, By, Spend, fold, priced, total
from ra.costs.prices import PriceRow, Prices

PRICES = Prices({}, None)
OPUS = "claude-opus-4-6"


def rows(model: str) -> PriceRow | None:
    return PRICES.row(model)


def timeline(*facts: Fact, start: float = 1_000_000.0) -> list[TimelineEvent]:
    return [TimelineEvent(at, start + at, fact) for at, fact in enumerate(facts, 1)]


def spent(usage: Usage, *, model: str = OPUS, **parts: int) -> Spent:
    dollars = PRICES.price(model, usage)
    return Spent(model, usage, "" if dollars is None else str(dollars), parts=parts)


def test_by_session_and_model_and_day() -> None:
    one, two = spent(Usage(1000, 10)), spent(Usage(2000, 20))
    unknown = Spent("nobody", Usage(5, 5))
    sessions = [("a", timeline(one, two)), ("b", timeline(unknown, one, start=1_200_000.0))]
    assert fold(sessions, by="session", rows=rows) == [
        Spend("a", 2, Usage(3000, 30), Decimal("0.01575")),
        Spend("b", 2, Usage(1005, 15), Decimal("0.00525"), 1),
    ]
    assert fold(sessions, by="model", rows=rows) == [
        Spend(OPUS, 3, Usage(4000, 40), Decimal("0.021")),
        Spend("nobody", 1, Usage(5, 5), Decimal(0), 1),
    ]
    assert [(spend.key, spend.calls) for spend in fold(sessions, by="day", rows=rows)] == [
        ("1970-01-12", 2),
        ("1970-01-14", 2),
    ]


def test_since_leaves_out_what_is_older() -> None:
    events = timeline(spent(Usage(1000)), spent(Usage(2000)))
    assert fold([("a", events)], by="session", rows=rows, since=events[1].time) == [
        Spend("a", 1, Usage(2000), Decimal("0.01"))
    ]


def test_by_source_what_was_there_is_read_and_what_has_grown_is_written() -> None:
    first = spent(Usage(cache_write=1000, output=10), system=600, conversation=400)
    second = spent(Usage(cache_read=1000, cache_write=300, input=100), system=600, conversation=800)
    assert fold([("a", timeline(first, second))], by="source", rows=rows) == [
        Spend("conversation", 2, Usage(100, 0, 400, 700), Decimal("0.005075")),
        Spend("system", 2, Usage(0, 0, 600, 600), Decimal("0.00405")),
        Spend("answers", 1, Usage(output=10), Decimal("0.00025")),
    ]


def test_by_source_beyond_tier_2_every_part_pays_it() -> None:
    call = spent(Usage(cache_read=300_000), system=100_000, conversation=200_000)
    assert fold([("a", timeline(call))], by="source", rows=rows) == [
        Spend("conversation", 1, Usage(cache_read=200_000), Decimal("0.15")),
        Spend("system", 1, Usage(cache_read=100_000), Decimal("0.075")),
    ]


def test_by_tool_results_cost_in_every_request_that_carries_them() -> None:
    parts = {"system": 500, "tool:Bash": 300, "conversation": 200}
    call = Spent(OPUS, Usage(1000), "0.005", parts=parts)
    assert fold([("a", timeline(call, call))], by="tool", rows=rows) == [
        Spend("other input", 2, Usage(1400), Decimal("0.007")),
        Spend("Bash", 2, Usage(600), Decimal("0.003")),
    ]


def test_a_call_without_a_price_is_counted_and_named() -> None:
    call = Spent("nobody", Usage(100, 10), parts={"system": 100})
    assert fold([("a", timeline(call))], by="source", rows=rows) == [
        Spend("system", 1, Usage(100), Decimal(0), 1),
        Spend("answers", 1, Usage(output=10), Decimal(0), 1),
    ]


counts = st.integers(0, 300_000)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.builds(Usage, counts, counts, counts, counts),
            st.dictionaries(st.sampled_from(["system", "agents", "conversation", "tools"]), counts),
            st.sampled_from([OPUS, "gpt-5.1", "nobody"]),
        ),
        max_size=6,
    ),
    st.sampled_from(BYS),
)
def test_however_it_is_told_it_adds_up(calls: list[tuple[Usage, dict[str, int], str]], by: By) -> None:
    facts = [spent(usage, model=model, **parts) for usage, parts, model in calls]
    told = total(fold([("a", timeline(*facts))], by=by, rows=rows))
    assert told.usage == sum((fact.usage for fact in facts), Usage())
    assert abs(told.dollars - sum(Decimal(fact.dollars or 0) for fact in facts)) < Decimal("1e-20")


def test_a_bill_without_a_price_gets_that_of_its_day() -> None:
    paid = Spent(OPUS, Usage(1000), "0.5")
    unpaid = Spent(OPUS, Usage(1000, cache_write=100_000), long_lived=True)
    unknown = Spent("nobody", Usage(1000))
    asked: list[tuple[str, float]] = []

    def row(model: str, at: float) -> PriceRow | None:
        asked.append((model, at))
        return rows(model)

    events = timeline(paid, unpaid, unknown)
    assert [event.fact for event in priced(events, row)] == [
        paid,
        Spent(OPUS, unpaid.usage, "1.005", long_lived=True),
        unknown,
    ]
    assert asked == [(event.fact.model, event.time) for event in events[1:] if isinstance(event.fact, Spent)]
