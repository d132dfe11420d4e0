"""Shows a live comparison: JSON for programs, tables and bars for people."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from ra.bench.drawing import FAINT, Bar, Drawing, Label, Shape
from ra.bench.live import Arm, LivePlan, Measured, price, short
from ra.bench.plot import COLOURS, GAP, LEFT, PANEL, RIGHT, TOP, WIDTH, Scale, colour, heading
from ra.context.compose.strategy import one_line
from ra.core.model import TokenCounts, Usage

PREVIEW = 160

Number = int | float | Decimal
# The compared figures: a label, how to read it from an arm, how to format it.
_ROWS: tuple[tuple[str, Callable[[Arm], Number | None], Callable[[Number], str]], ...] = (
    ("input", lambda arm: arm.usage.input, lambda n: f"{n:,}"),
    ("output", lambda arm: arm.usage.output, lambda n: f"{n:,}"),
    ("cache read", lambda arm: arm.usage.cache_read, lambda n: f"{n:,}"),
    ("cache create", lambda arm: arm.usage.cache_write, lambda n: f"{n:,}"),
    ("total input", lambda arm: arm.usage.total_input, lambda n: f"{n:,}"),
    ("est. cost", lambda arm: arm.dollars, lambda n: f"${n:.4f}"),
    ("duration", lambda arm: arm.seconds, lambda n: f"{n:.1f} s"),
)


def as_json(
    plan: LivePlan, arms: Sequence[Arm], notes: Sequence[str], *, url: str, interrupted: bool
) -> dict[str, Any]:
    return {
        "agent": plan.agent,
        "messages": list(plan.messages),
        "channel": plan.channel,
        "chatId": plan.chat_id,
        "url": url or None,
        "runs": plan.runs,
        "turns": plan.turns,
        "tools": plan.tools,
        "strategies": [_arm(arm) for arm in arms],
        "delta": [_delta(arms[0], arm) for arm in arms[1:]],
        "notes": list(notes),
        "interrupted": interrupted,
    }


def _arm(arm: Arm) -> dict[str, Any]:
    return {
        "strategy": arm.strategy,
        "compared": len(arm.compared),
        "errors": arm.errors,
        "fallbacks": arm.fallbacks,
        **_figures(arm),
        "turns": [_turn(measurement) for measurement in arm.turns],
    }


def _figures(arm: Arm) -> dict[str, Any]:
    dollars = arm.dollars
    return _usage(arm.compared) | {
        "cost": None if dollars is None else float(dollars),
        "duration": round(arm.seconds, 3),
    }


def _usage(turns: Sequence[Measured]) -> dict[str, Any]:
    total = sum((measurement.answer.usage for measurement in turns), Usage())
    counts: dict[str, Any] = msgspec.to_builtins(TokenCounts.of(total))
    return counts | {"totalInputTokens": total.total_input}


def _turn(measurement: Measured) -> dict[str, Any]:
    answer = measurement.answer
    fields: dict[str, Any] = {
        "run": measurement.order.run,
        "turn": measurement.order.turn,
        "chatId": measurement.order.chat_id,
    }
    fields |= _usage([measurement]) | {
        "cost": float(answer.dollars) if answer.dollars else None,
        "duration": round(answer.seconds, 3),
        "strategy": answer.followed or measurement.order.strategy,
        "preview": one_line(answer.text, PREVIEW),
    }
    return fields | ({"error": answer.error} if answer.error else {})


def _delta(first: Arm, other: Arm) -> dict[str, Any]:
    """The difference of the second to the first."""
    ours, theirs = _figures(first), _figures(other)
    measured = bool(first.compared and other.compared)
    difference = {
        name: round(theirs[name] - value, 9) if measured and value is not None and theirs[name] is not None else None
        for name, value in ours.items()
    }
    return {"strategy": other.strategy, "against": first.strategy} | difference


def title(plan: LivePlan, *, where: str) -> str:
    counts = f"{plan.runs} run{'s' * (plan.runs > 1)} of {plan.turns} turn{'s' * (plan.turns > 1)}"
    names = " against ".join(map(short, plan.strategies))
    return f"{plan.agent or 'ra'} ({where}): {names}, {counts}, tools: {plan.tools}"


def heads(arms: Sequence[Arm]) -> list[str]:
    first = [short(arms[0].strategy)]
    single = len(arms) == 2
    return [
        "",
        *first,
        *(head for arm in arms[1:] for head in (short(arm.strategy), "delta" if single else f"delta to {first[0]}")),
    ]


def cells(arms: Sequence[Arm]) -> list[list[str]]:
    """A row for each figure, and a column for each strategy with its difference to the first."""
    rows = []
    for label, read, write in _ROWS:
        ours = read(arms[0]) if arms[0].compared else None
        row = [label, "?" if ours is None else write(ours)]
        for arm in arms[1:]:
            theirs = read(arm) if arm.compared else None
            row += ["?" if theirs is None else write(theirs), _more(ours, theirs, write)]
        rows.append(row)
    errors = ["errors", str(arms[0].errors)]
    for arm in arms[1:]:
        errors += [str(arm.errors), ""]
    return [*rows, errors]


def _more(ours: Number | None, theirs: Number | None, write: Callable[[Number], str]) -> str:
    if ours is None or theirs is None:
        return ""
    difference = Decimal(str(theirs)) - Decimal(str(ours))
    signed = f"{'-' if difference < 0 else '+'}{write(abs(difference))}"
    if not ours:
        return signed
    share = float(difference) / float(ours)
    return f"{signed} ({share:+.1%})" if abs(share) < 0.1 else f"{signed} ({share:+.0%})"


def turn_heads(arms: Sequence[Arm]) -> list[str]:
    return ["turn", *(f"{short(arm.strategy)} {what}" for arm in arms for what in ("total input", "cost"))]


def turn_cells(arms: Sequence[Arm], turns: int) -> list[list[str]]:
    """Input and cost of each turn, as means over the runs, and the sum of the costs."""
    rows = []
    for turn in range(1, turns + 1):
        row = [str(turn)]
        for arm in arms:
            size, cost = _mean(arm, turn)
            row += ["" if size is None else f"{size:,.0f}", "" if size is None else _money(cost)]
        rows.append(row)
    costs = [[_mean(arm, turn)[1] for turn in range(1, turns + 1) if arm.at(turn)] for arm in arms]
    sums = [
        None if None in each or not each else sum((cost for cost in each if cost is not None), Decimal(0))
        for each in costs
    ]
    return [*rows, [f"{turns}-turn total", *(text for total in sums for text in ("", _money(total)))]]


def _mean(arm: Arm, turn: int) -> tuple[float | None, Decimal | None]:
    those = arm.at(turn)
    if not those:
        return None, None
    dollars = price(those)
    size = sum(measurement.answer.usage.total_input for measurement in those) / len(those)
    return size, None if dollars is None else dollars / len(those)


def _money(amount: Decimal | None) -> str:
    return "?" if amount is None else f"${amount:.4f}"


def previews(arms: Sequence[Arm]) -> list[str]:
    """Each strategy's first answer, and its first error."""
    lines = []
    for arm in arms:
        answered = next((measurement.answer.text for measurement in arm.turns if not measurement.answer.error), None)
        if answered is not None:
            lines.append(f"{short(arm.strategy)}: {one_line(answered, PREVIEW)}")
        failed = next((measurement for measurement in arm.turns if measurement.answer.error), None)
        if failed is not None:
            where = f"run {failed.order.run}, turn {failed.order.turn}"
            lines.append(f"{short(arm.strategy)} failed ({where}): {one_line(failed.answer.error, 400)}")
    return lines


