"""How does a request come down to its size? The strategy, the ladder below it, and the guard behind it."""

from collections.abc import Sequence
from importlib import import_module

import msgspec

from ra.context.compaction import ladder
from ra.context.compaction.digest import Digest
from ra.context.compaction.guard import Guard, put_back
from ra.context.compaction.room import Hide, Room
from ra.context.compaction.summarize import Summarizer
from ra.context.compaction.truncate import truncate
from ra.context.compaction.zones import Zones, split
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, Fact, Spent
from ra.core.model import Request

SHRINK = 0.90  # a compaction that leaves more than this of a request is not worth a rewritten cache
KEPT = 0.25  # of the request, at most, for words that must be kept
_INDEXED = ("digest", "auto", "summarize")  # the last when nobody can be asked


class Shrunk(msgspec.Struct, frozen=True):
    """A view that became smaller, and the facts that made it so."""

    view: View
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


class Compactor:
    def __init__(
        self,
        settings: CompactionSettings,
        estimator: Estimator,
        *,
        guard: Guard,
        summarizer: Summarizer | None,
        digest: Digest,
    ) -> None:
        self._settings = settings
        self._estimator = estimator
        self._digest = digest
        self._guard = guard
        self._summarizer = summarizer

    async def shrink(self, view: View, room: Room, reason: str, *, sent: Request, focus: str = "") -> Shrunk:
        """Compact as the settings say; go down the ladder if it must fit and does not; put back what must be kept.

        When the request would not become a tenth smaller and need not, only what was spent on trying is left of it.
        """
        zones = split(view, room.recent)
        facts, warnings = await self._compact(view, zones, room, sent=sent, focus=focus)
        slim = view.after(*facts)
        if slim.tokens() >= view.tokens():  # what stands in for it is no smaller
            slim, facts = view, [fact for fact in facts if isinstance(fact, Spent)]
        if room.must and slim.tokens() > room.most:
            facts += ladder.descend(slim, zones, room.goal, room.most, self._estimator)
            slim = view.after(*facts)
        lost, more = await self._guard.lost(view, slim) if facts else ([], [])
        if lost:
            facts, late = self._mend(facts, lost, view, slim, room)
            slim, more = view.after(*facts), [*more, *late]
        if not room.must and slim.tokens() > view.tokens() * SHRINK:
            slim, facts = view, [fact for fact in facts if isinstance(fact, Spent)]
        return Shrunk(slim, _accounted(view, facts, reason, room), (*warnings, *more))

    def hide(self, view: View, zones: Zones, room: Room) -> Checkpointed | None:
        """What needs no model: everything behind an index, or what the module of the strategy's name hides."""
        if self._settings.strategy in _INDEXED:
            return self._digest.compact(view, zones, room.index, merged=room.merged, stack=room.stack)
        hide: Hide = import_module(f"ra.context.compaction.{self._settings.strategy}").hide
        return hide(view, zones, room)

    async def _compact(
        self, view: View, zones: Zones, room: Room, *, sent: Request, focus: str
    ) -> tuple[list[Fact], list[str]]:
        if self._settings.strategy != "summarize" or self._summarizer is None:
            fact = self.hide(view, zones, room)
            return ([fact] if fact else []), []
        # A summary is paid for: it has to be worth it before it is asked for.
        saved = sum(map(view.unit_tokens, zones.compactable)) - room.summary
        if zones.spent or room.summary <= 0 or saved < view.tokens() * (1 - SHRINK):
            fact = truncate(view, zones, room.goal) if room.must else None
            return ([fact] if fact else []), []
        facts, warning = await self._summarizer.compact(
            view, zones, sent=sent, cap=room.summary, index=room.index, rate=room.rate, focus=focus
        )
        return facts, [warning] if warning else []

    def _mend(
        self, facts: Sequence[Fact], lost: Sequence[str], view: View, slim: View, room: Room
    ) -> tuple[list[Fact], list[str]]:
        """Put back what fits, the newest first when not all of it does."""
        left = max(0, min(int(room.most * KEPT), room.most - slim.tokens() - 16))
        kept: list[str] = []
        for words in reversed(lost):
            left -= self._estimator.text(words) + 1
            if left < 0:
                break
            kept.insert(0, words)
        mended = put_back(facts, kept, view.summary) if kept else list(facts)
        while kept and view.after(*mended).tokens() > room.most:  # the frame around them counts as well
            kept.pop(0)
            mended = put_back(facts, kept, view.summary) if kept else list(facts)
        warnings = (
            [f"mustKeep: {len(lost) - len(kept)} matches do not fit into the window."] if len(kept) < len(lost) else []
        )
        return mended, warnings


def _accounted(view: View, facts: Sequence[Fact], reason: str, room: Room) -> tuple[Fact, ...]:
    """The facts with their reason and with what each did to the size."""
    accounted: list[Fact] = []
    before = room.scaled(view)
    for fact in facts:
        view = view.after(fact)
        if isinstance(fact, Checkpointed):
            after = room.scaled(view)
            fact = msgspec.structs.replace(fact, reason=reason, before=before, after=after)
            before = after
        accounted.append(fact)
    return tuple(accounted)
