"""Shows results: JSON for programs, tables for people."""

import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ra.bench.preset import Preset
from ra.bench.replay import StrategyResult
from ra.bench.runs import RECORDED, SIZED, TraceResult
from ra.core.settings import camel

TIMED = 1_000_000_000  # no transcript is older than 2001; earlier times mean "not recorded"
HEADS = (
    "strategy", "cost", "against nothing", "with re-reads", "hit rate", "peak window", "rewrites", "names", "lines",
    "user words",
)  # fmt: skip
NOTHING = "nothing"
TRUSTED = 0.05  # a larger error of a replay is reported
EXPLAINED = 0.03  # a larger error of a prediction is reported with its reason


def as_json(results: Sequence[TraceResult], skipped: Sequence[str]) -> dict[str, Any]:
    return {"traces": [_trace(result) for result in results], "skipped": list(skipped)}


def _trace(result: TraceResult) -> dict[str, Any]:
    calibration = result.calibration
    return {
        "file": result.file,
        "name": result.name,
        "model": result.model,
        "calls": result.calls,
        "window": result.window,
        "started": result.started,
        "ended": result.ended,
        "rows": [_row(row, _uncut(result)) for row in result.rows],
        "calibration": calibration
        and {
            "billed": calibration.billed,
            "simulated": calibration.simulated,
            "difference": round(calibration.difference, 4),
            "predicted": calibration.predicted,
            "predictedDifference": round(calibration.predicted_difference, 4),
            "lostOutside": calibration.outside,
            "lostCaches": calibration.lost_caches,
            "estimatedSizes": round(calibration.sizes, 6),
            "unbilledCalls": calibration.unbilled,
            "lessons": list(calibration.lessons),
        },
        "estimated": calibration is None,
        "bestMoments": result.best_moments,
        "floor": result.bounds and result.bounds.floor,
        "lowerBound": result.bounds and result.bounds.bound,
        "pauses": result.pauses and {camel(name): round(cost, 6) for name, cost in result.pauses._asdict().items()},
        "sizes": [_row(row, _uncut(result)) for row in result.sizes],
        "pricedAs": result.priced_as or result.model,
        "skipped": list(result.skipped),
    }


def _uncut(result: TraceResult) -> float | None:
    """What the session would have cost without a cut, under the same cache rules as the other rows."""
    return next((row.cost for row in result.rows if row.strategy == NOTHING), None)


def _row(row: StrategyResult, uncut: float | None) -> dict[str, Any]:
    return {
        "strategy": row.strategy,
        "cost": row.cost,
        "hitRate": row.hit_rate,
        "peak": row.peak,
        "rewrites": row.rewrites,
        "recall": row.recall,
        "recallWithoutIndex": row.recall_without_index,
        "lines": row.lines,
        "linesWithoutIndex": row.lines_without_index,
        "userWords": row.words,
        "userWordsWithoutIndex": row.words_without_index,
        "costWithRereads": row.with_rereads,
        "rereads": row.rereads,
        "saving": round(1 - row.cost / uncut, 4) if uncut and row.strategy != RECORDED else None,
    }


def preset_json(preset: Preset) -> dict[str, Any]:
    return {
        "turns": [
            {
                "turn": turn.turn,
                "layered": {"input": turn.layered.total_input, "cost": float(turn.layered_cost)},
                "planner": {"input": turn.planner.total_input, "cost": float(turn.planner_cost)},
            }
            for turn in preset.turns
        ],
        "total": {"layered": float(preset.layered_total), "planner": float(preset.planner_total)},
        "day": {
            "tasks": preset.day.tasks,
            "layered": {"computed": float(preset.day.layered_cost), "quoted": float(preset.day.quoted)},
            "planner": {"computed": float(preset.day.planner_cost)},
        },
    }


def title(result: TraceResult) -> str:
    return f"{result.name}: {result.calls} calls, {_span(result)}, {result.model}, window {result.window:,}"


def _span(result: TraceResult) -> str:
    minutes = (result.ended - result.started) / 60
    return f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min"


def cells(result: TraceResult) -> list[list[str]]:
    """The rows of a result: the recorded one first, the others by price."""
    uncut = _uncut(result)
    ordered = sorted(result.rows, key=lambda row: (row.strategy != RECORDED, row.cost))
    return [
        [
            row.strategy,
            _money(row.cost),
            f"{row.cost / uncut - 1:+.0%}" if uncut and row.strategy not in (RECORDED, NOTHING) else "",
            _money(row.with_rereads),
            f"{row.hit_rate:.1%}",
            f"{row.peak:,}",
            str(row.rewrites),
            _share(row.recall, row.recall_without_index),
            _share(row.lines, row.lines_without_index),
            _share(row.words, row.words_without_index),
        ]
        for row in ordered
    ]


def _money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def _share(share: float, without_index: float) -> str:
    """With what an index shows, and without it if that is less."""
    digits = f"{share:.3f}".removeprefix("0")
    return digits if without_index == share else f"{digits} ({without_index:.3f})".replace("(0.", "(.")


