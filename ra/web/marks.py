"""Describes what happened between the calls of a session: cuts, pauses, failures, extra calls, the cache."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from ra.bench.trace import Trace
from ra.core.facts import (
    FALLBACK,
    CacheDecided,
    Checkpointed,
    Configured,
    Edited,
    Failed,
    Interrupted,
    Kept,
    Rewound,
    Rotated,
    Spent,
    TimelineEvent,
)
from ra.core.text import clean, one_line
from ra.web.values import Mark

LOST = "The cached prefix was lost for a reason outside the conversation."
_SIDE_CALLS = {
    "summary": "A summary",
    "planner": "The planner",
    "agent": "A sub-agent",
    "sampling": "A model call of an MCP server",
    "bridge": "A small call that kept the cache",
}
_CACHE = {
    "short": "The cache is kept for the provider's usual time from here on",
    "long": "The cache is kept for an hour from here on",
    "bridge": "The cache was kept by a small call",
    "cut": "The session was compacted while the cache could still be read",
    "let go": "The cache was left to expire",
}


def marks_of(trace: Trace, *, lost: Iterable[int], pauses: Mapping[int, float]) -> list[Mark]:
    """The marks, by call. `lost` are calls that lost the cache for no known reason, `pauses` idle seconds by call."""
    marks: list[Mark] = []
    event_count, model = 0, ""
    for number, call in enumerate(trace.calls):
        for event in trace.events[event_count : call.place]:
            if mark := _mark(number, event):
                marks.append(mark)
            if isinstance(event.fact, Configured) and event.fact.model:
                if model and event.fact.model != model:
                    marks.append(Mark(number, "model", f"The model changed from {model} to {event.fact.model}."))
                model = event.fact.model
        event_count = call.place
    if trace.calls:  # what happened after the last answer has no later call to appear at
        last = len(trace.calls) - 1
        after = [mark for event in trace.events[event_count:] if (mark := _mark(last, event))]
        marks += [structs.replace(mark, text=f"Afterwards: {mark.text}") for mark in after]
    marks += [Mark(number, "lost", LOST) for number in lost]
    marks += [
        Mark(number, "pause", f"A pause of {span(idle_s)}: the cached prefix had expired.")
        for number, idle_s in pauses.items()
    ]
    return sorted(marks, key=_by_call)


def _by_call(mark: Mark) -> int:
    return mark.call


def _mark(call: int, event: TimelineEvent) -> Mark | None:
    match event.fact:
        case Checkpointed(strategy=strategy, reason=reason, before=before, after=after):
            sizes = f": {before:,} → {after:,} tokens" if before else ""
            name = "shortening what was left" if strategy == FALLBACK else strategy
            return Mark(call, "cut", f"Compacted by {name} ({reason}){sizes}.")
        case Rotated(reason=reason):
            return Mark(call, "rotation", f"A new segment began: {reason}.")
        case Kept(at=at):
            return Mark(call, "edit", f"You brought #{at} back into the window.")
        case Rewound(to=to):
            return Mark(call, "edit", f"You went back to #{to}.")
        case Edited(by=by):
            return Mark(call, "edit", f"The conversation was changed by {by}.")
        case Failed(kind=kind, text=text):
            return Mark(call, "failure", f"Failed ({kind}): {one_line(text, 200)}")
        case Interrupted(reason=reason):
            return Mark(call, "failure", f"Interrupted: {one_line(reason, 200)}")
        case Spent(purpose=purpose, dollars=dollars) if purpose in _SIDE_CALLS:
            return Mark(call, "aside", f"{_SIDE_CALLS[purpose]} cost {_amount(dollars)}.")
        case CacheDecided(action=action, dollars=dollars, instead=instead, reason=reason):
            price = f"{_amount(dollars)}, the alternative {_amount(instead)}" if instead else _amount(dollars)
            return Mark(call, "cache", f"{_CACHE[action]} ({price}): {one_line(clean(reason), 200)}.")
        case _:
            return None


def _amount(dollars: str) -> str:
    return f"${float(dollars):.4f}" if dollars else "an unknown price"


def span(seconds: float) -> str:
    """A duration with its unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
