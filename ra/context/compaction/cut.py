"""Makes a request smaller: zones, the strategy's cut, fallback steps, and putting back what must be kept.

`Compactor.shrink` tells the whole story; its parts follow in the order in which it uses them. All sizes are in tokens
of o200k_base unless they say otherwise.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import import_module

import msgspec

from ra.context.compaction.digest import FULL, Digest
from ra.context.compaction.must_keep import MustKeep, put_back
from ra.context.compaction.quotes import Quotes
from ra.context.compaction.summarize import Summarizer
from ra.context.render import level, size
from ra.context.size import Allowance
from ra.context.tokens import Estimator
from ra.context.view import Group, Item, Position, View
from ra.core.facts import FALLBACK, Checkpointed, Clip, Fact, Spent
from ra.core.model import Request

WORTH = 0.90  # a compaction that leaves more than this share of a request is not worth rewriting the cache
KEPT = 0.25  # the largest share of the request for text that must be kept
MARKER = 80  # the most tokens of a gap's marker, without its quotes
FLOOR = 48  # tokens that a fallback step leaves of an item: both ends and a reference
BARE = 12  # if not even that fits: the reference alone

_INDEXED = ("digest", "auto", "summarize")  # summarize if no model can be called


class Zones(msgspec.Struct, frozen=True):
    """The compactable and the recent zone of the conversation, oldest first. Everything else is pinned:

    the first prompt, the newest prompt with the context that came with it (the model works on that), entries and a
    hand-over.
    """

    compactable: tuple[Group, ...]
    recent: tuple[Group, ...]

    @property
    def exhausted(self) -> bool:
        """Whether nothing but the markers of earlier gaps could be hidden."""
        return all(group.kind == "marker" for group in self.compactable)


class Gap(msgspec.Struct, frozen=True):
    """What a checkpoint hides: positions, parts of positions, and the groups that are or were there."""

    hidden: tuple[tuple[int, int], ...]
    clips: tuple[Clip, ...]
    groups: tuple[Group, ...]

    @property
    def ref(self) -> str:
        """The reference that recalls it."""
        start, end = self.groups[0].at, max(group.last_at for group in self.groups)
        return f"#{start}-{end}" if end > start else f"#{start}"

    def checkpoint(self, strategy: str, marker: str, *, summary: str = "") -> Checkpointed:
        return Checkpointed(strategy, "", hidden=self.hidden, clips=self.clips, marker=marker, summary=summary)


class Shrunk(msgspec.Struct, frozen=True):
    """A smaller view, and the facts that made it smaller."""

    view: View
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


Hide = Callable[[View, Zones, Allowance], Checkpointed | None]
"""The function of a compaction's module: hides groups of the compactable zone. Returns None if there are none."""


