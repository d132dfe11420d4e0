from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import Checkpointed, Configured, Fact, Said, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs.economy import AT_RISK, SessionEconomy
from ra.costs.prices import Prices
from ra.costs.promptcache import rules_for
from ra.costs.settings import PriceSettings

OPUS = "claude-opus-4-6"
PRICES = Prices({"free": PriceSettings(input=0, output=0), "flat": PriceSettings(input=1, output=1)}, None)


def economy(*facts: Fact, model: str = OPUS, every_s: float = 10.0) -> SessionEconomy:
    made = SessionEconomy(PRICES.row, rules_for)
    for at, fact in enumerate((Configured("anthropic", model, "timeline"), *facts), 1):
        made.observe(TimelineEvent(at, at * every_s, fact))
    return made


def bills(*totals: int, model: str = OPUS) -> list[Fact]:
    """Calls with a warm cache whose requests grew to these totals."""
    facts: list[Fact] = []
    before = 0
    for total in totals:
        facts.append(Spent(model, Usage(cache_read=before, cache_write=total - before)))
        before = total
    return facts


SPENT_BEFORE = Spent(OPUS, Usage(), "5.00", purpose="summary")
LARGE = {"before": 5_000, "zone": 80_000, "behind": 10_000, "stand_in": 5_000}


def test_rent_is_paid_until_it_equals_the_price():
    # With the cut the next input costs $0.0963 instead of $0.0475; carrying 75 000 tokens costs $0.0375 a call.
    calls = bills(*[95_000] * 9)
    reasons = [economy(SPENT_BEFORE, *calls[:count]).wants(**LARGE) for count in range(1, 5)]
    assert reasons == ["", "rent paid", "rent paid", "rent paid"]


def test_a_cold_cache_makes_a_cut_free():
    sent = economy(*bills(95_000))
    assert sent.wants(**LARGE) == ""
    sent.observe(TimelineEvent(9, 20.0 + 301, Said(say("user", "back again"))))
    assert sent.wants(**LARGE) == "free now"


def test_crossing_into_a_dearer_tier_makes_a_cut_free():
    sent = economy(*bills(199_000))
    assert sent.wants(before=5_000, zone=177_000, behind=17_000, stand_in=3_000) == "rent paid"
    assert sent.wants(before=5_000, zone=177_000, behind=19_000, stand_in=3_000) == "free now"


def test_without_a_discount_for_reading_a_cut_is_always_free():
    assert economy(*bills(95_000, model="flat"), model="flat").wants(**LARGE) == "free now"


def test_where_nothing_costs_anything_or_no_price_is_known_it_never_cuts():
    for model in ("free", "nobody"):
        assert economy(*bills(*[95_000] * 20, model=model), model=model).wants(**LARGE) == ""


def test_what_would_not_shrink_by_a_tenth_is_left_alone():
    sent = economy(*bills(*[95_000] * 30))
    assert sent.wants(before=5_000, zone=12_000, behind=78_000, stand_in=4_000) == ""
    assert sent.wants(before=5_000, zone=0, behind=90_000, stand_in=0) == ""


def test_a_short_session_does_not_risk_more_than_its_share():
    calls = bills(*[95_000] * 3)  # $0.69 so far, of which 4 % are less than the $0.0488 that the cut adds
    assert economy(*calls).wants(**LARGE) == ""
    assert economy(SPENT_BEFORE, *calls).wants(**LARGE) == "rent paid"


def test_rent_starts_anew_after_a_cut():
    calls = [SPENT_BEFORE, *bills(*[95_000] * 9)]
    cut = Checkpointed("digest", "rent paid", before=95_000, after=20_000)
    assert economy(*calls).wants(**LARGE) == "rent paid"
    assert economy(*calls, cut, *bills(20_000)).wants(before=5_000, zone=10_000, behind=10_000, stand_in=1_000) == ""


def test_small_windows_get_small_sizes():
    made = economy()
    assert made.sizes(None) == made.sizes(1_000_000) == (8_000, 40_000)
    assert made.sizes(120_000) == (8_000, 20_000)
    assert made.sizes(8_000) == (1_600, 8_000)