def drawn(arms: Sequence[Arm], turns: int, title: str) -> Drawing:
    """Total input and cost of each turn, with a bar for each strategy."""
    sizes = [[_mean(arm, turn)[0] or 0.0 for turn in range(1, turns + 1)] for arm in arms]
    costs = [[float(_mean(arm, turn)[1] or 0) for turn in range(1, turns + 1)] for arm in arms]
    fills = [_fill(arm, index) for index, arm in enumerate(arms)]
    shapes: list[Shape] = [heading(title)]
    shapes += _panel("total input per turn, tokens", "", TOP, sizes, fills)
    shapes += _panel("cost per turn, dollars", "$", TOP + PANEL + GAP, costs, fills)
    for index, arm in enumerate(arms):
        x, y = WIDTH - RIGHT + 18, TOP + 10 + 22 * index
        total = "" if arm.dollars is None else f" ${arm.dollars:.4f}"
        shapes += [Bar(x, y - 11, 14, 14, fills[index]), Label(x + 22, y + 1, f"{short(arm.strategy)}{total}")]
    return Drawing(WIDTH, TOP + 2 * PANEL + GAP + 40, tuple(shapes))


def _panel(label: str, unit: str, top: int, series: Sequence[Sequence[float]], fills: Sequence[str]) -> Iterator[Shape]:
    scale = Scale(top, max((value for values in series for value in values), default=1.0))
    yield from scale.grid(label, unit)
    turns = len(series[0])
    group = (WIDTH - RIGHT - LEFT) / turns
    bar = min(48.0, group * 0.8 / len(series))
    for turn in range(turns):
        middle = LEFT + group * (turn + 0.5)
        for index, values in enumerate(series):
            x, y = middle + bar * (index - len(series) / 2), scale.y(values[turn])
            yield Bar(x, y, bar * 0.9, scale.bottom - y, fills[index])
        if turns <= 30 or turn % 5 == 4:
            yield Label(middle, scale.bottom + 18, str(turn + 1), "middle", FAINT)


def _fill(arm: Arm, index: int) -> str:
    """The strategy's own colour; each file has a different one."""
    spare = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
    return colour(arm.strategy) if arm.strategy in COLOURS else spare[index % len(spare)]