class Compactor:
    def __init__(
        self,
        estimator: Estimator,
        *,
        guard: MustKeep,
        summarizer: Summarizer | None,
        digest: Digest,
    ) -> None:
        self._estimator = estimator
        self._digest = digest
        self._guard = guard
        self._quotes = Quotes(estimator)
        self._summarizer = summarizer

    async def shrink(
        self, view: View, allowance: Allowance, reason: str, *, sent: Request, cut: Checkpointed | None, focus: str
    ) -> Shrunk:
        """Compact as the allowance says; take fallback steps if the request must fit; put back what must be kept.

        `cut` is what `hide` returned for this view and allowance, if it was called already: writing an index is slow.
        A compaction that saves less than a tenth and is not needed is dropped, except for what was paid for it.
        """
        zones = split(view, allowance.recent)
        facts, warnings = await self._compact(view, zones, allowance, sent=sent, focus=focus, cut=cut)
        slim = view.after(*facts)
        if slim.tokens() >= view.tokens():  # the marker is no smaller than what it replaces
            slim, facts = view, [fact for fact in facts if isinstance(fact, Spent)]
        if allowance.must_fit and slim.tokens() > allowance.limit:
            facts += fall_back(slim, zones, allowance.goal, allowance.limit, self._estimator)
            facts = self._quote(view, facts, allowance)
            slim = view.after(*facts)
        lost, late_warnings = await self._guard.lost(view, slim) if facts else ([], [])
        if lost:
            facts, dropped = self._put_back(facts, lost, view, slim, allowance)
            slim, late_warnings = view.after(*facts), [*late_warnings, *dropped]
        if not allowance.must_fit and slim.tokens() > view.tokens() * WORTH:
            slim, facts = view, [fact for fact in facts if isinstance(fact, Spent)]
        return Shrunk(slim, _accounted(view, facts, reason, allowance), (*warnings, *late_warnings))

    def hide(self, view: View, zones: Zones, allowance: Allowance) -> Checkpointed | None:
        """The checkpoint of a strategy that needs no model, with quotes of what the user typed."""
        match allowance.strategy:
            case "truncate":
                fact = truncate(view, zones, allowance.goal)
            case strategy if strategy in _INDEXED:
                fact = self._index(view, zones, allowance)
            case strategy:
                hide: Hide = import_module(f"ra.context.compaction.{strategy}").hide
                fact = hide(view, zones, allowance)
        return self._with_quotes(view, zones, fact, allowance) if fact else None

    async def _compact(
        self, view: View, zones: Zones, allowance: Allowance, *, sent: Request, focus: str, cut: Checkpointed | None
    ) -> tuple[list[Fact], list[str]]:
        if allowance.strategy != "summarize" or self._summarizer is None:
            fact = cut or self.hide(view, zones, allowance)
            return ([fact] if fact else []), []
        # A summary costs money: it must be worth it before the model is called.
        saved = sum(map(view.group_tokens, zones.compactable)) - allowance.summary
        if zones.exhausted or allowance.summary <= 0 or saved < view.tokens() * (1 - WORTH):
            fact = truncate(view, zones, allowance.goal) if allowance.must_fit else None
            return ([self._with_quotes(view, zones, fact, allowance)] if fact else []), []
        outdated = self._quotes.replaced_names(view)
        summary = await self._summarizer.sum_up(
            view, zones.compactable, allowance, sent=sent, focus=focus, outdated=outdated
        )
        if not summary.text:
            index = self._index(view, zones, allowance)
            facts = [self._with_quotes(view, zones, index, allowance)] if index else []
            return [*summary.spent, *facts], [summary.warning]
        gap = hole(view, zones.compactable)
        fact = gap.checkpoint("summarize", marker(view, gap), summary=summary.text)
        return [*summary.spent, self._with_quotes(view, zones, fact, allowance)], []

    def _index(self, view: View, zones: Zones, allowance: Allowance, *, merge: bool = False) -> Checkpointed | None:
        """Hide the whole compactable zone behind an index; None if there is nothing new to hide.

        Existing indexes stay byte for byte while there is room for another one behind them; else all are merged.
        """
        standing = () if merge else self.standing(view, zones.compactable, allowance)
        zone = zones.compactable[len(standing) :]
        if all(group.kind == "marker" for group in zone):
            return None
        room = allowance.index - self._index_tokens(view, standing)
        if any(group.kind == "marker" for group in zone):
            room = allowance.merged_index
        gap = hole(view, zone, apart=bool(standing))
        places = {group.place for group in zone}
        visible = (message for group in view.groups if group.place not in places for message in view.shown(group))
        indexed = [group for group in gap.groups if group.at not in view.omitted]
        outdated = self._digest.unused(indexed, self._quotes.replaced_names(view))
        text = self._digest.stand_in(
            indexed, gap.ref, room, visible=visible, outdated=outdated, behind_others=bool(standing)
        )
        return gap.checkpoint("digest", text)

    def standing(self, view: View, zone: Sequence[Group], allowance: Allowance) -> Sequence[Group]:
        """The indexes at the start of a zone, if there is room for another; none if they have to be merged."""
        count = sum(group.kind == "marker" for group in zone) if allowance.stack else 0
        head = zone[:count]
        full = self._index_tokens(view, head) > allowance.index * FULL
        return () if full or any(group.kind != "marker" for group in head) else head

    def _index_tokens(self, view: View, markers: Sequence[Group]) -> int:
        """The tokens of markers that count against the allowance for indexes: without their quotes."""
        return sum(view.group_tokens(group) - self._quotes.size(group.item.message.text) for group in markers)

    # --- the user's words ---

    def _with_quotes(self, view: View, zones: Zones, fact: Checkpointed, allowance: Allowance) -> Checkpointed:
        """The checkpoint, with quotes of everything it hides that the user typed.

        If the quotes exceed what other gaps leave of the allowance, or if another gap quotes a sentence that was
        replaced since, all these gaps are merged.
        """
        slim = view.after(fact)
        if mended := self._quotes.mended_handover(slim):
            fact = msgspec.structs.replace(fact, handover=mended)
            slim = view.after(fact)
        block = self._quotes.missing(slim, allowance.quotes)
        again = block.shortened or self._quotes.outdated(slim)
        if again and any(group.kind == "marker" for group in slim.groups[:-1]):
            merged = self._merged(view, zones, fact, allowance)
            if merged is not None:
                merged = msgspec.structs.replace(merged, handover=fact.handover)
                fact, block = merged, self._quotes.missing(view.after(merged), allowance.quotes)
        if not block.text:
            return fact
        return msgspec.structs.replace(fact, marker=f"{fact.marker}\n{block.text}")

    def _merged(self, view: View, zones: Zones, fact: Checkpointed, allowance: Allowance) -> Checkpointed | None:
        """The same cut, extended back to the oldest gap of the zone; None if there is no other gap."""
        places = [group.place for group in zones.compactable if group.kind == "marker"]
        after = {group.place for group in view.after(fact).groups}
        if not places or places[0] not in after:
            return None
        if fact.strategy == "digest":
            return self._index(view, zones, allowance, merge=True)
        hidden = {group.place for group in view.groups} - after
        last = max(hidden)
        zone = [group for group in zones.compactable if places[0] <= group.place <= last]
        gap = hole(view, zone)
        return gap.checkpoint(fact.strategy, marker(view, gap), summary=fact.summary)

    def _quote(self, view: View, facts: list[Fact], allowance: Allowance) -> list[Fact]:
        """Quote again what the fallback steps have hidden, as far as it fits."""
        slim = view.after(*facts)
        room = min(allowance.quotes, allowance.limit - slim.tokens() - MARKER)
        block = self._quotes.missing(slim, room)
        if not block.text:
            return facts
        quoted = put_back(facts, block.text, view.summary)
        return quoted if view.after(*quoted).tokens() <= allowance.limit else facts

    # --- what must be kept ---

    def _put_back(
        self, facts: Sequence[Fact], lost: Sequence[str], view: View, slim: View, allowance: Allowance
    ) -> tuple[list[Fact], list[str]]:
        """Put back what fits; the newest first if not everything does."""
        room = kept_room(allowance.limit, slim.tokens())
        returned: list[str] = []
        for words in reversed(lost):
            room -= self._estimator.text(words) + 1
            if room < 0:
                break
            returned.insert(0, words)
        mended = put_back(facts, _kept(returned), view.summary)
        while returned and view.after(*mended).tokens() > allowance.limit:  # the frame around them counts as well
            returned.pop(0)
            mended = put_back(facts, _kept(returned), view.summary)
        missing = len(lost) - len(returned)
        return mended, [f"mustKeep: {missing} matches do not fit into the window."] if missing else []


