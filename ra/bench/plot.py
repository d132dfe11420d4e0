"""Draws a comparison: cost over time, window over time, cost against lines."""

import math
from collections.abc import Iterable, Sequence

from ra.bench.drawing import FAINT, INK, Dot, Drawing, Label, Polyline, Shape
from ra.bench.replay import Point, StrategyResult
from ra.bench.runs import TraceResult

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 960, 260, 70, 190, 64, 64
# Okabe and Ito's colours, which people with colour blindness can distinguish. `auto` gets the strongest.
COLOURS = {
    "auto": "#D55E00",
    "recorded": "#000000",
    "nothing": "#999999",
    "truncate": "#0072B2",
    "summarize": "#009E73",
    "digest": "#CC79A7",
    "rolling-mask": "#E69F00",
    "batch-prune": "#56B4E9",
    "layered": "#7A5195",
    "planner": "#8C8C2E",
}
DASHED = ("recorded", "nothing")
STEPS = 400  # points of one curve
UNSEEN = 0.0005  # smaller shares of lost names are drawn as none
LOST = ((0.0, "none"), (0.001, "0.1 %"), (0.003, "0.3 %"), (0.01, "1 %"), (0.03, "3 %"), (0.1, "10 %"), (0.3, "30 %"))


def over_time(result: TraceResult, title: str) -> Drawing:
    """Two panels, one above the other, with one legend."""
    span = max(1.0, result.ended - result.started)
    rows = sorted(result.rows, key=lambda row: -row.cost)
    costs = Scale(TOP, max((row.cost for row in rows), default=1.0))
    windows = Scale(TOP + PANEL + GAP, max((row.peak for row in rows), default=1))
    shapes: list[Shape] = [heading(title), *costs.grid("cost so far, dollars", "$"), *windows.grid("window, tokens")]
    shapes += [label for scale in (costs, windows) for label in _clock(scale.bottom, span)]

    def curve(row: StrategyResult, scale: Scale, values: Iterable[tuple[float, float]]) -> Polyline:
        points = tuple((_x((time - result.started) / span), scale.y(value)) for time, value in values)
        width = 2.6 if row.strategy == "auto" else 1.5
        return Polyline(points, colour(row.strategy), width, dashed=row.strategy in DASHED)

    for row in rows:
        points = _thin(row.points)
        shapes.append(curve(row, costs, ((point.time, point.cost) for point in points)))
        shapes.append(curve(row, windows, ((point.time, point.window) for point in points)))
    for index, row in enumerate(rows):  # most expensive first, like the ends of the curves
        x, y = WIDTH - RIGHT + 18, TOP + 14 + 22 * index
        shapes.append(Polyline(((x, y - 4), (x + 22, y - 4)), colour(row.strategy), 3.0, dashed=row.strategy in DASHED))
        shapes.append(Label(x + 30, y, f"{row.strategy} ${row.cost:.2f}", bold=row.strategy == "auto"))
    return Drawing(WIDTH, TOP + 2 * PANEL + GAP + 48, tuple(shapes))


def frontier(result: TraceResult, title: str) -> Drawing:
    """Cost against the share of lines that were out of sight when they were used again: upper left is best.

    A line joins the results of `auto` with indexes of other sizes.
    """
    rows = sorted(result.rows, key=lambda row: row.cost)
    costs = ticks(max((row.cost for row in (*rows, *result.sizes)), default=1.0))
    bottom, right = TOP + 330, WIDTH - RIGHT - 60
    worst, best = math.log10(0.5), math.log10(UNSEEN)

    def place(cost: float, lines: float) -> tuple[float, float]:
        lost = math.log10(min(0.5, max(UNSEEN, 1.0 - lines)))
        return LEFT + (right - LEFT) * cost / costs[-1], TOP + (bottom - TOP) * (lost - best) / (worst - best)

    shapes: list[Shape] = [
        heading(title),
        Label(LEFT, TOP - 10, "lines out of sight when they are used again", colour=INK),
        Label(right, bottom + 40, "cost of the session, dollars", "end", INK),
    ]
    for tick in costs:
        x, _ = place(tick, 1.0)
        shapes += [Polyline(((x, TOP), (x, bottom))), Label(x, bottom + 18, f"${short(tick)}", "middle", FAINT)]
    for lost, label in LOST:
        _, y = place(0.0, 1.0 - lost)
        shapes += [Polyline(((LEFT, y), (right, y))), Label(LEFT - 8, y + 4, label, "end", FAINT)]
    if result.bounds:
        x, _ = place(result.bounds.bound, 1.0)
        shapes.append(Polyline(((x, TOP), (x, bottom)), "#888888", dashed=True))
        shapes.append(Label(x + 6, bottom - 8, "no strategy that forgets no line costs less", colour=FAINT))
    if result.sizes:
        path = tuple(place(row.cost, row.lines) for row in result.sizes)
        shapes += [Polyline(path, colour("auto"), 1.5), *(Dot(x, y, 2.5, colour("auto")) for x, y in path)]
    shapes += [Dot(*place(row.cost, row.lines), 5.5, colour(row.strategy)) for row in rows]
    for index, row in enumerate(rows):
        x, y = right + 18, TOP + 14 + 22 * index
        shapes.append(Dot(x, y - 4, 5.5, colour(row.strategy)))
        label = f"{row.strategy} ${row.cost:.2f}, {row.lines:.3f}"
        shapes.append(Label(x + 14, y, label, bold=row.strategy == "auto"))
    return Drawing(WIDTH, bottom + 60, tuple(shapes))


def heading(title: str) -> Label:
    return Label(LEFT, 30, title, size=17, bold=True)


class Scale:
    """The vertical axis of a panel, from zero to a round value that includes `most`."""

    def __init__(self, top: int, most: float) -> None:
        self.bottom = top + PANEL
        self._ticks = ticks(most)

    def y(self, value: float) -> float:
        return self.bottom - PANEL * value / self._ticks[-1]

    def grid(self, label: str, unit: str = "") -> list[Shape]:
        shapes: list[Shape] = [Label(LEFT, self.bottom - PANEL - 10, label, colour=INK)]
        for tick in self._ticks:
            y = self.y(tick)
            shapes.append(Polyline(((LEFT, y), (WIDTH - RIGHT, y))))
            shapes.append(Label(LEFT - 8, y + 4, f"{unit}{short(tick)}", "end", FAINT))
        return shapes


def _clock(bottom: int, span: float) -> list[Shape]:
    """Hours or minutes along the lower edge."""
    size, unit = (3600, "h") if span >= 5400 else (60, "min")
    return [
        Label(_x(tick * size / span), bottom + 18, f"{short(tick)} {unit}", "middle", FAINT)
        for tick in ticks(span / size)
        if tick * size <= span * 1.001
    ]


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def colour(strategy: str) -> str:
    return COLOURS.get(strategy, "#444444")


def ticks(most: float, count: int = 5) -> list[float]:
    """Round values from zero to at least `most`."""
    if most <= 0 or not math.isfinite(most):
        most = 1.0
    rough = most / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    return [step * index for index in range(math.ceil(most / step - 1e-9) + 1)]


def short(number: float) -> str:
    if number >= 1_000_000:
        return f"{number / 1_000_000:g}M"
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _thin(points: Sequence[Point]) -> Sequence[Point]:
    """Thins the points out for a small file; the last one always stays."""
    stride = max(1, len(points) // STEPS)
    thinned = list(points[::stride])
    return thinned if not points or thinned[-1] is points[-1] else [*thinned, points[-1]]
