"""How are results shown? As JSON for programs, as tables for people."""

import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ra.bench.preset import Preset
from ra.bench.replay import Row
from ra.bench.runs import RECORDED, SIZED, TraceResult

TIMED = 1_000_000_000  # no transcript is older than 2001; earlier moments stand for "not recorded"
HEADS = ("strategy", "cost", "against recorded", "hit rate", "peak window", "rewrites", "recall")


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
        "rows": [_row(row) for row in result.rows],
        "calibration": calibration
        and {
            "billed": calibration.billed,
            "simulated": calibration.simulated,
            "difference": round(calibration.difference, 4),
            "lostOutside": calibration.outside,
        },
        "optimum": result.optimum,
        "sizes": [_row(row) for row in result.sizes],
        "pricedAs": result.priced_as or result.model,
        "skipped": list(result.skipped),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "strategy": row.strategy,
        "cost": row.cost,
        "hitRate": row.hit_rate,
        "peak": row.peak,
        "rewrites": row.rewrites,
        "recall": row.recall,
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
    }


def title(result: TraceResult) -> str:
    return f"{result.name}: {result.calls} calls, {_span(result)}, {result.model}, window {result.window:,}"


def _span(result: TraceResult) -> str:
    minutes = (result.ended - result.started) / 60
    return f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min"


def cells(result: TraceResult) -> list[list[str]]:
    """The rows of a result, what was recorded first and the rest by price."""
    recorded = next((row.cost for row in result.rows if row.strategy == RECORDED), 0.0)
    ordered = sorted(result.rows, key=lambda row: (row.strategy != RECORDED, row.cost))
    return [
        [
            row.strategy,
            f"${row.cost:.2f}" if row.cost >= 1 else f"${row.cost:.4f}",
            f"{row.cost / recorded - 1:+.0%}" if recorded and row.strategy != RECORDED else "",
            f"{row.hit_rate:.1%}",
            f"{row.peak:,}",
            str(row.rewrites),
            f"{row.recall:.3f}",
        ]
        for row in ordered
    ]


def calibration(result: TraceResult) -> str:
    """How far the simulation can be trusted, in a line or two."""
    known = result.calibration
    unknown = f" No price is known for {result.model}: it was billed as {result.priced_as}." if result.priced_as else ""
    if known is None:
        return f"No bill was recorded: token counts are estimates.{unknown}"
    text = f"Calibration: recorded bill ${known.billed:.2f}, replayed ${known.simulated:.2f} ({known.difference:+.1%})."
    if known.outside:
        text += (
            f" {known.outside} requests were written anew although their prefix was known and young (a restart,"
            " another system prompt): `recorded` pays for that, the other rows do not."
        )
    return text + unknown


def yardstick(result: TraceResult) -> str:
    """How far `auto` is from what hindsight would have done; empty when that is not known."""
    auto = next((row.cost for row in result.rows if row.strategy == "auto"), None)
    if auto is None or not result.optimum:
        return ""
    more = f"{auto / result.optimum - 1:+.1%}"
    return f"Cutting at the best moments, known only afterwards, would cost ${result.optimum:.2f}: auto pays {more}."


def sizes(result: TraceResult) -> str:
    """What `auto` does with indexes of other sizes; empty when that was not asked for."""
    told = (f"{row.strategy.removeprefix(SIZED)}: ${row.cost:.2f}, recall {row.recall:.3f}" for row in result.sizes)
    return f"auto by the tokens of its indexes: {'; '.join(told)}." if result.sizes else ""


def summary(results: Sequence[TraceResult]) -> list[list[str]]:
    """All traces together: what the whole would have cost under each strategy."""
    total: dict[str, Decimal] = {}
    recorded: dict[str, Decimal] = {}  # of the sessions that a strategy could be replayed on
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
    """The days of all sessions; nothing for transcripts without times."""
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


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
