"""Shows what a compaction would do and when it pays off, without a model call: `ra compact --dry-run`."""

import math
from decimal import Decimal

from ra.context.compaction.cut import WORTH, Zones, hole, marker, split
from ra.context.engine import Engine
from ra.context.report import CompactionPreview, first_difference
from ra.context.settings import CompactionName
from ra.context.view import View
from ra.core.facts import Checkpointed
from ra.core.functions import Price, no_price
from ra.core.model import Usage


def preview(engine: Engine, *, strategy: CompactionName | None = None, price: Price = no_price) -> CompactionPreview:
    """The compaction that a user could ask for now. Of a summary, only the largest possible size is known."""
    view = engine.view
    before = engine.measure(exact=True) or 0
    allowance = engine.room(before, eager=True, strategy=strategy)
    strategy = allowance.strategy
    zones = split(view, allowance.recent)
    fact = _summed_up(view, zones) if strategy == "summarize" else engine.compactor.hide(view, zones, allowance)
    if fact is None:
        return CompactionPreview(strategy, before, before)
    slim = view.after(fact)
    after = allowance.scaled(slim) + (int(allowance.summary * allowance.rate) if strategy == "summarize" else 0)
    places = {group.place for group in slim.hidden}
    hidden = [group for group in zones.compactable if group.place in places]
    before_it = view.groups[max(0, view.groups.index(hidden[0]) - 1)]
    gap = hole(view, hidden, apart=before_it in slim.groups)
    change = first_difference(view.request(), slim.request(), engine.estimator)
    unchanged = max(0, min(after, before - (change.rebilled if change else 0)))
    model = view.request().model
    carried, lighter = price(model, Usage(cache_read=before)), price(model, Usage(cache_read=after))
    rewrite = price(model, Usage(cache_read=unchanged, cache_write=after - unchanged))
    return CompactionPreview(
        strategy,
        before,
        after,
        hidden=gap.ref,
        messages=sum(len(group.items) for group in hidden),
        text=fact.marker,
        worth=after <= before * WORTH,
        dollars_before=_dollars(carried),
        dollars_after=_dollars(lighter),
        rewrite=_dollars(rewrite),
        break_even=_break_even(carried, lighter, rewrite),
    )


def _summed_up(view: View, zones: Zones) -> Checkpointed | None:
    """The checkpoint of a summary. Its text goes under the first prompt, so everything after that is rewritten."""
    if zones.exhausted:
        return None
    gap = hole(view, zones.compactable)
    return gap.checkpoint("summarize", marker(view, gap), summary="…")


def _break_even(carried: Decimal | None, lighter: Decimal | None, rewrite: Decimal | None) -> int | None:
    """The first n for which one rewrite and n − 1 smaller calls cost no more than n unchanged calls."""
    if carried is None or lighter is None or rewrite is None or carried <= lighter:
        return None
    return max(1, math.ceil((rewrite - lighter) / (carried - lighter)))


def _dollars(amount: Decimal | None) -> str:
    return "" if amount is None else str(amount)
