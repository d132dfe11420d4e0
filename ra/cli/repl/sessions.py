"""Which commands go to another session? A list with what going on would cost now, a copy, a new one."""

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING

from ra.cli.repl.complete import Offer
from ra.cli.repl.looking import columns
from ra.cli.safe import one_line
from ra.cli.table import age, money
from ra.context.compaction.plan import preview
from ra.core.errors import UsageError
from ra.core.facts import Spent
from ra.core.model import Usage
from ra.core.value import Value
from ra.costs.promptcache import rules_for
from ra.reading import Reading
from ra.timeline.store import SessionInfo

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl

LISTED = 15


class Quote(Value, frozen=True):
    """What the next call of a stored session would cost for what it carries already."""

    info: SessionInfo
    tokens: int
    warm: bool
    dollars: Decimal | None


async def list_(repl: "Repl", argument: str) -> None:
    found = quotes(repl)
    if not found:
        repl.say("No sessions of this project are stored yet; a prompt begins one.", "dim")
        return
    repl.show(_table(repl, found))


async def resume(repl: "Repl", argument: str) -> None:
    """By id, or by a number of the list."""
    chosen = argument or await _pick(repl)
    if not chosen:
        return
    info = repl.app.store.info(chosen)
    if info.id == repl.session.id:
        raise UsageError("That is this session; /sessions lists the others.")
    shorter = await _offer(repl, info.id)
    if shorter is None:
        return
    session = repl.app.open(resume=info.id)
    await repl.switch(session)
    if shorter:
        assembly = await session.engine.assemble(force="resumed")
        session.journal.record(*assembly.facts)
    repl.greet()


async def fork(repl: "Repl", argument: str) -> None:
    if repl.args.no_session or repl.session.engine.configured is None:
        raise UsageError("There is nothing stored to copy yet; ask something first.")
    old = repl.session.id
    await repl.switch(repl.app.open(resume=old, fork=True))
    repl.say(f"This is a copy now: {repl.session.id}. The original is {old}.", "dim")


async def clear(repl: "Repl", argument: str) -> None:
    old, stored = repl.session.id, repl.session.engine.configured is not None and not repl.args.no_session
    await repl.switch(repl.app.open(ephemeral=bool(repl.args.no_session)))
    repl.telling.ended_tools = []
    repl.say("A new session." + (f" /resume {old} goes back." if stored else ""), "dim")


def offers(repl: "Repl", begun: str) -> list[Offer]:
    return [(info.id, info.title) for info in repl.app.store.sessions(str(repl.app.resolved.root), LISTED)]


# --- the list ---


def quotes(repl: "Repl") -> list[Quote]:
    app, now = repl.app, repl.app.clock()
    project = str(app.resolved.root)
    last = {session: event for session, event in app.store.spent(project=project) if _main(event.fact)}
    found = []
    for info in app.store.sessions(project, LISTED):
        paid = last.get(info.id)
        if paid is None or not isinstance(paid.fact, Spent):
            found.append(Quote(info, 0, warm=False, dollars=None))
            continue
        tokens = paid.fact.usage.total_input + paid.fact.usage.output
        warm = now - paid.time < rules_for(info.model, app.provider_name).lifetime_s
        usage = Usage(cache_read=tokens) if warm else Usage(cache_write=tokens)
        found.append(Quote(info, tokens, warm=warm, dollars=app.price(app.model, usage)))
    return found


def _main(fact: object) -> bool:
    return isinstance(fact, Spent) and fact.purpose == "turn"


def _table(repl: "Repl", found: list[Quote]) -> str:
    now = repl.app.clock()
    wide = repl.paper.width >= 70
    heads = ["", "id", "title", "age", "tokens", "next call", "cache"] if wide else ["", "title", "age", "next call"]
    rows = []
    for number, quote in enumerate(found, 1):
        here = "*" if quote.info.id == repl.session.id else ""
        title = one_line(quote.info.title or "–", 40 if wide else 16)
        cells = [f"{number}{here}", quote.info.id, title, age(now - quote.info.updated), f"{quote.tokens:,}"]
        cells += [money(quote.dollars), "warm" if quote.warm else "cold"]
        rows.append(cells if wide else [cells[0], cells[2], cells[3], cells[5]])
    return columns(repl.paper, heads, rows)


async def _pick(repl: "Repl") -> str:
    """The id of a session, "" when none was wanted."""
    found = quotes(repl)
    if not found:
        raise UsageError("No sessions of this project are stored yet; a prompt begins one.")
    repl.show(_table(repl, found))
    typed = (await repl.terminal.line("number or id › ") or "").strip()
    if typed.isdecimal() and 1 <= int(typed) <= len(found):
        return found[int(typed) - 1].info.id
    return typed


async def _offer(repl: "Repl", session: str) -> bool | None:
    """Shall it be compacted first? Asked only where the next call gets cheaper by it; None: not resumed at all."""
    known = await asyncio.to_thread(Reading, repl.app.resolved, session)
    plan = await asyncio.to_thread(preview, known.engine, price=known.price)
    cold = known.is_cold()
    model = repl.app.model
    whole = repl.app.price(model, Usage(cache_write=plan.before) if cold else Usage(cache_read=plan.before))
    short = repl.app.price(model, Usage(cache_write=plan.after)) if cold else Decimal(plan.rewrite or 0)
    if not plan.worth or whole is None or short is None or short >= whole:
        return False
    repl.say(
        f"The cache is {'cold' if cold else 'warm'}: as it is, the next call sends {plan.before:,} tokens for "
        f"{money(whole)}; compacted ({plan.strategy}), {plan.after:,} for {money(short)}. Nothing is lost either way.",
    )
    key = await repl.terminal.choose("Resume?", {"y": "as it is", "c": "compacted", "n": "no"})
    return None if key in ("", "n") else key == "c"
