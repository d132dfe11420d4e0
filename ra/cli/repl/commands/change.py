"""Commands that change what the model sees (compaction, pins, attachments) or put files back."""

import asyncio
from collections.abc import Sequence

from ra.cli.context_view import previewed
from ra.cli.repl.commands.show import columns
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer, paths
from ra.cli.table import money
from ra.context.report import CompactionPreview
from ra.context.settings import CompactionName
from ra.core.errors import UsageError, UserError
from ra.core.text import visible_line

OFFERED: dict[str, CompactionName] = {"t": "truncate", "d": "digest", "s": "summarize"}


async def compact(repl: Repl, argument: str) -> None:
    """Shows what stays and what goes and the cost of each way, asks, and compacts."""
    session = repl.session
    if session.configured is None:
        raise UsageError("There is nothing to compact yet; ask something first.")
    usual = session.recipe.compaction.strategy
    plan = await asyncio.to_thread(session.preview_compaction)
    repl.say(previewed(plan).rstrip())
    if not plan.worth:
        return
    alternatives = {key: name for key, name in OFFERED.items() if name != usual}
    plans = [await asyncio.to_thread(session.preview_compaction, name) for name in alternatives.values()]
    ways, heads = _ways([plan, *plans]), ["", "tokens", "each call", "rewrite", "saves from"]
    repl.show(columns(repl.paper, heads[: len(ways[0])], ways))
    keys = {"n": "no", "y": f"yes ({usual})"} | alternatives
    key = await repl.terminal.choose("Compact?", keys)
    if key in ("", "n"):
        return
    checkpoint = await repl.working("compacting", session.compact(argument, strategy=alternatives.get(key)))
    if checkpoint is not None:
        repl.status.shortened = checkpoint.after
        repl.say(checkpoint.summary_line, "green")
        repl.say(f"Nothing is lost: /recall {plan.hidden} reads it back, /recall WORDS searches it.", "dim")


def _ways(plans: Sequence[CompactionPreview]) -> list[list[str]]:
    """A row for each plan. A model that costs nothing has no columns of prices."""
    rows = []
    free = not any(plan.dollars_before and float(plan.dollars_before) for plan in plans)
    for plan in plans:
        called = " + a call" if plan.strategy == "summarize" else ""
        cells = [money(plan.dollars_after), money(plan.rewrite) + called, f"call {plan.break_even}"]
        cells = cells if plan.break_even else [*cells[:2], "never"]
        prices = [] if free else cells if plan.worth else ["–"] * 3
        rows.append([plan.strategy, f"{plan.after:,}", *prices])
    return rows


# --- pins ---


async def pin(repl: Repl, argument: str) -> None:
    pinned = {entry.id: entry.content for entry in repl.session.entries()}
    text = repl.terminal.unfold(argument)
    if entry_ids := [id for id, content in pinned.items() if content == text]:
        raise UserError(f"That is pinned already: {entry_ids[0]}.")
    number = next(n for n in range(1, len(pinned) + 2) if f"pin-{n}" not in pinned)
    repl.session.pin(f"pin-{number}", text)
    repl.say(f"Pinned as pin-{number}; /forget pin-{number} removes it.", "dim")


async def forget(repl: Repl, argument: str) -> None:
    if not repl.session.unpin(argument):
        pinned = ", ".join(entry.id for entry in repl.session.entries()) or "none"
        raise UserError(f"There is no entry {visible_line(argument, 40)!r}; pinned: {pinned}.")
    repl.say(f"Forgotten: {argument}.", "dim")


def entry_offers(repl: Repl, begun: str) -> list[Offer]:
    return [(entry.id, entry.content) for entry in repl.session.entries()]


# --- attachments ---


async def attach(repl: Repl, argument: str) -> None:
    from ra.resolvers.expand import attach as load

    path = argument.removeprefix("@").strip("\"'")
    for warning in load(path, cwd=repl.app.resolved.cwd).warnings:  # raises if it is unreadable
        repl.say(warning, "yellow")
    repl.attachments.append(path)
    repl.say(f"{path} will be sent with your next prompt.", "dim")


def path_offers(repl: Repl, begun: str) -> list[Offer]:
    at = "@" if begun.startswith("@") else ""
    return [(at + path, what) for path, what in paths(begun.removeprefix("@"), repl.app.resolved.cwd)]


async def drop(repl: Repl, argument: str) -> None:
    """Without a name, lists what can be dropped. Recall still reads what was dropped."""
    name = argument.removeprefix("@").strip("\"'")
    if not name:
        _list(repl)
        return
    if _drop_pending(repl, name):
        return
    attached = [a for a in repl.session.attachments() if a.name == name or a.name.endswith(f"/{name}")]
    if not attached:
        raise UserError(f"Nothing is attached as {visible_line(name, 60)!r}; /drop lists what is.")
    repl.session.drop(attached)
    saved = sum(attachment.tokens for attachment in attached)
    repl.say(f"Dropped {name}: about {saved:,} tokens less. /recall #{attached[0].at} reads it back.", "dim")


def _drop_pending(repl: Repl, name: str) -> bool:
    waiting = [path for path in repl.attachments if path == name]
    outputs = [output for output in repl.outputs if output.command == name.removeprefix("!")]
    repl.attachments = [path for path in repl.attachments if path not in waiting]
    repl.outputs = [output for output in repl.outputs if output not in outputs]
    if waiting or outputs:
        repl.say(f"{name} will not be sent.", "dim")
    return bool(waiting or outputs)


def _list(repl: Repl) -> None:
    pending = [*(f"@{path}" for path in repl.attachments), *(f"!{output.command}" for output in repl.outputs)]
    lines = [f"{name}  (sent with the next prompt)" for name in pending]
    lines += [
        f"@{attachment.name}  #{attachment.at}, about {attachment.tokens:,} tokens"
        for attachment in repl.session.attachments()
    ]
    for line in lines or ["Nothing is attached."]:
        repl.say(line, "dim")


def drop_offers(repl: Repl, begun: str) -> list[Offer]:
    names = [*repl.attachments, *(attachment.name for attachment in repl.session.attachments())]
    return [(f"@{name}", "") for name in dict.fromkeys(names)]


# --- files ---


async def undo(repl: Repl, argument: str) -> None:
    lines = repl.session.undo()
    for line in lines or ["The last turns changed no files."]:
        repl.say(line, "dim")
