"""Draws a window as a bar of its sources, with the tokens, share, cache state and cost of each."""

from collections.abc import Iterable, Mapping

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from ra.cli.render import Paper
from ra.cli.table import money
from ra.context.report import Report, Row
from ra.core.text import visible_line

WIDEST = 72
NARROW = 60  # columns; a narrower bar shows only what matters most

# A colour and a filling for each source in turn; without colour, the filling distinguishes them.
_FILLS = (
    ("cyan", "█"),
    ("magenta", "▓"),
    ("green", "▒"),
    ("yellow", "#"),
    ("blue", "="),
    ("red", "+"),
    ("default", "%"),
)
_FREE = ("dim", "·")


def picture(report: Report, spent: Mapping[str, str], paper: Paper, *, everything: bool, cold: bool) -> str:
    """`spent` is the cost of each source so far; `cold`: the provider's cache has expired, all will be new."""
    if not everything:
        report = msgspec.structs.replace(report, rows=tuple(_merged(report.rows)))
    return (
        (_bar(report, paper) if not paper.plain else "")
        + _table(report, spent, paper, everything=everything)
        + (paper.rendered(Text(_sum(report, cold=cold))))
    )


def _merged(rows: Iterable[Row]) -> Iterable[Row]:
    """One row for each source; `all` lists its parts."""
    merged: dict[str, Row] = {}
    for row in rows:
        earlier = merged.get(row.name)
        sums = {} if earlier is None else {"tokens": earlier.tokens + row.tokens, "cached": earlier.cached + row.cached}
        merged[row.name] = msgspec.structs.replace(row, **sums)
    return merged.values()


def _bar(report: Report, paper: Paper) -> str:
    width = min(paper.width - 2, WIDEST)
    scale = report.window or report.total or 1
    bar, tokens, drawn = Text(), 0, 0
    for number, row in enumerate(report.rows):
        tokens += row.tokens
        end = min(width, max(round(tokens / scale * width), drawn + (row.tokens > 0)))
        colour, fill = _FILLS[number % len(_FILLS)]
        bar.append(fill * (end - drawn), colour)
        drawn = end
    bar.append(_FREE[1] * (width - drawn), _FREE[0])
    return paper.rendered(bar) + "\n"


def _table(report: Report, spent: Mapping[str, str], paper: Paper, *, everything: bool) -> str:
    scale = report.window or report.total or 1
    wide = paper.width >= NARROW
    limits = everything and any(row.max for row in report.rows)
    cuts = everything and any(row.cut for row in report.rows)
    cost = "cost" if everything else "cost so far"  # all columns fit into eighty
    share = wide or not everything
    heads = ["", "source", "tokens", *["share"] * share]
    heads += ["cache", cost] if wide else []
    heads += ["tier", "role"] if everything else []
    heads += [*["max"] * limits, *["cut"] * cuts]
    if paper.plain:
        return "".join(_sentence(row, scale, spent) for row in report.rows)
    gap = (0, 1, 0, 0) if everything else (0, 1)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=gap)
    for head in heads:
        right = head in ("tokens", "share", cost, "max")
        folds = head in ("source", "cut")
        table.add_column(head, justify="right" if right else "left", overflow="fold", no_wrap=not folds)
    for number, row in enumerate(report.rows):
        colour, fill = _FILLS[number % len(_FILLS)]
        cells = [
            Text(visible_line(row.name, 40)),
            Text(f"{row.tokens:,}"),
            *[Text(f"{row.tokens / scale:.1%}")] * share,
        ]
        cells += [Text(_cache(row)), Text(spent.get(row.name, "–"))] if wide else []
        cells += [Text(row.tier), Text(row.role)] if everything else []
        cells += [Text(f"{row.max:,}" if row.max else "")] * limits + [Text(visible_line(row.cut, 60))] * cuts
        table.add_row(Text(fill, colour), *cells)
    return paper.rendered(table)


def _sentence(row: Row, scale: int, spent: Mapping[str, str]) -> str:
    cut = f", {row.cut}" if row.cut else ""
    name = visible_line(row.name, 40)
    cost = f", cost so far {spent[row.name]}" if row.name in spent else ""
    return f"{name}: {row.tokens:,} tokens, {row.tokens / scale:.1%}, {_cache(row)}{cost}{cut}\n"


def _cache(row: Row) -> str:
    if not row.cached:
        return "new"
    return "cached" if row.cached >= row.tokens else f"{row.cached / row.tokens:.0%} cached"


def _sum(report: Report, *, cold: bool) -> str:
    window = f" of {report.window:,} ({report.total / report.window:.0%})" if report.window else ", window unknown"
    price = f", next input about {money(report.cost)}" if report.cost else ", no price known"
    state = ", cache cold" if cold else f"; {report.cached:,} cached, {report.total - report.cached:,} new"
    return f"{report.model}: {report.total:,} tokens{window}{state}{price}"
