"""Which commands change what the model sees? Compaction, pins, attachments; and files, back to what they were."""

import re
from typing import TYPE_CHECKING

from ra.cli.context_view import previewed
from ra.cli.repl.complete import Offer, paths
from ra.cli.safe import one_line
from ra.context import entries
from ra.context.compaction.plan import preview
from ra.core.errors import UsageError, UserError
from ra.core.facts import Checkpointed, Clip
from ra.core.messages import Document, Image, Text
from ra.core.value import Value

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl

DROPPED = "dropped by the user"

_LABELLED = re.compile(r'^<[\w-]+ [\w-]+="([^"]*)"')


async def compact(repl: "Repl", argument: str) -> None:
    """Preview, question, compaction."""
    engine = repl.session.engine
    if engine.configured is None:
        raise UsageError("There is nothing to compact yet; ask something first.")
    plan = preview(engine, price=repl.app.price)
    repl.show(previewed(plan))
    if not plan.worth or await repl.terminal.choose("Compact?", {"y": "yes", "n": "no"}) != "y":
        return
    assembly = await engine.assemble(force="asked", focus=argument)
    repl.session.journal.record(*assembly.facts)
    for warning in assembly.warnings:
        repl.say(warning, "yellow")
    for fact in assembly.facts:
        if isinstance(fact, Checkpointed):
            repl.status.shortened = fact.after
            repl.say(f"compacted ({fact.strategy}): {fact.before:,} → {fact.after:,} tokens", "green")


# --- pins ---


async def pin(repl: "Repl", argument: str) -> None:
    view = repl.session.engine.view
    taken = {entry.content: entry.id for entry in entries.all_of(view)}
    text = repl.terminal.unfold(argument)
    if text in taken:
        raise UserError(f"That is pinned already: {taken[text]}.")
    number = next(n for n in range(1, len(view.entries) + 2) if f"pin-{n}" not in view.entries)
    repl.session.journal.record(*entries.insert(view, f"pin-{number}", text))
    repl.say(f"Pinned as pin-{number}; /forget pin-{number} takes it away.", "dim")


async def forget(repl: "Repl", argument: str) -> None:
    facts = entries.remove(repl.session.engine.view, argument)
    if not facts:
        known = ", ".join(entry.id for entry in entries.all_of(repl.session.engine.view)) or "none"
        raise UserError(f"There is no entry {one_line(argument, 40)!r}; pinned: {known}.")
    repl.session.journal.record(*facts)
    repl.say(f"Forgotten: {argument}.", "dim")


def entry_offers(repl: "Repl", begun: str) -> list[Offer]:
    return [(entry.id, entry.content) for entry in entries.all_of(repl.session.engine.view)]


# --- attachments ---


class Attached(Value, frozen=True):
    """A block of a prompt that came from a file, a page or a command."""

    name: str
    at: int
    block: int
    tokens: int


async def attach(repl: "Repl", argument: str) -> None:
    from ra.resolvers.expand import attach as load

    path = argument.removeprefix("@").strip("\"'")
    for warning in load(path, cwd=repl.app.resolved.cwd).warnings:  # raises when it cannot be read
        repl.say(warning, "yellow")
    repl.attachments.append(path)
    repl.say(f"{path} goes along with your next prompt.", "dim")


def path_offers(repl: "Repl", begun: str) -> list[Offer]:
    at = "@" if begun.startswith("@") else ""
    return [(at + path, what) for path, what in paths(begun.removeprefix("@"), repl.app.resolved.cwd)]


async def drop(repl: "Repl", argument: str) -> None:
    """Without a name: what could be dropped. What is dropped can still be recalled."""
    name = argument.removeprefix("@").strip("\"'")
    if not name:
        _list(repl)
        return
    if _drop_pending(repl, name):
        return
    chosen = [one for one in attached(repl) if one.name == name or one.name.endswith(f"/{name}")]
    if not chosen:
        raise UserError(f"Nothing is attached as {one_line(name, 60)!r}; /drop lists what is.")
    engine = repl.session.engine
    fact = Checkpointed(
        "truncate",
        DROPPED,
        clips=tuple(Clip(one.at, one.block, 0) for one in chosen),
        before=engine.measure(exact=True) or 0,
    )
    repl.session.journal.record(fact)
    saved = sum(one.tokens for one in chosen)
    repl.say(f"Dropped {name}: about {saved:,} tokens less. /recall #{chosen[0].at} reads it back.", "dim")


def _drop_pending(repl: "Repl", name: str) -> bool:
    waiting = [path for path in repl.attachments if path == name]
    outputs = [output for output in repl.outputs if output.command == name.removeprefix("!")]
    repl.attachments = [path for path in repl.attachments if path not in waiting]
    repl.outputs = [output for output in repl.outputs if output not in outputs]
    if waiting or outputs:
        repl.say(f"{name} will not go along.", "dim")
    return bool(waiting or outputs)


def _list(repl: "Repl") -> None:
    pending = [*(f"@{path}" for path in repl.attachments), *(f"!{output.command}" for output in repl.outputs)]
    lines = [f"{name}  (goes along with the next prompt)" for name in pending]
    lines += [f"@{one.name}  #{one.at}, about {one.tokens:,} tokens" for one in attached(repl)]
    for line in lines or ["Nothing is attached."]:
        repl.say(line, "dim")


def attached(repl: "Repl") -> list[Attached]:
    """What the model still sees of attachments."""
    view, estimator = repl.session.engine.view, repl.session.engine.estimator
    found = []
    for unit in view.units:
        if not unit.is_prompt:
            continue
        at, first = unit.place
        seen = view.clipped(unit.item).blocks
        for number, block in enumerate(unit.item.message.blocks):
            name = _name(block)
            if name and block in seen:
                tokens = estimator.scaled(estimator.message(unit.item.message))
                if isinstance(block, Text):
                    tokens = estimator.scaled(estimator.text(block.text))
                found.append(Attached(name, at, first + number, tokens))
    return found


def _name(block: object) -> str:
    match block:
        case Text(text) if label := _LABELLED.match(text):
            return label[1]
        case Document(name=name, media_type=kind):
            return name or kind
        case Image(media_type=kind):
            return kind
        case _:
            return ""


def drop_offers(repl: "Repl", begun: str) -> list[Offer]:
    names = [*repl.attachments, *(one.name for one in attached(repl))]
    return [(f"@{name}", "") for name in dict.fromkeys(names)]


# --- files ---


async def undo(repl: "Repl", argument: str) -> None:
    lines = repl.session.toolbox.undo.restore_last()
    for line in lines or ["The last turns changed no files."]:
        repl.say(line, "dim")
