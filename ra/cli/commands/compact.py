"""`ra compact`: what would go, what would it save, and shall it?"""

import asyncio
from typing import Annotated

import msgspec
import typer

from ra.app import App, Options
from ra.cli.commands import Call
from ra.cli.context_view import previewed
from ra.cli.safe import visible
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
    plan = reading.compaction()
    if as_json:
        call.streams.out(msgspec.json.encode(plan).decode() + "\n")
    elif dry_run or not plan.worth:
        call.streams.out(previewed(plan))
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
