"""Reproduces the published figures of the strategies from our prices: tokens and cost per turn, a day of traffic."""

from decimal import ROUND_HALF_UP, Decimal

from ra.context.compose.planner import request as plan_request
from ra.context.tokens import Estimator
from ra.core.messages import say
from ra.core.model import Usage
from ra.core.value import Value
from ra.costs.prices import Prices
from ra.providers.catalog import info

MODEL = "claude-opus-4-6"
SHARED = 12_038  # tokens of every fresh session that are read from the cache that sessions share
LAYERED = (27_875, 29_191, 30_484, 31_783, 33_083)  # total input of each turn, as recorded
PLANNER = (27_875, 27_824, 27_819, 27_819, 27_819)
MILL = Decimal("0.001")
CENT = Decimal("0.01")

# "Where planner wins": a day of traffic, as the page recorded it.
TASKS = 57
TIER_TWO_READ = 14_300_000  # tokens that were read from the cache in turns beyond the tier-2 threshold
TIER_TWO_TURN = 290_000  # tokens of such a turn, on average
QUOTED_DAY = Decimal("18.77")  # the page's estimate for the day, which its figures explain only in part
SMALL_MODEL = "claude-haiku-4-5"
QUESTION = "In one short sentence, what is your role?"
ANSWER = "I look after servers, deployments and pipelines."
PLAN = (
    '{"recentTurns": 1, "memory": {"include": false, "query": ""}, "crossChat": false, '
    '"reasoning": "A question about the role needs no history."}'
)


class PresetTurn(Value, frozen=True):
    turn: int
    layered: Usage
    planner: Usage
    layered_cost: Decimal
    planner_cost: Decimal


class PresetDay(Value, frozen=True):
    """A day of long tool-heavy turns: the cost of the replay by the page's own figures, and of planning each turn.

    `quoted` is the page's estimate; it is not computed.
    """

    tasks: int
    layered_cost: Decimal
    planner_cost: Decimal
    quoted: Decimal


class Preset(Value, frozen=True):
    """The two tables, and the day. Costs are rounded as shown, and the totals add up the rounded costs."""

    turns: tuple[PresetTurn, ...]
    layered_total: Decimal
    planner_total: Decimal
    day: PresetDay


def seed(prices: Prices) -> Preset:
    """A replay reads the previous total and creates the growth; a fresh session reads only what sessions share."""
    turns = []
    before = 0
    for number, (layered, planner) in enumerate(zip(LAYERED, PLANNER, strict=True), 1):
        replayed = Usage(cache_read=before, cache_write=layered - before) if before else fresh(layered)
        turns.append(
            PresetTurn(number, replayed, fresh(planner), _cost(prices, replayed), _cost(prices, fresh(planner)))
        )
        before = layered
    return Preset(
        tuple(turns),
        sum((turn.layered_cost for turn in turns), Decimal(0)),
        sum((turn.planner_cost for turn in turns), Decimal(0)).quantize(CENT, ROUND_HALF_UP),
        _day(prices, turns[-1].planner_cost),
    )


def _day(prices: Prices, planned_turn: Decimal) -> PresetDay:
    """Each task as a planned turn of the table with its plan, against the recorded reads at the rate of tier 2."""
    turn = prices.price(MODEL, Usage(cache_read=TIER_TWO_TURN))
    plan = prices.price(SMALL_MODEL, plan_usage())
    assert turn is not None
    assert plan is not None
    replayed = turn / TIER_TWO_TURN * TIER_TWO_READ
    return PresetDay(
        TASKS,
        replayed.quantize(CENT, ROUND_HALF_UP),
        (TASKS * (planned_turn + plan)).quantize(CENT, ROUND_HALF_UP),
        QUOTED_DAY,
    )


def plan_usage() -> Usage:
    """One call of the planner for the page's question, after two turns of the same."""
    estimator = Estimator(info("anthropic", SMALL_MODEL).tokens_per_o200k)
    tail = [say("user", QUESTION), say("assistant", ANSWER)] * 2
    request = plan_request(SMALL_MODEL, tail, say("user", QUESTION), max_output=256)
    return Usage(estimator.request(request), estimator.scaled(estimator.text(PLAN)))


def fresh(total: int) -> Usage:
    return Usage(cache_read=SHARED, cache_write=total - SHARED)


def _cost(prices: Prices, usage: Usage) -> Decimal:
    price = prices.price(MODEL, usage)
    assert price is not None
    return price.quantize(MILL, ROUND_HALF_UP)