def kept_room(limit: int, used: int) -> int:
    """The tokens available for text that must be kept, in a request of `used` tokens with this `limit`."""
    return max(0, min(int(limit * KEPT), limit - used - 16))


def _kept(words: Sequence[str]) -> str:
    return "\n".join(("Kept word for word:", *words)) if words else ""


def _accounted(view: View, facts: Sequence[Fact], reason: str, allowance: Allowance) -> tuple[Fact, ...]:
    """The facts, each with the reason and with the sizes before and after it.

    They are recorded together, and only the result is sent. Putting text back may make a step larger again: that growth
    is charged to the earlier steps, and a step that saved nothing in the end has the same size twice.
    """
    sizes: list[int] = []
    before, step = allowance.scaled(view), view
    for fact in facts:
        step = step.after(fact)
        sizes.append(allowance.scaled(step))
    accounted: list[Fact] = []
    for number, fact in enumerate(facts):
        if isinstance(fact, Checkpointed):
            after = min(before, max(sizes[number:]))
            fact = msgspec.structs.replace(fact, reason=reason, before=before, after=after)
            before = after
        accounted.append(fact)
    return tuple(accounted)


# --- zones: whole groups between the pinned and the recent ones may be hidden ---


def split(view: View, recent: int) -> Zones:
    """The zones. Recent are the newest whole groups that fit into so many tokens, and at least the last one."""
    groups = view.groups
    start, room, spoke = len(groups), recent, False
    while start > 0:
        room -= view.group_tokens(groups[start - 1])
        if room < 0 and spoke:
            break
        start -= 1
        spoke = spoke or groups[start].kind == "said"
    return Zones(_hideable(groups[:start], view.pinned()), tuple(groups[start:]))


def everything(view: View) -> Zones:
    """The zones of the last resort: nothing is recent, and only prompts and rules stay."""
    return Zones(_hideable(view.groups, (*view.prompts(), *view.rules())), ())


