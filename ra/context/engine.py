"""Assembles the next request: fold the facts, measure, compact if needed, set cache marks."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ra.context.render import COMPACTED
from ra.context.settings import CompactionName, CompactionSettings
from ra.context.size import (
    SLACK,
    Allowance,
    Meter,
    Refusals,
    Window,
    allow,
    answer_room,
    credible_refusal,
    input_budget,
    too_small,
    trigger,
)
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.errors import UserError
from ra.core.facts import Checkpointed, Configured, Fact, TimelineEvent
from ra.core.functions import Price, no_price
from ra.core.messages import Message
from ra.core.model import Marks, ModelInfo, Request, Usage

if TYPE_CHECKING:
    from ra.context.compaction.auto import Economy
    from ra.context.compaction.cut import Compactor
    from ra.context.compaction.summarize import AskModel
    from ra.costs.lifetime import CacheLifetime

MOST_MARKS = 4  # marks in one request, at Anthropic
THRESHOLD = "threshold"  # the reasons of compactions that nobody asked for: the request was too large for our rule
OVERFLOW = "overflow"  # or for the provider


class Assembly(msgspec.Struct, frozen=True):
    """The next request, and the facts to record before it is sent; the request already includes them.

    `tokens` is None while an upper bound proves that no limit is near: then nothing was counted.
    """

    request: Request
    facts: tuple[Fact, ...] = ()
    tokens: int | None = None
    warnings: tuple[str, ...] = ()


class Engine:
    """Owns the view of one session. It decides and returns facts; the loop records them, which applies them."""

    def __init__(
        self,
        settings: CompactionSettings,
        *,
        estimator: Estimator,
        window: Window,
        info: ModelInfo,
        must_keep: Sequence[str] = (),
        summarize: "AskModel | None" = None,
        summary_info: ModelInfo | None = None,
        price: Price = no_price,
        economy: "Economy | None" = None,
        lifetime: "CacheLifetime | None" = None,
        cache_key: str = "",
    ) -> None:
        self.settings = settings
        self.estimator = estimator
        self.window = window
        self.info = info
        self.view = View(estimator)
        self.meter = Meter(self.view, estimator)
        self._must_keep = must_keep
        self._summarize = summarize
        self._summary_info = summary_info
        self._price = price
        self._economy = economy if settings.strategy == "auto" and settings.enabled else None
        self.lifetime = lifetime
        self._cache_key = cache_key
        self._sent: Request | None = None
        self._refusals = Refusals()

    @property
    def configured(self) -> Configured | None:
        return self.view.configured

    @cached_property
    def compactor(self) -> "Compactor":
        """Created when a cut is first considered: most requests are far from one, and start-up must not wait for it."""
        from ra.context.compaction.cut import Compactor
        from ra.context.compaction.digest import Digest
        from ra.context.compaction.must_keep import MustKeep
        from ra.context.compaction.summarize import Summarizer

        settings, digest = self.settings, Digest(self.estimator)
        summarizer = self._summarize and Summarizer(
            self._summarize,
            model=settings.model,
            info=self._summary_info or (ModelInfo(settings.model) if settings.model else self.info),
            estimator=self.estimator,
            digest=digest,
            prompt=settings.prompt,
            window=self._summary_window,
            price=self._price,
        )
        guard = MustKeep(self._must_keep)
        return Compactor(self.estimator, digest=digest, guard=guard, summarizer=summarizer)

    def _summary_window(self) -> int | None:
        """The summarizing model's window. For the session's own model, an overflow may have taught a better one."""
        return self._summary_info.window if self.settings.model and self._summary_info else self.window.limit

    def apply(self, event: TimelineEvent) -> None:
        self.meter.apply(event)
        self._refusals.apply(event)
        if self._economy:
            self._economy.observe(event)
        if self.lifetime:
            self.lifetime.observe(event)

    # --- assemble ---

    async def assemble(
        self,
        *,
        force: str = "",
        refit: int | None = None,
        focus: str = "",
        strategy: CompactionName | None = None,
    ) -> Assembly:
        """The next request. `force` is a reason to compact now, and `strategy` replaces the configured one.

        `refit` is the largest size that this request may have.

        Raises UserError if not even the system part and the tools fit.
        """
        total = self.measure(exact=bool(force) or refit is not None or self._may_pay())
        reason, cut = self._decide(total, force, refit)
        if total is None or not reason:
            return self._hand_over(self.view, total)
        allowance = self.room(
            total, refit, eager=reason == force != OVERFLOW, forced=reason == THRESHOLD, strategy=strategy
        )
        sent = self._finish(self.view, total, cut=self.meter.cut)
        shrunk = await self.compactor.shrink(self.view, allowance, reason, sent=sent, focus=focus, cut=cut)
        if allowance.must_fit and shrunk.view.tokens() > allowance.limit and self.window.origin != "guessed":
            raise UserError(too_small(shrunk.view, allowance, self.estimator))
        if not shrunk.facts:
            return self._hand_over(self.view, total, warnings=shrunk.warnings)
        self.meter.accept()
        return self._hand_over(shrunk.view, allowance.scaled(shrunk.view), facts=shrunk.facts, warnings=shrunk.warnings)

    def request(self) -> Request:
        """The next request as it is, without a decision on compaction: what `ra context` shows."""
        return self._finish(self.view, self.measure(exact=False), cut=self.meter.cut)

    def measure(self, *, exact: bool) -> int | None:
        """The model's tokens in the next request; unless `exact`, None while no limit is near or known."""
        safe = self._near()
        if not exact and safe is None:
            return None
        return self.meter.measure(None if exact else safe, window=self.window.limit)

    def rate(self) -> float | None:
        """The model's tokens for one of o200k_base in the next request, as it is measured; None while it is empty."""
        plain = self.view.tokens()
        return (self.measure(exact=True) or 0) / plain if plain else None

    def _near(self) -> int | None:
        """The size up to which neither the request nor the output limit has to change; None if no limit is known."""
        limit, level = self.window.limit, self._trigger()
        return level if level is None or limit is None else min(level, int((limit - self._max_output) / SLACK))

    def _trigger(self) -> int | None:
        limit, rule = self.window.limit, self.settings
        return trigger(limit, threshold=rule.threshold, max_output=self._max_output, max_tokens=rule.max_tokens)

    def _decide(self, total: int | None, force: str, refit: int | None) -> tuple[str, Checkpointed | None]:
        """Why a compaction is due, empty if none is; and the cut, where it had to be made to know that."""
        limit, level = self.window.limit, self._trigger()
        if force and force != OVERFLOW:
            return force, None
        if total is None:
            return "", None
        if force or refit is not None:
            most = refit if refit is not None else limit and input_budget(limit, self._max_output)
            return (OVERFLOW if most and total > most else ""), None
        if self.settings.enabled and level is not None and total > level:
            return THRESHOLD, None
        if self._economy is None or not self._may_pay():
            return "", None
        from ra.context.compaction.auto import wanted  # start-up time: only `auto` decides by price

        return wanted(self._economy, self.view, self.room(total), total, self.compactor)

    def _may_pay(self) -> bool:
        """Whether a cut could pay off. It cannot while everything would stay, and then nothing needs to be counted."""
        return self._economy is not None and self.meter.billed > self._economy.sizes(self.window.limit)[0]

    def room(
        self,
        total: int,
        refit: int | None = None,
        *,
        eager: bool = False,
        forced: bool = False,
        strategy: CompactionName | None = None,
    ) -> Allowance:
        """The allowance of a cut of a request that now has `total` tokens."""
        limit = self.window.limit
        economy = self._economy if strategy in (None, "auto") else None
        return allow(
            self.view,
            total,
            settings=self.settings,
            limit=limit,
            max_output=self._max_output,
            strategy=strategy,
            refit=refit,
            cut=economy.sizes(limit, forced=forced) if economy else None,
            eager=eager,
            stack=economy is not None and economy.warm,
        )

    # --- hand over ---

    def _hand_over(
        self, view: View, total: int | None, *, facts: tuple[Fact, ...] = (), warnings: tuple[str, ...] = ()
    ) -> Assembly:
        cut = any(isinstance(fact, Checkpointed) for fact in facts)
        request = self._sent = self._finish(view, total, cut=cut or self.meter.cut)
        decisions = self.lifetime.decisions() if self.lifetime else ()
        return Assembly(request, (*facts, *decisions), total, warnings)

    def _finish(self, view: View, total: int | None, *, cut: bool) -> Request:
        """The request of a view, with its cache marks, and with an output limit that the window has room for."""
        request = view.request()
        output, effort = answer_room(self.window.limit, total, request.max_output, request.effort)
        gap = view.newest_gap() if cut else None
        marks, key = cache_marks(request, cut=cut, gap=gap), self._cache_key
        if self.lifetime and self.lifetime.long_lived:
            marks = msgspec.structs.replace(marks, long_lived=True)
        return msgspec.structs.replace(request, max_output=output, effort=effort, marks=marks, cache_key=key)

    # --- learn ---

    def observe_usage(self, usage: Usage, counted: int | None) -> None:
        """Calibrate by the provider's count of the last request. `counted` is what the estimator had counted for it."""
        self.window = self._refusals.accept(self.window, counted, usage.total_input)
        if self._sent is not None and usage.total_input and self.view.counted:
            self.estimator.observe(self.estimator.request(self._sent), usage.total_input)

    def believes(self, limit: int | None, sent: int | None) -> bool:
        """Whether an overflow's figures are plausible. Implausible ones are not learned, since they would be stored."""
        return credible_refusal(limit, sent, self.view.tokens())

    def took(self, tokens: int | None) -> bool:
        """Whether this endpoint answered a request of this size before: then its size is no reason to refuse one."""
        size = self.measure(exact=True) if tokens is None else tokens
        return (size or 0) <= self._refusals.taken

    def learn(self, limit: int | None, *, sent: int | None = None) -> None:
        """Learn the window and the request's size from an overflow.

        A refused request is larger than the limit, whatever the estimator says.
        """
        refused = self.meter.refuse(sent, self._refusals.at_least(limit))
        self.window = self._refusals.learn(self.window, limit, refused)

    def unlearn(self, window: Window) -> None:
        """Undo `learn`, because it was no overflow."""
        self.window = window
        self.meter.accept()

    @property
    def _max_output(self) -> int:
        return self.configured.max_output if self.configured else self.info.max_output


