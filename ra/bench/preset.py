"""Do our prices give the figures that the strategies were first published with? Tokens per turn, cost per turn."""

from decimal import ROUND_HALF_UP, Decimal

from ra.core.model import Usage
from ra.core.value import Value
from ra.costs.prices import Prices

MODEL = "claude-opus-4-6"
SHARED = 12_038  # tokens of every fresh session that are read from the cache that sessions share
LAYERED = (27_875, 29_191, 30_484, 31_783, 33_083)  # total input of each turn, as recorded
PLANNER = (27_875, 27_824, 27_819, 27_819, 27_819)
MILL = Decimal("0.001")


class Turn(Value, frozen=True):
    turn: int
    layered: Usage
    planner: Usage
    layered_cost: Decimal
    planner_cost: Decimal


class Preset(Value, frozen=True):
    """The two tables. Costs are rounded as they are shown, and the totals add up what is shown."""

    turns: tuple[Turn, ...]
    layered_total: Decimal
    planner_total: Decimal


def seed(prices: Prices) -> Preset:
    """A replay reads the previous total and creates the growth; a fresh session reads only what sessions share."""
    turns = []
    before = 0
    for number, (layered, planner) in enumerate(zip(LAYERED, PLANNER, strict=True), 1):
        replayed = Usage(cache_read=before, cache_write=layered - before) if before else fresh(layered)
        turns.append(Turn(number, replayed, fresh(planner), _cost(prices, replayed), _cost(prices, fresh(planner))))
        before = layered
    return Preset(
        tuple(turns),
        sum((turn.layered_cost for turn in turns), Decimal(0)),
        sum((turn.planner_cost for turn in turns), Decimal(0)).quantize(Decimal("0.01"), ROUND_HALF_UP),
    )


def fresh(total: int) -> Usage:
    return Usage(cache_read=SHARED, cache_write=total - SHARED)


def _cost(prices: Prices, usage: Usage) -> Decimal:
    price = prices.price(MODEL, usage)
    assert price is not None
    return price.quantize(MILL, ROUND_HALF_UP)
