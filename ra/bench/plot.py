"""What does a comparison look like? Cost over time and window over time, as an SVG that reads well in a report."""

import math
from collections.abc import Sequence
from html import escape

from ra.bench.replay import Point, Row
from ra.bench.runs import TraceResult

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 960, 260, 70, 190, 64, 64
# Okabe and Ito's colours: told apart by people who do not see all of them. `auto` gets the strongest.
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
UNSEEN = 0.0005  # shares of lost names below this are drawn as none
LOST = ((0.0, "none"), (0.001, "0.1 %"), (0.003, "0.3 %"), (0.01, "1 %"), (0.03, "3 %"), (0.1, "10 %"), (0.3, "30 %"))


def svg(result: TraceResult, title: str) -> str:
    """Two panels, one above the other, with one legend."""
    start = result.started
    span = max(1.0, result.ended - start)
    rows = sorted(result.rows, key=lambda row: -row.cost)
    costs = _Panel("cost so far, dollars", TOP, max((row.cost for row in rows), default=1.0), span, "$")
    windows = _Panel("window, tokens", TOP + PANEL + GAP, max((row.peak for row in rows), default=1), span, "")
    height = TOP + 2 * PANEL + GAP + 48
    body = [*_head(height, title), costs.frame(), windows.frame()]
    for row in rows:
        body.append(costs.curve(row, [(point.time - start, point.cost) for point in _thin(row.points)]))
        body.append(windows.curve(row, [(point.time - start, point.window) for point in _thin(row.points)]))
    body += _legend(rows)
    body.append("</svg>")
    return "\n".join(body) + "\n"


def frontier(result: TraceResult, title: str, sweep: Sequence[Row] = ()) -> str:
    """Cost against the share of names that were out of sight when they were used again: upper left is best.

    `sweep` are rows of one strategy under other sizes; they are joined by a line.
    """
    rows = sorted(result.rows, key=lambda row: row.cost)
    costs = ticks(max((row.cost for row in (*rows, *sweep)), default=1.0))
    bottom, right = TOP + 330, WIDTH - RIGHT - 60
    worst, best = math.log10(0.5), math.log10(UNSEEN)

    def place(cost: float, recall: float) -> tuple[float, float]:
        lost = math.log10(min(0.5, max(UNSEEN, 1.0 - recall)))
        return LEFT + (right - LEFT) * cost / costs[-1], TOP + (bottom - TOP) * (lost - best) / (worst - best)

    body = [
        *_head(bottom + 60, title),
        f'<text x="{LEFT}" y="{TOP - 10}" fill="#444">names out of sight when they are used again</text>',
        f'<text x="{right}" y="{bottom + 40}" text-anchor="end" fill="#444">cost of the session, dollars</text>',
    ]
    for tick in costs:
        x, _ = place(tick, 1.0)
        body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#e5e5e5"/>')
        body.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#666">${short(tick)}</text>')
    for lost, label in LOST:
        _, y = place(0.0, 1.0 - lost)
        body.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        body.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{label}</text>')
    if result.optimum:
        x, _ = place(result.optimum, 1.0)
        body.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#888" stroke-dasharray="3 3"/>'
            f'<text x="{x + 6:.1f}" y="{bottom - 8}" fill="#666">auto at the best moments, in hindsight</text>'
        )
    if sweep:
        path = " ".join("{:.1f},{:.1f}".format(*place(row.cost, row.recall)) for row in sweep)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour("auto")}" stroke-width="1.5"/>')
        body += [_dot(*place(row.cost, row.recall), colour("auto"), 2.5) for row in sweep]
    body += [_dot(*place(row.cost, row.recall), colour(row.strategy), 5.5) for row in rows]
    for index, row in enumerate(rows):
        y, x = TOP + 14 + 22 * index, right + 18
        weight = ' font-weight="600"' if row.strategy == "auto" else ""
        body.append(_dot(x, y - 4, colour(row.strategy), 5.5))
        body.append(
            f'<text x="{x + 14}" y="{y}"{weight}>{escape(row.strategy)} ${row.cost:.2f}, {row.recall:.3f}</text>'
        )
    return "\n".join([*body, "</svg>"]) + "\n"


def _dot(x: float, y: float, fill: str, radius: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>'


def _head(height: int, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="30" font-size="17" font-weight="600">{escape(title)}</text>',
    ]


class _Panel:
    def __init__(self, label: str, top: int, most: float, span: float, unit: str) -> None:
        self._label, self._top, self._span, self._unit = label, top, span, unit
        self._ticks = ticks(most)
        self._most = self._ticks[-1]

    def frame(self) -> str:
        lines = [f'<text x="{LEFT}" y="{self._top - 10}" fill="#444">{self._label}</text>']
        for tick in self._ticks:
            y = self._y(tick)
            lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>')
            lines.append(
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{self._unit}{short(tick)}</text>'
            )
        size, unit = (3600, "h") if self._span >= 5400 else (60, "min")
        for tick in ticks(self._span / size):
            if tick * size <= self._span * 1.001:
                x = self._x(tick * size)
                bottom = self._top + PANEL
                lines.append(
                    f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#666">{short(tick)} {unit}</text>'
                )
        return "\n".join(lines)

    def curve(self, row: Row, points: Sequence[tuple[float, float]]) -> str:
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if row.strategy in DASHED else ""
        width = 2.6 if row.strategy == "auto" else 1.5
        return (
            f'<polyline points="{path}" fill="none" stroke="{colour(row.strategy)}" stroke-width="{width}"'
            f' stroke-linejoin="round"{dash}/>'
        )

    def _x(self, seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / self._span

    def _y(self, value: float) -> float:
        return self._top + PANEL * (1 - value / self._most)


def _legend(rows: Sequence[Row]) -> list[str]:
    """Strategies by price, dearest first, as the curves end."""
    lines = []
    for index, row in enumerate(rows):
        y = TOP + 14 + 22 * index
        x = WIDTH - RIGHT + 18
        dash = ' stroke-dasharray="5 4"' if row.strategy in DASHED else ""
        lines.append(
            f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" stroke="{colour(row.strategy)}"'
            f' stroke-width="3"{dash}/>'
        )
        weight = ' font-weight="600"' if row.strategy == "auto" else ""
        lines.append(f'<text x="{x + 30}" y="{y}"{weight}>{escape(row.strategy)} ${row.cost:.2f}</text>')
    return lines


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
    """Few enough points for a small file; the last is always kept."""
    stride = max(1, len(points) // STEPS)
    kept = list(points[::stride])
    return kept if not points or kept[-1] is points[-1] else [*kept, points[-1]]