def _hideable(groups: Iterable[Group], pinned: Iterable[Group]) -> tuple[Group, ...]:
    places = {group.place for group in pinned}
    kinds = ("said", "notice", "marker")
    return tuple(group for group in groups if group.kind in kinds and group.place not in places and not group.open)


def hole(view: View, covered: Sequence[Group], *, apart: bool = False) -> Gap:
    """The gap that hides these groups. It absorbs a gap right before them, unless `apart`."""
    before = view.groups.index(covered[0]) - 1
    if not apart and before >= 0 and view.groups[before].kind == "marker":
        covered = (view.groups[before], *covered)
    hidden, clips = _address(view.groups, {group.place for group in covered})
    # A marker represents everything that was hidden behind it, also beyond a prompt that stayed.
    past = [group for group in view.hidden if covered[0].place <= group.place <= covered[-1].place]
    groups = sorted((*past, *(group for group in covered if group.kind != "marker")), key=lambda group: group.place)
    return Gap(hidden, clips, tuple(groups))


def _address(
    groups: Sequence[Group], places: Collection[Position]
) -> tuple[tuple[tuple[int, int], ...], tuple[Clip, ...]]:
    """The groups as few ranges. Messages that share a position (a hook assigned them) are listed one by one."""
    crowd = Counter(group.at for group in groups)
    runs: list[tuple[int, int]] = []
    clips: list[Clip] = []
    start: int | None = None
    for group in groups:
        if group.place not in places:
            start = None
        elif crowd[group.at] > 1:
            start = None
            clips += [Clip(group.at, group.place[1] + number, 0) for number in range(len(group.item.message.blocks))]
        elif start is None:
            start = group.at
            runs.append((start, group.at))
        else:
            runs[-1] = (start, group.at)
    return tuple(runs), tuple(clips)


# --- truncate: hide the fewest groups, from the back of the zone, so that the cached prefix stays ---


def truncate(view: View, zones: Zones, goal: int, *, terse: bool = False) -> Checkpointed | None:
    """Hide as little of the compactable zone as brings the request down to `goal` tokens; None if it is empty."""
    excess = view.tokens() + MARKER - goal
    hidden: list[Group] = []
    for group in reversed(zones.compactable):
        if excess <= 0:
            break
        hidden.append(group)
        excess -= view.group_tokens(group)
    if all(group.kind == "marker" for group in hidden):
        return None
    gap = hole(view, hidden[::-1])
    return gap.checkpoint(
        "truncate", f'[recall("{gap.ref}") reads what is hidden here]' if terse else marker(view, gap)
    )


def marker(view: View, gap: Gap) -> str:
    """The text that tells the model what is hidden and how to recall it. It is cached: no time, nothing random."""
    messages = sum(len(group.items) for group in gap.groups)
    tokens = sum(map(view.group_tokens, gap.groups))
    return (
        f"[Compacted: {messages} messages, about {tokens} tokens, are hidden here. Nothing is lost: "
        f'recall("{gap.ref}") reads them word for word, recall("some words") searches.]'
    )


# --- the fallback steps: shorten more and more until the request fits, the user's words last ---

BlockSize = tuple[Position, int]


def fall_back(view: View, zones: Zones, goal: int, limit: int, estimator: Estimator) -> list[Checkpointed]:
    """The steps after a compaction, each taken at most once and only while the request is larger than `limit`.

    Each step aims at `goal`, so that the next message does not exceed the limit again. The first prompt stays word for
    word unless it alone is too large, or nothing else is left to shorten.
    """
    facts: list[Checkpointed] = []
    for step in _steps(zones, goal, limit, estimator):
        if view.tokens() <= limit:
            break
        fact = step(view)
        after = view.after(fact) if fact is not None else view
        if fact is not None and after.tokens() < view.tokens():
            facts.append(fact)
            view = after
    return facts


