"""`auto` against the alternatives, on sessions of many shapes and at the prices of several providers."""

import pytest

from ra.bench.runs import Conditions, compare
from ra.costs.prices import Prices
from tests.bench_context.shapes import CODE, SHAPES, Shape, session

PRICES = Prices({}, None)
ALTERNATIVES = ("nothing", "truncate", "summarize", "digest")
MODELS = ("claude-opus-4-5", "gpt-5.1", "gemini-2.5-pro")
QUICK = [shape for shape in SHAPES if shape.name != "long run"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", QUICK, ids=lambda shape: shape.name.replace(" ", "-"))
def test_auto_is_never_dearer_than_the_best_and_forgets_no_more_than_digest(shape: Shape, model: str):
    found = compare("f", "n", model, session(shape, model=model), Conditions(PRICES, (*ALTERNATIVES, "auto")))
    assert found is not None
    rows = {row.strategy: row for row in found.rows}
    assert rows["auto"].cost <= 1.05 * min(rows[name].cost for name in ALTERNATIVES)
    assert rows["auto"].recall >= rows["digest"].recall - 0.005


@pytest.mark.parametrize("window", [32_000, 64_000])
@pytest.mark.parametrize("shape", QUICK, ids=lambda shape: shape.name.replace(" ", "-"))
def test_it_holds_in_small_windows_too(shape: Shape, window: int):
    model = "claude-opus-4-5"
    conditions = Conditions(PRICES, ("truncate", "summarize", "digest", "auto"), window=window)
    found = compare("f", "n", model, session(shape, model=model), conditions)
    assert found is not None
    rows = {row.strategy: row for row in found.rows}
    # Where four results fill the window, truncate is cheaper, for it forgets a third of all names: docs/economics.md.
    cramped = shape.name == "large reads" and window == 32_000
    others = ("summarize", "digest") if cramped else ("truncate", "summarize", "digest")
    assert rows["auto"].cost <= 1.05 * min(rows[name].cost for name in others)
    assert rows["auto"].recall >= rows["digest"].recall - 0.005


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3, 0.5, 0.8])
def test_wherever_a_session_ends_auto_has_not_wasted_money(share: float):
    events = session(SHAPES[4], model="claude-opus-4-5", seed=3)
    cut = events[: int(len(events) * share)]
    found = compare("f", "n", "claude-opus-4-5", cut, Conditions(PRICES, ("nothing", "auto")))
    assert found is not None
    _, nothing, auto = found.rows
    assert auto.cost <= 1.05 * nothing.cost
    assert auto.recall >= 0.995


@pytest.mark.parametrize(
    ("shape", "window"), [(CODE[0], 100_000), (CODE[0], 200_000), (CODE[1], 64_000), (CODE[1], 100_000)]
)
def test_long_indexes_cost_no_more_than_they_may(shape: Shape, window: int):
    model = "claude-opus-4-5"
    conditions = Conditions(PRICES, ("truncate", "summarize", "digest", "auto"), window=window)
    for seed in (1, 2, 3):
        found = compare("f", "n", model, session(shape, model=model, seed=seed), conditions)
        assert found is not None
        rows = {row.strategy: row for row in found.rows}
        assert rows["auto"].cost <= 1.05 * min(rows[name].cost for name in ("truncate", "summarize", "digest"))
        assert rows["auto"].recall >= rows["digest"].recall - 0.005
