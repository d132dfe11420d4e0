"""Commands that switch to another session: a list with prices, a copy, a new one."""

import asyncio
from decimal import Decimal

from ra.cli.repl import resume_banner
from ra.cli.repl.commands.show import columns
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer
from ra.cli.repl.terminal import Choice
from ra.cli.table import age, money
from ra.core.errors import UsageError
from ra.core.facts import Spent
from ra.core.model import Usage
from ra.core.text import visible_line
from ra.core.value import Value
from ra.costs.promptcache import rules_for
from ra.timeline.store import SessionInfo

LISTED = 15
LOOKED_AT = 40  # events at the end of a session that its preview reads


class Quote(Value, frozen=True):
    """The price of the next call of a stored session, for the context that it carries already."""

    info: SessionInfo
    tokens: int
    warm: bool
    dollars: Decimal | None


async def list_(repl: Repl, argument: str) -> None:
    listed = quotes(repl)
    if not listed:
        repl.say("This project has no sessions yet; a prompt starts one.", "dim")
        return
    repl.show(_table(repl, listed))


async def resume(repl: Repl, argument: str) -> None:
    """Resumes a session by id, or by choice from the list."""
    session_id = argument or await _pick(repl)
    if not session_id:
        return
    info = repl.app.store.info(session_id)
    if info.id == repl.session.id:
        raise UsageError("That is this session; /sessions lists the others.")
    shorter = await _offer(repl, info.id)
    if shorter is None:
        return
    session = repl.app.session(repl.app.timeline(info.id), recipe=repl.session.recipe)
    await repl.switch(session)
    if shorter:
        await repl.working("compacting", session.compact(reason="resumed"))
    repl.greet()


async def fork(repl: Repl, argument: str) -> None:
    if repl.args.no_session or repl.session.configured is None:
        raise UsageError("There is nothing stored to copy yet; ask something first.")
    before = repl.session.id
    await repl.switch(repl.session.fork())
    repl.say(f"This is a copy now: {repl.session.id}. The original is {before}.", "dim")


async def clear(repl: Repl, argument: str) -> None:
    before, stored = repl.session.id, repl.session.configured is not None and not repl.args.no_session
    timeline = repl.app.timeline(ephemeral=bool(repl.args.no_session))
    await repl.switch(repl.app.session(timeline, recipe=repl.session.recipe))
    repl.telling.ended_tools = []
    repl.say("A new session." + (f" /resume {before} goes back." if stored else ""), "dim")


def offers(repl: Repl, begun: str) -> list[Offer]:
    return [(info.id, info.title) for info in repl.app.store.sessions(str(repl.app.resolved.root), LISTED)]


# --- the list ---


def quotes(repl: Repl) -> list[Quote]:
    app, recipe, now = repl.app, repl.session.recipe, repl.app.clock()
    project = str(app.resolved.root)
    last = {session: event for session, event in app.store.spent(project=project) if _main(event.fact)}
    listed = []
    for info in app.store.sessions(project, LISTED):
        paid = last.get(info.id)
        if paid is None or not isinstance(paid.fact, Spent):
            listed.append(Quote(info, 0, warm=False, dollars=None))
            continue
        tokens = paid.fact.usage.total_input + paid.fact.usage.output
        warm = now - paid.time < rules_for(info.model, recipe.provider, long_lived=paid.fact.long_lived).lifetime_s
        usage = Usage(cache_read=tokens) if warm else Usage(cache_write=tokens)
        listed.append(Quote(info, tokens, warm=warm, dollars=_price(repl, usage)))
    return listed


def _main(fact: object) -> bool:
    return isinstance(fact, Spent) and fact.purpose == "turn"


def _table(repl: Repl, listed: list[Quote]) -> str:
    now = repl.app.clock()
    wide = repl.paper.width >= 70
    heads = ["", "id", "title", "age", "tokens", "next call", "cache"] if wide else ["", "title", "age", "next call"]
    rows = []
    for number, quote in enumerate(listed, 1):
        here = "*" if quote.info.id == repl.session.id else ""
        title = visible_line(quote.info.title or "–", 40 if wide else 16)
        cells = [f"{number}{here}", quote.info.id, title, age(now - quote.info.updated), f"{quote.tokens:,}"]
        cells += [money(quote.dollars), "warm" if quote.warm else "cold"]
        rows.append(cells if wide else [cells[0], cells[2], cells[3], cells[5]])
    return columns(repl.paper, heads, rows)


async def _pick(repl: Repl) -> str:
    """The id of a session, "" for none. Its list can also rename sessions."""
    marked = 0
    while True:
        listed = quotes(repl)
        if not listed:
            raise UsageError("This project has no sessions yet; a prompt starts one.")
        choices = [_choice(repl, quote) for quote in listed]
        picked = await repl.terminal.pick("Which session?", choices, {"c-r": "rename"}, marked=marked)
        if picked is None:
            return ""
        info = listed[picked.row].info
        if picked.key != "c-r":
            return info.id
        marked = picked.row
        await _rename(repl, info)


def _choice(repl: Repl, quote: Quote) -> Choice:
    info = quote.info
    here = " (this one)" if info.id == repl.session.id else ""
    cost = f"{money(quote.dollars)} {'warm' if quote.warm else 'cold'}"
    age_text = age(repl.app.clock() - info.updated)
    row = f"{visible_line(info.title or '–', 40):<40}  {age_text:>6} ago  next call {cost}{here}"
    return Choice(
        row, search=info.id, preview=f"{info.id} · {info.model} · {quote.tokens:,} tokens\n{_last_words(repl, info)}"
    )


def _last_words(repl: Repl, info: SessionInfo) -> str:
    """How it ended: the last prompt and answer, from its last few events."""
    timeline = repl.app.store.open(info.id, write=False)
    try:
        recap = resume_banner.recap(timeline.events(since=max(0, info.events - LOOKED_AT)))
    finally:
        timeline.close()
    return "\n".join(part for part in (f"› {recap.prompt}" if recap.prompt else "", recap.answer) if part)


async def _rename(repl: Repl, info: SessionInfo) -> None:
    title = (await repl.terminal.line("title › ", info.title) or "").strip()
    if not title:
        return
    if info.id == repl.session.id:
        repl.session.rename(title)
        return
    session = repl.app.stored(info.id, write=True)
    try:
        session.rename(title)
    finally:
        await session.close()


async def _offer(repl: Repl, session: str) -> bool | None:
    """Offers to compact first, if that makes the next call cheaper. None: do not resume."""
    stored = await asyncio.to_thread(repl.app.stored, session)
    plan = await asyncio.to_thread(stored.preview_compaction)
    cold = stored.is_cold
    await stored.close()
    price = _price(repl, Usage(cache_write=plan.before) if cold else Usage(cache_read=plan.before))
    short = _price(repl, Usage(cache_write=plan.after)) if cold else Decimal(plan.rewrite or 0)
    if not plan.worth or price is None or short is None or short >= price:
        return False
    repl.say(
        f"The cache is {'cold' if cold else 'warm'}: unchanged, the next call sends {plan.before:,} tokens for "
        f"{money(price)}; compacted ({plan.strategy}), {plan.after:,} for {money(short)}. Nothing is lost either way.",
    )
    key = await repl.terminal.choose("Resume?", {"y": "as it is", "c": "compacted", "n": "no"})
    return None if key in ("", "n") else key == "c"


def _price(repl: Repl, usage: Usage) -> Decimal | None:
    recipe = repl.session.recipe
    return repl.app.prices.price(recipe.model, usage, recipe.provider)
