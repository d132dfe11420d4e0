"""Shows a request by source: tier, tokens, share of the window, cached or new, price, and what was left out."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ra.app import App
from ra.cli import table
from ra.cli.output import Streams
from ra.context.report import CompactionPreview, Difference, Report, Row
from ra.core.model import Usage
from ra.core.text import visible, visible_line
from ra.session.prepare import Prepared
from ra.session.session import Session
from ra.session.snapshot import Snapshot

BAR = 24


def show_report(report: Report, streams: Streams, *, as_json: bool) -> None:
    if as_json:
        streams.out(msgspec.json.encode(as_dict(report)).decode() + "\n")
        return
    most = report.window or report.total or 1
    rows = [_cells(row, most) for row in report.rows]
    table.show(streams, ["source", "tier", "role", "tokens", "", "cached", "max", "cut"], rows, right=(3, 5, 6))
    window = f" of {report.window:,} ({report.total / report.window:.0%})" if report.window else ", window unknown"
    price = f", input {table.money(report.cost)}" if report.cost else ", no price known"
    uncached = report.total - report.cached
    streams.out(f"{report.model}: {report.total:,} tokens{window}; {report.cached:,} cached, {uncached:,} new{price}\n")


def _cells(row: Row, most: int) -> list[str]:
    share = row.tokens / most
    bar = "█" * round(share * BAR) or ("▏" if row.tokens else "")
    limit = f"{row.max:,}" if row.max else ""
    return [row.name, row.tier, row.role, f"{row.tokens:,}", f"{bar} {share:.1%}", f"{row.cached:,}", limit, row.cut]


def as_dict(report: Report) -> dict[str, Any]:
    """The JSON for scripts; the documentation lists the names."""
    return {
        "model": report.model,
        "window": report.window,
        "total": report.total,
        "cached": report.cached,
        "cost": float(report.cost) if report.cost else None,
        "sections": [_row_dict(row) for row in report.rows],
    }


def _row_dict(row: Row) -> Mapping[str, Any]:
    return {name: getattr(row, name) for name in ("name", "tier", "role", "tokens", "max", "cut", "cached")}


def previewed(plan: CompactionPreview) -> str:
    """What a compaction would do, and when it would pay for itself (unless the model costs nothing)."""
    if not plan.worth:
        return f"Nothing to gain: {plan.before:,} tokens would become {plan.after:,}.\n"
    most = "at most " if plan.strategy == "summarize" else ""  # the length of a summary is unknown until it is written
    lines = [
        f"{plan.strategy}: {plan.messages} messages ({plan.hidden}) would be hidden, "
        f"{plan.before:,} → {most}{plan.after:,} tokens"
    ]
    if plan.dollars_before and float(plan.dollars_before):
        pays = f"you save from call {plan.break_even} on" if plan.break_even else "you would never save by this alone"
        lines.append(
            f"each call: {table.money(plan.dollars_before)} → {table.money(plan.dollars_after)}; "
            f"the rewrite costs {table.money(plan.rewrite)} once; {pays}"
        )
    return "\n".join([*lines, visible(plan.text)]) + "\n"


def told_difference(difference: Difference | None, snapshot: Snapshot) -> str:
    """Where the last request left the cached prefix, and what that cost."""
    if difference is None:
        return "The last request extends the one before byte for byte, so all of that can be read from the cache.\n"
    write, read = snapshot.price(Usage(cache_write=difference.anew)), snapshot.price(Usage(cache_read=difference.anew))
    cost = (
        f", {table.money(write - read)} more than reading them from the cache"
        if write is not None and read is not None
        else ""
    )
    return (
        f"The prefix broke at byte {difference.byte:,}, in {visible(difference.source)}: "
        f"{difference.anew:,} tokens had to be sent again{cost}.\n"
        f"- {visible(difference.old)}\n+ {visible(difference.new)}\n"
    )


async def dry_run(session: Session, prepared: Prepared, streams: Streams, *, as_json: bool) -> int:
    """Shows what would be sent, built by the code that sends it. Sends nothing and records nothing."""
    snapshot = await session.preview(prepared.message)
    show_report(snapshot.report, streams, as_json=as_json)
    return 0


def show_context(app: App, prepared: Prepared, streams: Streams) -> int:
    """Shows the context in the order of the request, what the model can load, and what is ignored and why."""
    skills = app.files.skill_sections() if app.options.tools else ()
    for section in (*app.discovered, *skills):
        streams.out(f"{visible_line(section.name)}\t{section.tier}\t{len(section.content.encode()):,} bytes\n")
    for name, folder in app.files.below():
        streams.out(f"{visible_line(name)}\tlater\tread when a tool first touches {visible_line(folder)}\n")
    for name, what in app.files.offers:
        streams.out(f"/{visible_line(name)}\tcommand\t{visible_line(what, 80)}\n")
    for server in app.config.agent.mcp_servers:
        state = "" if server.enabled else ", off"
        streams.out(
            f"{visible_line(server.name)}\tMCP server{state}\t{visible_line(server.url or server.command or '')}\n"
        )
    for reference in prepared.references:
        streams.out(f"{visible_line(reference, 400)}\n")
    for item in app.files.ignored():
        streams.out(f"{visible_line(item.name) or 'note'}\tignored\t{visible_line(item.why, 400)}\n")
    if not app.discovered and not prepared.references:
        streams.err("No instruction files were found, and the prompt refers to nothing.\n")
    return 0
