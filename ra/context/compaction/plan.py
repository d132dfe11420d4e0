"""What would a compaction do, and when does it pay? All that `ra compact --dry-run` shows, without asking a model."""

import math
from decimal import Decimal

from ra.context.cacheplan import first_difference
from ra.context.compaction.compactor import SHRINK
from ra.context.compaction.truncate import marker
from ra.context.compaction.zones import Zones, gap, split
from ra.context.engine import Engine
from ra.context.view import View
from ra.core.facts import Checkpointed
from ra.core.functions import Price
from ra.core.model import Usage
from ra.core.value import Value


class Preview(Value, frozen=True):
    """Tokens are the model's; dollars are for the input of one call with a warm cache, "" without a price.

    `rewrite` is what the first call after the compaction costs. From call number `break_even` on, all calls since the
    compaction together were cheaper than without it; None when that never comes. Without `worth` it does not happen.
    """

    strategy: str
    before: int
    after: int
    hidden: str = ""
    messages: int = 0
    text: str = ""
    worth: bool = False
    dollars_before: str = ""
    dollars_after: str = ""
    rewrite: str = ""
    break_even: int | None = None


def preview(engine: Engine, *, price: Price = lambda model, usage: None) -> Preview:
    """The compaction that a user could ask for now. Of a summary only the largest size it may have is known."""
    view, strategy = engine.view, engine.settings.strategy
    before = engine.measure(exact=True) or 0
    room = engine.room(before, eager=True)
    zones = split(view, room.recent)
    fact = _summed_up(view, zones) if strategy == "summarize" else engine.compactor.hide(view, zones, room)
    if fact is None:
        return Preview(strategy, before, before)
    slim = view.after(fact)
    after = room.scaled(slim) + (int(room.summary * room.rate) if strategy == "summarize" else 0)
    chosen = [unit for unit in zones.compactable if unit.place in {hidden.place for hidden in slim.hidden}]
    before_it = view.units[max(0, view.units.index(chosen[0]) - 1)]
    hole = gap(view, chosen, apart=before_it in slim.units)
    change = first_difference(view.request(), slim.request(), engine.estimator)
    kept = max(0, min(after, before - (change.rebilled if change else 0)))
    model = view.request().model
    carried, lighter = price(model, Usage(cache_read=before)), price(model, Usage(cache_read=after))
    rewrite = price(model, Usage(cache_read=kept, cache_write=after - kept))
    return Preview(
        strategy,
        before,
        after,
        hidden=hole.ref,
        messages=sum(len(unit.items) for unit in chosen),
        text=fact.marker,
        worth=after <= before * SHRINK,
        dollars_before=_dollars(carried),
        dollars_after=_dollars(lighter),
        rewrite=_dollars(rewrite),
        break_even=_break_even(carried, lighter, rewrite),
    )


def _summed_up(view: View, zones: Zones) -> Checkpointed | None:
    """What a summary leaves in the gap; itself it stands under the first prompt, from where on all is written anew."""
    if zones.spent:
        return None
    hole = gap(view, zones.compactable)
    return Checkpointed("summarize", "", hidden=hole.hidden, clips=hole.clips, marker=marker(view, hole), summary="…")


def _break_even(carried: Decimal | None, lighter: Decimal | None, rewrite: Decimal | None) -> int | None:
    """The first n for which rewriting once and n − 1 lighter calls cost no more than n calls as they are."""
    if carried is None or lighter is None or rewrite is None or carried <= lighter:
        return None
    return max(1, math.ceil((rewrite - lighter) / (carried - lighter)))


def _dollars(amount: Decimal | None) -> str:
    return "" if amount is None else str(amount)