def calibration(result: TraceResult) -> str:
    """How far the simulation can be trusted, in a line or two."""
    figures = result.calibration
    unknown = f" No price is known for {result.model}: it was billed as {result.priced_as}." if result.priced_as else ""
    if figures is None:
        return f"No bill was recorded: token counts are estimates.{unknown}"
    text = (
        f"Calibration: bill ${figures.billed:.2f}; replayed with the sizes and the lost caches of the bills (fitted) "
        f"${figures.simulated:.2f} ({figures.difference:+.1%}); from text and times alone (predicted) "
        f"${figures.predicted:.2f} ({figures.predicted_difference:+.1%})."
    )
    if abs(figures.predicted_difference) > EXPLAINED:
        text += (
            f" Why the prediction is off by ${figures.predicted - figures.billed:+.2f}:"
            f" ${-figures.lost_caches:+.2f} for caches that were not as the rules say,"
            f" ${figures.sizes:+.2f} for sizes that are estimated."
        )
    if figures.outside:
        text += (
            f" {figures.outside} requests were written anew although their prefix was known and young (a restart,"
            " another system prompt): `recorded` pays for that, the other rows do not."
        )
    if figures.unbilled:
        text += f" {figures.unbilled} calls have no bill: they are estimated, and not part of this comparison."
    for lesson in figures.lessons:
        text += f" The bills differ from the published rules: {lesson}."
    if abs(figures.predicted_difference) > TRUSTED:
        text += " Warning: the prediction misses the bill by more than 5 %."
    if abs(figures.difference) > TRUSTED:
        text += " Warning: the replay misses the bill by more than 5 %; take the other rows as rough estimates."
    return text + unknown


def yardstick(result: TraceResult) -> str:
    """What no strategy can cost less than, and what `auto` would have cost at other moments."""
    if result.bounds is None:
        return ""
    text = (
        f"No strategy can cost less than ${result.bounds.floor:.2f} (answers, system part, every new token once), and"
        f" none that sees or re-reads every line it uses less than ${result.bounds.bound:.2f}."
    )
    auto = next((row.cost for row in result.rows if row.strategy == "auto"), None)
    if auto is not None and result.best_moments and result.best_moments < auto:
        text += (
            f" The cuts of auto (${auto:.2f}) at the best moments, known only afterwards: ${result.best_moments:.2f}."
        )
    return text


def pauses(result: TraceResult) -> str:
    """The cost of the session under several cache policies; empty without long pauses."""
    if result.pauses is None:
        return ""
    five, hour, ping, auto, keep_warm, best = map(_money, result.pauses)
    return (
        f"Pauses of more than five minutes: as recorded {five} with a cache of five minutes, {hour} with an hour,"
        f" {ping} with a small call every four minutes, {auto} by agent.cache, {keep_warm} with keepWarm: auto;"
        f" {best} is the least, if all pauses were known beforehand."
    )


def sizes(result: TraceResult) -> str:
    """The results of `auto` with indexes of other sizes; empty if not requested."""
    parts = (
        f"{row.strategy.removeprefix(SIZED)}: ${row.cost:.2f}, names {row.recall:.3f}, lines {row.lines:.3f}"
        for row in result.sizes
    )
    return f"auto by the tokens of its indexes: {'; '.join(parts)}." if result.sizes else ""


def summary(results: Sequence[TraceResult]) -> list[list[str]]:
    """All traces together: the total cost under each strategy."""
    total: dict[str, Decimal] = {}
    recorded: dict[str, Decimal] = {}  # of the sessions that could be replayed with a strategy
    sessions: Counter[str] = Counter()
    for result in results:
        paid = sum((Decimal(str(row.cost)) for row in result.rows if row.strategy == RECORDED), Decimal(0))
        for row in result.rows:
            total[row.strategy] = total.get(row.strategy, Decimal(0)) + Decimal(str(row.cost))
            recorded[row.strategy] = recorded.get(row.strategy, Decimal(0)) + paid
            sessions[row.strategy] += 1

    def against(name: str, cost: Decimal) -> str:
        if name == RECORDED or not recorded[name]:
            return ""
        part = "" if sessions[name] == len(results) else f" (in {sessions[name]} of {len(results)})"
        return f"{cost / recorded[name] - 1:+.0%}{part}"

    ordered = sorted(total.items(), key=lambda item: (item[0] != RECORDED, item[1]))
    return [[name, f"${cost:.2f}", against(name, cost)] for name, cost in ordered]


def between(results: Sequence[TraceResult]) -> str:
    """The days of all sessions; "" for transcripts without times."""
    first = min(result.started for result in results)
    last = max(result.ended for result in results)
    if first < TIMED:
        return "days unknown"
    return " to ".join(time.strftime("%Y-%m-%d", time.localtime(moment)) for moment in (first, last))


def preset_tables(preset: Preset) -> tuple[list[list[str]], list[list[str]]]:
    """Input tokens per turn, and cost per turn, as the page prints them."""
    tokens = [
        [str(turn.turn), _spaced(turn.layered.total_input), _spaced(turn.planner.total_input)] for turn in preset.turns
    ]
    costs = [[str(turn.turn), f"${turn.layered_cost}", f"${turn.planner_cost}"] for turn in preset.turns]
    costs.append([f"{len(preset.turns)}-turn total", f"${preset.layered_total}", f"${preset.planner_total}"])
    return tokens, costs


def preset_day(preset: Preset) -> str:
    """The third comparison, in words: a quoted figure is not called computed."""
    day = preset.day
    less, explained_less = (1 - day.planner_cost / cost for cost in (day.quoted, day.layered_cost))
    return (
        f"Layered: ${day.quoted} quoted by the page. Its own figures (14.3 M tokens read from the cache at the tier-2 "
        f"rate) explain ${day.layered_cost} of it.\n"
        f"Planner: ${day.planner_cost} computed ({day.tasks} planned turns with their plans): {less:.0%} less than "
        f"quoted, {explained_less:.0%} less than explained."
    )


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
