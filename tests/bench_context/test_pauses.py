"""What pauses cost under several ways to treat the provider's cache, and why a prediction misses its bill."""

from ra.bench.pauses import Policies, Step, policies
from ra.bench.render import calibration, pauses
from ra.bench.runs import Conditions, compare
from ra.core.facts import Said, Spent, TimelineEvent
from ra.core.messages import Message, Text, say
from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.costs.promptcache import rules_for

OPUS = "claude-opus-4-5"
PRICES = Prices({}, None)
LINES = "The table of orders is read before the table of customers is written. " * 400


def steps(*gaps: float, total: int = 50_000) -> list[Step]:
    now, calls = 0.0, []
    for number, gap in enumerate((0.0, *gaps)):
        now += gap
        calls.append(Step(now, total + number * 500, total + (number - 1) * 500 if number else 0, 100))
    return calls


def compared(*gaps: float) -> Policies:
    row = PRICES.row(OPUS)
    assert row is not None
    return policies(steps(*gaps), row, rules_for(OPUS))


def test_without_long_pauses_only_the_hour_costs_more() -> None:
    cost = compared(*[30.0] * 20)
    assert cost.five_minutes == cost.ping == cost.auto == cost.keep_warm == cost.clairvoyant
    assert cost.hour > cost.auto


def test_pauses_of_ten_minutes_are_cheapest_with_the_hour_or_a_small_call() -> None:
    cost = compared(*[30.0, 600.0] * 10)
    assert cost.five_minutes > 2 * cost.hour
    assert cost.auto < 1.6 * cost.hour
    assert cost.keep_warm <= cost.ping
    assert cost.clairvoyant <= min(cost[:5])


def test_nights_are_let_go() -> None:
    cost = compared(*[30.0, 50_000.0] * 6)
    assert cost.ping > 3 * cost.five_minutes
    assert cost.auto == cost.five_minutes
    assert cost.keep_warm < 1.6 * cost.five_minutes


def recorded(*, pause_s: float, lost: bool) -> list[TimelineEvent]:
    """Twelve calls; before the last one a pause. Their bills, in which a cache may be lost without a reason."""
    events: list[TimelineEvent] = []
    now, total = 1_790_000_000.0, 6_000
    for number in range(12):
        now += pause_s if number == 11 else 20.0
        events.append(TimelineEvent(len(events) + 1, now, Said(say("user", f"{number}: {LINES}"))))
        before, total = total, total + 6_000
        read = 0 if not number or (lost and number == 6) or (pause_s > 300 and number == 11) else before
        events.append(TimelineEvent(len(events) + 1, now + 5, Said(Message("assistant", (Text("Yes."),), model=OPUS))))
        usage = Usage(output=10, cache_read=read, cache_write=total - read)
        events.append(TimelineEvent(len(events) + 1, now + 5, Spent(OPUS, usage, seconds=5.0)))
    return events


def test_a_prediction_that_misses_its_bill_says_why() -> None:
    result = compare("f", "n", OPUS, recorded(pause_s=20, lost=True), Conditions(PRICES, ()))
    assert result is not None
    figures = result.calibration
    assert figures is not None
    assert figures.outside == 1
    assert figures.predicted_difference < -0.03
    assert abs(figures.sizes) < 0.03 * figures.billed  # all of it is the cache that was lost
    assert "Why the prediction is off by $-" in calibration(result)
    assert pauses(result) == ""


def test_a_session_with_a_long_pause_is_shown_with_other_lives_of_its_cache() -> None:
    result = compare("f", "n", OPUS, recorded(pause_s=900, lost=False), Conditions(PRICES, ()))
    assert result is not None
    assert result.calibration is not None
    assert abs(result.calibration.predicted_difference) < 0.03
    assert result.pauses is not None
    assert result.pauses.clairvoyant <= min(result.pauses)
    assert "small call every four minutes" in pauses(result)
