"""`ra compact`: what would go, what would it save, and shall it?"""

import asyncio
from typing import Annotated

import msgspec
import typer

from ra.app import App, Options
from ra.cli.commands import Call
from ra.cli.safe import visible
from ra.cli.table import money
from ra.context.compaction.plan import Preview, preview
from ra.core.facts import Checkpointed
from ra.reading import Reading

app = typer.Typer(add_completion=False, help="Compact a session, or show what that would do.")


@app.command()
def compact(
    ctx: typer.Context,
    session: Annotated[str, typer.Option("--session", help="this session instead of the latest")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show it")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Shorten what the model sees of a session. Nothing is lost: `ra recall` reads it back."""
    call: Call = ctx.obj
    reading = Reading(call.resolved, session or None)
    plan = preview(reading.engine, price=reading.price)
    if as_json:
        call.streams.out(msgspec.json.encode(plan).decode() + "\n")
    elif dry_run or not plan.worth:
        show_preview(plan, call)
    if dry_run or not plan.worth:
        return
    for fact in asyncio.run(_compact(call, reading.timeline.session)):
        if isinstance(fact, Checkpointed):
            words = f"{plan.messages} messages are hidden; `ra recall '{plan.hidden}'` reads them back"
            call.streams.err(f"Compacted ({fact.strategy}): {fact.before:,} → {fact.after:,} tokens. {words}.\n")


async def _compact(call: Call, session: str) -> tuple[object, ...]:
    app = App(call.resolved, Options(), env=call.env, warn=lambda text: call.streams.err(f"ra: {visible(text)}\n"))
    live = app.open(resume=session)
    try:
        assembly = await live.engine.assemble(force="asked")
        live.journal.record(*assembly.facts)
        return assembly.facts
    finally:
        await live.close()


def show_preview(plan: Preview, call: Call) -> None:
    out = call.streams.out
    if not plan.worth:
        out(f"Nothing to gain: {plan.before:,} tokens would become {plan.after:,}.\n")
        return
    out(
        f"{plan.strategy}: {plan.messages} messages ({plan.hidden}) would be hidden, "
        f"{plan.before:,} → {plan.after:,} tokens\n"
    )
    if plan.dollars_before:
        pays = f"it pays from call {plan.break_even} on" if plan.break_even else "it would never pay by itself"
        out(
            f"each call: {money(plan.dollars_before)} → {money(plan.dollars_after)}; "
            f"the rewrite costs {money(plan.rewrite)} once; {pays}\n"
        )
    out(visible(plan.text) + "\n")