def _steps(
    zones: Zones, goal: int, limit: int, estimator: Estimator
) -> Iterator[Callable[[View], Checkpointed | None]]:
    """The steps, as functions of the view that the earlier steps left."""
    recent = {group.place for group in zones.recent}

    def clip(view: View, groups: Iterable[Group], floor: int = FLOOR) -> Checkpointed | None:
        return _clip_to(view, _block_sizes(view, groups, estimator), goal, floor)

    def shorten_old_outputs(view: View) -> Checkpointed | None:
        old_groups = [group for group in view.groups if group.place not in recent]
        return _clip_to(view, _output_sizes(view, old_groups, estimator), goal, FLOOR)

    def shorten_outputs(view: View) -> Checkpointed | None:
        return _clip_to(view, _output_sizes(view, view.groups, estimator), goal, FLOOR)

    def shorten_all_but_prompts(view: View) -> Checkpointed | None:
        return clip(view, _beside_prompts(view))

    def shorten_summary(view: View) -> Checkpointed | None:  # it was written for a larger window
        tokens = estimator.text(view.summary)
        keep = max(FLOOR, tokens - (view.tokens() - goal))
        return Checkpointed(FALLBACK, "", summary=estimator.clip(view.summary, keep, "head")) if tokens > keep else None

    def hide_all_but_the_last(view: View) -> Checkpointed | None:
        return truncate(view, split(view, 0), goal)

    def shorten_newest_prompt(view: View) -> Checkpointed | None:
        return clip(view, (group for group in view.prompts() if group.place != view.first))

    def shorten_first_prompt(view: View) -> Checkpointed | None:
        alone = view.fixed_tokens() + sum(map(view.group_tokens, _first(view)))
        return clip(view, _first(view)) if alone > limit else None

    def leave_references(view: View) -> Checkpointed | None:
        return clip(view, _beside_prompts(view), BARE)

    def hide_all_but_prompts(view: View) -> Checkpointed | None:
        return truncate(view, everything(view), goal, terse=True)

    def leave_references_of_newest_prompt(view: View) -> Checkpointed | None:
        return _bare(view, [group for group in view.groups if group.place != view.first], goal, estimator)

    def leave_references_of_first_prompt(view: View) -> Checkpointed | None:
        return _bare(view, _first(view), goal, estimator)

    yield from (shorten_old_outputs, shorten_outputs, shorten_all_but_prompts, shorten_summary, hide_all_but_the_last)
    yield from (shorten_newest_prompt, shorten_first_prompt, leave_references, hide_all_but_prompts)
    yield from (leave_references_of_newest_prompt, leave_references_of_first_prompt)


def _first(view: View) -> list[Group]:
    return [group for group in view.groups if group.place == view.first]


def _beside_prompts(view: View) -> list[Group]:
    prompts = {group.place for group in view.prompts()}
    return [group for group in view.groups if group.place not in prompts]


def _clip_to(view: View, sizes: Sequence[BlockSize], goal: int, floor: int) -> Checkpointed | None:
    """Cut the largest of these blocks to a common size, such that the request comes down to `goal` if possible."""
    unclipped = view.tokens() - sum(tokens for _, tokens in sizes)
    mark = max(floor, level([tokens for _, tokens in sizes], goal - unclipped))
    clips = tuple(Clip(at, block, mark) for (at, block), tokens in sizes if tokens > mark)
    return Checkpointed(FALLBACK, "", clips=clips) if clips else None


def _bare(view: View, groups: Sequence[Group], goal: int, estimator: Estimator) -> Checkpointed | None:
    """Leave only references; of prompts with many files, those of the first and the last."""
    fact = _clip_to(view, _block_sizes(view, groups, estimator), goal, BARE)
    if view.after(*([fact] if fact else [])).tokens() <= goal:
        return fact
    middles = [
        Clip(group.at, group.place[1] + number, 0)
        for group in groups
        if group.is_prompt
        for number in range(1, len(group.item.message.blocks) - 1)
    ]
    places = {(clip.at, clip.block) for clip in middles}
    outer = [clip for clip in fact.clips if (clip.at, clip.block) not in places] if fact else []
    return Checkpointed(FALLBACK, "", clips=(*outer, *middles)) if outer or middles else None


def _output_sizes(view: View, groups: Iterable[Group], estimator: Estimator) -> list[BlockSize]:
    items = [item for group in groups for item in group.results if item is not None]
    return [size for item in items for size in _item_sizes(view, item, estimator)]


def _block_sizes(view: View, groups: Iterable[Group], estimator: Estimator) -> list[BlockSize]:
    return [size for group in groups for item in group.items for size in _item_sizes(view, item, estimator)]


def _item_sizes(view: View, item: Item, estimator: Estimator) -> Iterator[BlockSize]:
    """The sizes of a message's blocks as they are shown now, by position."""
    at, first = item.place
    for number, block in enumerate(item.message.blocks):
        place = (at, first + number)
        allowed, full = view.allowed(place, block), size(block, estimator)
        yield place, full if allowed is None else min(full, allowed)
