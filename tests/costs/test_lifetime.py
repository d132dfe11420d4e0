"""How long a provider keeps a prefix, and what becomes of it in a pause, by the session's own pauses."""

from decimal import Decimal
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import CacheDecided, Configured, Fact, Said, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Usage
from ra.costs.lifetime import CacheLifetime
from ra.costs.prices import Prices
from ra.costs.promptcache import CachePiece, CacheRules, PromptCache, rules_for
from ra.costs.settings import CacheSettings

OPUS = "claude-opus-4-5"  # $5 in, $6.25 or $10 to write, $0.50 to read
PRICES = Prices({}, None)
PREFIX = 100_000


class Session:
    """Calls with pauses between them; the cache is billed by its rules, and every decision is recorded."""

    def __init__(self, *, keep_warm: bool = False, model: str = OPUS, hour: bool = True) -> None:
        cache = CacheSettings(keep_warm="auto" if keep_warm else "off")
        self.lifetime = CacheLifetime(PRICES.row, rules_for, settings=cache, hour=hour)
        self.model = model
        self.now = 1_000.0
        self.decisions: list[CacheDecided] = []
        self.record(Configured("anthropic", model, "timeline"))

    def record(self, fact: Fact) -> None:
        self.lifetime.observe(TimelineEvent(1, self.now, fact))

    def call(self, pause_s: float, *, new: int = 1_000) -> bool:
        """One more call after a pause; whether it wrote for an hour."""
        self.now += pause_s
        self.record(Said(say("user", "go on")))
        for decision in self.lifetime.decisions():
            self.record(decision)
            self.decisions.append(decision)
        long_lived = self.lifetime.long_lived
        warm = pause_s <= self.lifetime.lifetime_s
        usage = Usage(cache_read=PREFIX, cache_write=new) if warm else Usage(cache_write=PREFIX + new)
        self.record(Spent(self.model, usage, long_lived=long_lived))
        return long_lived


def test_five_minutes_stay_while_there_are_no_long_pauses() -> None:
    session = Session()
    assert not any(session.call(20) for _ in range(200))
    assert session.decisions == []


def test_the_hour_is_chosen_when_pauses_have_cost_what_it_would_have() -> None:
    session = Session()
    session.call(0, new=PREFIX)
    # Written anew, 100 000 tokens cost $0.575 more than read; for an hour $0.375 more, and once more now.
    assert [session.call(pause) for pause in (20, 1200, 20, 1200)] == [False, False, True, True]
    let_go, chosen = session.decisions
    assert (let_go.action, Decimal(let_go.dollars)) == ("let go", Decimal("0.580750"))
    assert chosen.action == "long"
    assert Decimal(chosen.dollars) <= Decimal(chosen.instead)


def test_the_hour_is_given_up_when_it_has_cost_twice_what_it_saved() -> None:
    session = Session()
    for pause in (0, 1200, 20, 1200):
        session.call(pause)
    calls = [session.call(20, new=20_000) for _ in range(60)]
    assert calls[0]
    assert not calls[-1]
    assert session.decisions[-1].action == "short"


def test_an_endpoint_that_may_not_offer_the_hour_is_not_asked_for_it() -> None:
    session = Session(hour=False)
    assert not any(session.call(pause) for pause in (0, 1200, 20, 1200, 20))


def test_a_provider_with_one_price_has_nothing_to_choose() -> None:
    session = Session(model="gpt-5.1")
    assert not any(session.call(pause) for pause in (0, 1200, 20, 1200, 20))


def test_without_leave_nothing_is_done_in_a_pause() -> None:
    session = Session()
    session.call(0)
    assert session.lifetime.due_in_s(session.now + 10) is None


def test_a_pause_is_bridged_until_that_has_cost_what_writing_anew_costs() -> None:
    session = Session(keep_warm=True)
    session.call(0, new=PREFIX)
    assert session.lifetime.due_in_s(session.now + 100) == 180.0
    bridged = 0
    while (decision := session.lifetime.in_pause()).action == "bridge":
        session.now += 280
        session.record(Spent(OPUS, Usage(cache_read=PREFIX), purpose="bridge"))
        session.record(decision)
        bridged += 1
    assert bridged == int(Decimal(decision.dollars) / Decimal(decision.instead)) == 11
    assert decision.action == "let go"
    session.record(decision)
    assert session.lifetime.due_in_s(session.now) is None


def test_known_pauses_say_how_long_to_bridge() -> None:
    session = Session(keep_warm=True, hour=False)
    for pause in (0, 500, 520, 540):  # one small call outlives each of these
        session.call(pause)
    assert session.lifetime.in_pause().action == "bridge"
    session.record(Spent(OPUS, Usage(cache_read=PREFIX), purpose="bridge"))
    assert session.lifetime.in_pause().action == "let go"


def test_a_summary_is_made_while_the_prefix_can_be_read_where_that_is_cheaper() -> None:
    session = Session(keep_warm=True, hour=False)
    for pause in (0, 90_000, 90_000, 90_000):  # over night: nothing bridges that
        session.call(pause)
    assert session.lifetime.in_pause(shortened=10_000).action == "cut"
    assert session.lifetime.in_pause(shortened=99_000).action == "let go"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([10, 100, 400, 2000, 5000]), st.integers(100, 30_000)), max_size=60))
def test_whatever_the_pauses_the_choice_costs_at_most_twice_the_better_and_one_prefix(
    steps: list[tuple[int, int]],
) -> None:
    row, rules = PRICES.row(OPUS), rules_for(OPUS)
    assert row is not None

    def run(*, ttl: Literal["auto", "5m", "1h"]) -> Decimal:
        lifetime = CacheLifetime(PRICES.row, rules_for, settings=CacheSettings(ttl=ttl))
        lifetime.observe(TimelineEvent(1, 0.0, Configured("anthropic", OPUS, "timeline")))
        cache, pieces, now, paid = PromptCache(rules), [CachePiece(20_000, 1)], 0.0, Decimal(0)
        for number, (pause, new) in enumerate(steps):
            now += pause
            pieces.append(CachePiece(new, number + 2))
            lifetime.observe(TimelineEvent(1, now, Said(say("user", "on"))))
            for decision in lifetime.decisions():
                lifetime.observe(TimelineEvent(1, now, decision))
            long_lived = lifetime.long_lived
            usage = cache.send(
                list(pieces), now=now, marks=[len(pieces) - 1], lifetime_s=3600.0 if long_lived else None
            )
            paid += row.price(usage, long_lived=long_lived)
            lifetime.observe(TimelineEvent(1, now, Spent(OPUS, usage, long_lived=long_lived)))
        return paid

    total = 20_000 + sum(new for _, new in steps)
    best = min(run(ttl="5m"), run(ttl="1h"))
    assert run(ttl="auto") <= 2 * best + row.price(Usage(cache_write=total), long_lived=True)


def test_what_was_written_for_an_hour_outlives_what_was_not() -> None:
    cache = PromptCache(CacheRules("marks", minimum=0, writes=True))
    system, turn = CachePiece(1_000, 1), CachePiece(500, 2)
    cache.send([system], now=0, marks=[0])
    cache.send([system, turn], now=10, marks=[1], lifetime_s=3600.0)
    assert cache.look([system], now=500, marks=[0]).cache_read == 0
    assert cache.look([system, turn], now=500, marks=[1]).cache_read == 1_500
