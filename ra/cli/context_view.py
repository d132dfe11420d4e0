"""How is a request shown? By source: tier, tokens, share of the window, cached or new, price, and what was cut."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from ra.agent.prepare import Prepared
from ra.agent.session import Session
from ra.app import App
from ra.cli import table
from ra.cli.output import Streams
from ra.cli.safe import one_line, visible
from ra.context.compaction.plan import Preview
from ra.context.report import Report, Row, report
from ra.core.facts import Said
from ra.core.model import Request
from ra.core.ports import Timeline
from ra.reading import Reading

BAR = 24


def show_report(told: Report, streams: Streams, *, as_json: bool) -> None:
    if as_json:
        streams.out(msgspec.json.encode(as_dict(told)).decode() + "\n")
        return
    most = told.window or told.total or 1
    rows = [_cells(row, most) for row in told.rows]
    table.show(streams, ["source", "tier", "role", "tokens", "", "cached", "max", "cut"], rows, right=(3, 5, 6))
    window = f" of {told.window:,} ({told.total / told.window:.0%})" if told.window else ", window unknown"
    price = f", input {table.money(told.cost)}" if told.cost else ", no price known"
    new = told.total - told.cached
    streams.out(f"{told.model}: {told.total:,} tokens{window}; {told.cached:,} cached, {new:,} new{price}\n")


def _cells(row: Row, most: int) -> list[str]:
    share = row.tokens / most
    bar = "█" * round(share * BAR) or ("▏" if row.tokens else "")
    limit = f"{row.max:,}" if row.max else ""
    return [row.name, row.tier, row.role, f"{row.tokens:,}", f"{bar} {share:.1%}", f"{row.cached:,}", limit, row.cut]


def as_dict(told: Report) -> dict[str, Any]:
    """The JSON that scripts read: the names are those of the documentation."""
    return {
        "model": told.model,
        "window": told.window,
        "total": told.total,
        "cached": told.cached,
        "cost": float(told.cost) if told.cost else None,
        "sections": [_row_dict(row) for row in told.rows],
    }


def _row_dict(row: Row) -> Mapping[str, Any]:
    return {name: getattr(row, name) for name in ("name", "tier", "role", "tokens", "max", "cut", "cached")}


def previewed(plan: Preview) -> str:
    """What a compaction would do, and from when on it pays; a model that costs nothing has no such line."""
    if not plan.worth:
        return f"Nothing to gain: {plan.before:,} tokens would become {plan.after:,}.\n"
    most = "at most " if plan.strategy == "summarize" else ""  # how long a summary gets is known when it is there
    lines = [
        f"{plan.strategy}: {plan.messages} messages ({plan.hidden}) would be hidden, "
        f"{plan.before:,} → {most}{plan.after:,} tokens"
    ]
    if plan.dollars_before and float(plan.dollars_before):
        pays = f"it pays from call {plan.break_even} on" if plan.break_even else "it would never pay by itself"
        lines.append(
            f"each call: {table.money(plan.dollars_before)} → {table.money(plan.dollars_after)}; "
            f"the rewrite costs {table.money(plan.rewrite)} once; {pays}"
        )
    return "\n".join([*lines, visible(plan.text)]) + "\n"


async def dry_run(session: Session, prepared: Prepared, app: App, streams: Streams, *, as_json: bool) -> int:
    """What would be sent, by the code that sends it. Nothing is sent, and the session is in memory only."""
    held = await asyncio.to_thread(_held, app, session.journal.timeline)
    if prepared.message.text or len(prepared.message.blocks) > 1:
        if rotated := session.loop.rotate():
            session.journal.record(rotated)
        session.journal.record(Said(prepared.message))
    session.journal.record(*await session.loop.compose(prepared.message))
    assembly = await session.engine.assemble()
    told = report(
        assembly.request,
        estimator=session.engine.estimator,
        window=session.engine.window.limit,
        rate=session.engine.rate(),
        previous=held,
        price=app.price,
    )
    show_report(told, streams, as_json=as_json)
    return 0


def _held(app: App, timeline: Timeline) -> Request | None:
    """What the provider may still hold of the session that the prompt goes on with."""
    return Reading(app.resolved, timeline=timeline).held() if any(timeline.events()) else None


def show_context(app: App, prepared: Prepared, streams: Streams) -> int:
    """Discovered files and resolved references, in the order in which the model gets them."""
    for section in app.discovered:
        streams.out(f"{one_line(section.name)}\t{section.tier}\t{len(section.content.encode()):,} bytes\n")
    for reference in prepared.references:
        streams.out(f"{one_line(reference, 400)}\n")
    if not app.discovered and not prepared.references:
        streams.err("No instruction files were found, and the prompt refers to nothing.\n")
    return 0
