from decimal import Decimal

from ra.bench.preset import seed
from ra.bench.render import preset_day, preset_json, preset_tables
from ra.costs.prices import Prices


def test_the_preset_reproduces_the_published_tables():
    tokens, costs = preset_tables(seed(Prices({}, None)))
    assert tokens == [
        ["1", "27 875", "27 875"],
        ["2", "29 191", "27 824"],
        ["3", "30 484", "27 819"],
        ["4", "31 783", "27 819"],
        ["5", "33 083", "27 819"],
    ]
    assert costs == [
        ["1", "$0.105", "$0.105"],
        ["2", "$0.022", "$0.105"],
        ["3", "$0.023", "$0.105"],
        ["4", "$0.023", "$0.105"],
        ["5", "$0.024", "$0.105"],
        ["5-turn total", "$0.197", "$0.53"],
    ]


def test_the_preset_as_json():
    preset = seed(Prices({}, None))
    assert preset_json(preset)["total"] == {"layered": 0.197, "planner": 0.53}
    assert preset.turns[1].layered_cost == Decimal("0.022")


def test_the_day_on_which_planner_wins_is_computed_where_it_can_be_and_quoted_where_not():
    preset = seed(Prices({}, None))
    assert preset_json(preset)["day"] == {
        "tasks": 57,
        "layered": {"computed": 10.73, "quoted": 18.77},
        "planner": {"computed": 6.02},
    }
    assert "$18.77 quoted" in preset_day(preset)
