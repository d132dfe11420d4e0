"""Learns from a session's own bills how its provider cached, if that differs from the published rules."""

from itertools import pairwise
from typing import NamedTuple

import msgspec

from ra.bench.trace import RecordedCall, SentRequest, Trace
from ra.costs.promptcache import CacheRules

PAIRS = 3  # the least number of requests without an expected cache read that proves the lack of a cache
MISSES = 3  # the least number of pauses after which a prefix was gone that proves a shorter life
WARM = 0.5  # this share of the previous request was read again: the prefix was cached
COLD = 0.1  # less than this share was: the prefix was gone


class Lessons(NamedTuple):
    """The rules that a session's bills show, and a sentence for each that differs from the published one."""

    rules: CacheRules
    notes: tuple[str, ...]


def learn(trace: Trace, model: str, rules: CacheRules) -> Lessons:
    """The rules of this model's provider, as far as the trace's bills reveal them."""
    pairs = [
        (before, call)
        for (before, _), (call, sent) in pairwise(_billed(trace, model))
        if not sent.rewritten and before.usage and before.usage.total_input >= 2 * max(rules.minimum, 512)
    ]
    used = any(call.usage and call.usage.cache_read + call.usage.cache_write for call, _ in _billed(trace, model))
    if len(pairs) >= PAIRS and trace.unmarked and rules.kind == "marks":
        note = (
            f"no bill of {model} shows a cache, because its client asked for none: `recorded` has none, other rows do"
        )
        return Lessons(rules, (note,))
    if rules.kind != "none" and len(pairs) >= PAIRS and not used:
        return Lessons(CacheRules("none"), (f"no bill of {model} shows a cache: no row has one",))
    warm, cold = [], []
    for before, call in pairs:
        assert before.usage is not None
        assert call.usage is not None
        share = call.usage.cache_read / before.usage.total_input
        pause = call.time - before.time
        if share >= WARM:
            warm.append(pause)
        elif share <= COLD:
            cold.append(pause)
    longest = max(warm, default=0.0)
    lost_pauses = sorted(pause for pause in cold if longest < pause < rules.lifetime_s)
    if longest > rules.lifetime_s:
        note = f"prefixes of {model} lived for {longest:.0f} s and more, not {rules.lifetime_s:.0f} s"
        return Lessons(msgspec.structs.replace(rules, lifetime_s=longest + 1), (note,))
    if warm and len(lost_pauses) >= MISSES:
        note = f"prefixes of {model} were gone after {lost_pauses[0]:.0f} s, not {rules.lifetime_s:.0f} s"
        return Lessons(msgspec.structs.replace(rules, lifetime_s=max(longest, lost_pauses[0] - 1)), (note,))
    return Lessons(rules, ())


def _billed(trace: Trace, model: str) -> list[tuple[RecordedCall, SentRequest]]:
    calls = zip(trace.calls, trace.sent, strict=True)
    return [(call, sent) for call, sent in calls if call.model == model and call.usage]