def test_another_model_begins_with_a_cold_cache():
    made = economy(SPENT_BEFORE, *bills(*[95_000] * 3))
    assert made.warm
    made.observe(TimelineEvent(99, 0.0, Configured("anthropic", "claude-haiku-4-5", "timeline")))
    assert not made.warm


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(50, 6_000), st.integers(1, 400)), min_size=1, max_size=60),
    st.sampled_from([OPUS, "gpt-5.1", "gemini-2.5-pro", "claude-sonnet-5-5"]),
)
def test_whenever_a_session_ends_it_has_cost_little_more_than_without_cuts(
    steps: Sequence[tuple[int, int]], model: str
):
    """Played by the rules that it assumes: prefix cache, lifetime, index of an eighth. Ends at every step."""
    row = PRICES.row(model)
    rules = rules_for(model)
    assert row is not None
    auto, plain, head = SessionEconomy(PRICES.row, lambda name: rules), 0.0, 3_000
    auto.observe(TimelineEvent(0, 0.0, Configured("", model, "timeline")))
    paid, now, zone, behind, cached, full = 0.0, 0.0, 0, 0, 0, head
    for grown, wait in steps:
        now += wait
        warm = wait <= rules.lifetime_s and full > head
        known = full if warm and full >= rules.minimum else 0
        plain += float(row.price(Usage(cache_read=known, cache_write=full + grown - known)))
        full += grown
        behind += grown
        if behind > 16_000:
            zone, behind = zone + behind - 8_000, 8_000
        auto.observe(TimelineEvent(1, now, Said(say("user", "more"))))
        total = head + zone + behind
        read = cached if warm else 0
        if auto.wants(before=head, zone=zone, behind=behind, stand_in=zone // 8):
            auto.observe(
                TimelineEvent(2, now, Checkpointed("digest", "", before=total, after=total - zone + zone // 8))
            )
            zone //= 8
            total, read = head + zone + behind, min(read, head if head >= rules.minimum else 0)
        usage = Usage(cache_read=read, cache_write=total - read)
        paid += float(row.price(usage))
        auto.observe(TimelineEvent(3, now, Spent(model, usage)))
        cached = total if total >= rules.minimum else 0
        assert paid <= plain * (1 + AT_RISK + 0.01) + 1e-9


WINDOW = 120_000


def test_a_cut_that_cannot_be_helped_leaves_an_index_that_may_be_lost():
    # Of $5.00 four hundredths are $0.20: that pays for 16 000 more tokens, written once and read for as much again.
    assert economy(SPENT_BEFORE).sizes(WINDOW, forced=True) == (WINDOW // 5, 3_000 + 16_000)
    dollar = Spent(OPUS, Usage(), "1.00", purpose="summary")
    assert economy(dollar).sizes(WINDOW, forced=True) == (WINDOW // 5, 3_000 + 3_200)
    assert economy(dollar).sizes(WINDOW) == (8_000, 20_000)
    assert economy().sizes(WINDOW, forced=True) == (WINDOW // 5, 3_000)


def test_where_nothing_costs_anything_an_index_is_as_long_as_it_can_be():
    for model in ("free", "nobody-knows-it"):
        assert economy(model=model).sizes(WINDOW, forced=True) == (8_000, 20_000)


def test_a_cut_that_cannot_be_helped_saves_nothing_and_its_long_index_is_paid_for():
    after = bills(*[40_000] * 30)
    long = Checkpointed("digest", "threshold", marker="x" * 3 * 5_000, before=95_000, after=30_000)
    short = Checkpointed("digest", "threshold", marker="x" * 3 * 3_000, before=95_000, after=30_000)
    cut, none = ([SPENT_BEFORE, short, *after], [SPENT_BEFORE, *after])
    assert economy(*cut).sizes(WINDOW * 10, forced=True) == economy(*none).sizes(WINDOW * 10, forced=True)
    afforded = economy(SPENT_BEFORE, short).sizes(WINDOW * 10, forced=True)[1]
    assert economy(SPENT_BEFORE, long).sizes(WINDOW * 10, forced=True)[1] == afforded - 2_000


def test_a_cut_below_the_least_that_is_cached_costs_what_that_costs_until_it_has_grown():
    # 6 000 tokens are read for $0.003 a call; 3 500 are too few for the cache and cost $0.0175 each time.
    short = {"before": 1_000, "zone": 3_000, "behind": 2_000, "stand_in": 500}
    model = "claude-opus-4-5"
    sent = economy(*bills(5_700, 5_800, 5_900, 6_000, model=model), model=model)
    sent.observe(TimelineEvent(9, 60.0 + 301, Said(say("user", "back again"))))
    assert sent.wants(**short) == ""
    assert sent.wants(**(short | {"stand_in": 1_500})) == "free now"  # what is left is cached again