# --- cache marks ---


def cache_marks(request: Request, *, cut: bool = False, gap: int | None = None) -> Marks:
    """At most four: the last message, the end of the previous request, the system part, the tools; then tier edges.

    Providers look for a cached prefix at a mark and up to 20 blocks before it. One turn may add more than that, so the
    second mark of the rolling pair is exactly where the previous request ended: right before the newest answer. In the
    first request after a `cut`, that place is behind the gap, whose marker is message number `gap`. The part that is
    still cached ends right before the gap or, if nothing is cached there, at the oldest marker. Marks on both find it,
    and cache the markers themselves for a later cut that leaves them unchanged.
    """
    rolling = _rolling(request.messages, cut=cut, gap=gap)
    edges, marks_left = _tier_edges(request), MOST_MARKS - len(rolling)
    tools = bool(request.tools) and marks_left > bool(edges)
    return Marks(tools, tuple(edges[max(0, len(edges) - marks_left + tools) :]), rolling)


def _rolling(messages: tuple[Message, ...], *, cut: bool, gap: int | None) -> tuple[int, ...]:
    last = len(messages) - 1
    if not cut:
        before = next((index for index in range(last, 0, -1) if messages[index].role == "assistant"), 0) - 1
        return tuple(index for index in (before, last) if index >= 0)
    oldest = next((index for index, message in enumerate(messages) if message.name == COMPACTED), None)
    return tuple(sorted({index for index in (oldest, gap, last) if index is not None and index >= 0}))


def _tier_edges(request: Request) -> list[int]:
    """The indexes of each tier's last section, except the volatile tier's; the last one ends the system part."""
    ends = {section.tier: index for index, section in enumerate(request.sections) if section.tier != "volatile"}
    return sorted(ends.values())
