"""What goes to the model next? The stages on one page: fold, measure, compact if it must be, mark, hand over."""

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ra.context import cacheplan
from ra.context.compaction.compactor import Compactor
from ra.context.compaction.digest import Digest
from ra.context.compaction.guard import Guard
from ra.context.compaction.room import Room, room, too_small
from ra.context.compaction.summarize import Call, Price, Summarizer
from ra.context.compaction.zones import split
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.context.window import Window, input_budget, reserve, trigger
from ra.core.errors import UserError
from ra.core.facts import (
    Checkpointed,
    Configured,
    Edited,
    EntryRemoved,
    EntrySet,
    Fact,
    Rotated,
    Spent,
    TimelineEvent,
)
from ra.core.messages import ToolCall
from ra.core.model import Effort, ModelInfo, Request, Usage

THRESHOLD = "threshold"  # the reasons of compactions that nobody asked for: the request was too large for our rule
OVERFLOW = "overflow"  # or for the provider
GUESS = 0.75  # of a request that was refused by a server that named no limit
CREDIBLE_BILL = 0.9  # of the last one, while nothing was rewritten
CREDIBLE_RATE = 6.0  # no model counts more of its tokens for one of o200k_base
INDEXED = 8  # tokens of conversation for one of its index, about; it is written only when it is wanted
SLACK = 1.02  # an estimate may miss by so much before the answer no longer fits beside the request
LEAST_THINKING = 1024  # tokens; providers refuse a smaller budget


class Economy(Protocol):
    """Decides by price when `auto` compacts, and how much a cut leaves. In the model's tokens."""

    def observe(self, event: TimelineEvent) -> None: ...

    def sizes(self, window: int | None) -> tuple[int, int]:
        """Of the newest groups that stay, and of the index that stands in for the others."""
        ...

    def wants(self, *, before: int, zone: int, behind: int, stand_in: int) -> str:
        """Why the request should be cut now, "" when it should not: its size before, in and behind what can be cut."""
        ...


class Assembly(msgspec.Struct, frozen=True):
    """The next request, and the facts to record before it is sent; the request already stands on them.

    `tokens` is None while a bound proves that no limit is near: then nothing was counted.
    """

    request: Request
    facts: tuple[Fact, ...] = ()
    tokens: int | None = None
    warnings: tuple[str, ...] = ()


class Engine:
    """Owns the view of one session. It decides and returns facts; whoever runs it records them and applies them."""

    def __init__(
        self,
        settings: CompactionSettings,
        *,
        estimator: Estimator,
        window: Window,
        info: ModelInfo,
        must_keep: Sequence[str] = (),
        summarize: Call | None = None,
        summary_info: ModelInfo | None = None,
        price: Price = lambda model, usage: None,
        economy: Economy | None = None,
        cache_key: str = "",
    ) -> None:
        self.settings = settings
        self.estimator = estimator
        self.window = window
        self.info = info
        self.view = View(estimator)
        self.digest = Digest(estimator)
        summarizer = summarize and Summarizer(
            summarize,
            model=settings.model,
            info=summary_info or (ModelInfo(settings.model) if settings.model else info),
            estimator=estimator,
            digest=self.digest,
            prompt=settings.prompt,
            window=lambda: summary_info.window if settings.model and summary_info else self.window.limit,
            price=price,
        )
        self.compactor = Compactor(
            settings, estimator, digest=self.digest, guard=Guard(must_keep), summarizer=summarizer
        )
        self._economy = economy if settings.strategy == "auto" and settings.enabled else None
        self._cache_key = cache_key
        self._billed: tuple[int, int] | None = None  # the first so many units, with all above them, are so many tokens
        self._cut = False  # since the last bill
        self._refused = 0.0  # tokens of the model for one of o200k_base, as an overflow told
        self._sent: Request | None = None

    @property
    def configured(self) -> Configured | None:
        return self.view.configured

    def open_calls(self) -> tuple[ToolCall, ...]:
        return self.view.open_calls()

    # --- fold ---

    def apply(self, event: TimelineEvent) -> None:
        fact = event.fact
        if self._rewrites(fact):
            self._billed = None
        self.view.apply(event)
        if self._economy:
            self._economy.observe(event)
        match fact:
            case Spent(purpose="turn", usage=usage):
                self._cut = False
                if usage.total_input >= self._least_bill():
                    self._billed = (len(self.view.units) - self._just_answered(), usage.total_input)
            case Checkpointed(after=after):
                self._cut = True
                self._billed = (len(self.view.units), after) if after else None

    def _just_answered(self) -> bool:
        """Is the last unit the answer to what was billed? Its calls have no results yet."""
        last = self.view.units[-1] if self.view.units else None
        return last is not None and last.item.message.role == "assistant" and (last.open or not last.results)

    def _least_bill(self) -> float:
        """What a report must say to be believed: requests grow, but some servers leave out what their cache held."""
        return self._billed[1] * CREDIBLE_BILL if self._billed else 1

    def _rewrites(self, fact: Fact) -> bool:
        """Does it change what was sent before? Then the last bill says nothing about the next request."""
        match fact:
            case Configured(model=model, sections=sections, tools=tools, base=base):
                last = self.configured
                same = last is not None and (last.model, last.sections, last.tools) == (model, sections, tools)
                return base is not None or not same
            case EntrySet(id=id) | EntryRemoved(id=id):
                return id in self.view.entries
            case _:
                return isinstance(fact, Checkpointed | Rotated | Edited)

    # --- assemble ---

    async def assemble(self, *, force: str = "", refit: int | None = None, focus: str = "") -> Assembly:
        """The next request. `force` compacts now and says why; `refit` is the most that this request may have.

        Raises UserError when not even the system part and the tools fit.
        """
        total = self.measure(exact=bool(force) or refit is not None or self._may_pay())
        reason = self._reason(total, force, refit)
        if total is None or not reason:
            return self._hand_over(self.view, total)
        space = self.room(total, refit, eager=reason == force != OVERFLOW)
        sent = self._finish(self.view.request(), total, cut=self._cut)
        shrunk = await self.compactor.shrink(self.view, space, reason, sent=sent, focus=focus)
        if space.must and shrunk.view.tokens() > space.most:
            raise UserError(too_small(shrunk.view, space, self.estimator))
        if not shrunk.facts:
            return self._hand_over(self.view, total, warnings=shrunk.warnings)
        self._refused = 0.0
        return self._hand_over(shrunk.view, space.scaled(shrunk.view), facts=shrunk.facts, warnings=shrunk.warnings)

    def request(self) -> Request:
        """The next request as it stands, without deciding anything: what `ra context` shows."""
        return self._finish(self.view.request(), self.measure(exact=False), cut=self._cut)

    def measure(self, *, exact: bool) -> int | None:
        """The model's tokens in the next request: what was last reported, and an estimate of what came since."""
        start, billed = self._billed or (0, 0)
        if not exact:
            near = self._near()
            if near is None:
                return None
            if billed or not self.view.counted:
                new = self.view.request() if not billed else Request("", (), self.view.messages_since(start))
                if billed + self.estimator.bound(new) <= near:
                    return None
        whole, since = self.view.tokens(), self.view.tokens_since(start)
        rate = self._session_rate(billed, whole - since) if billed else self.estimator.factor
        return max(billed + math.ceil((since if billed else whole) * rate), math.ceil(whole * self._refused))

    def _session_rate(self, billed: int, plain: int) -> float:
        """Tokens of the model for one of o200k_base, as this session's bill says; within what calibration may miss."""
        factor = self.estimator.factor
        return min(max(billed / max(1, plain), factor / 2), factor * 2)

    def _near(self) -> int | None:
        """Up to this size neither the request nor the room for its answer has to change; None: no limit is known."""
        limit, level = self.window.limit, self._trigger()
        return level if level is None or limit is None else min(level, int((limit - self._max_output) / SLACK))

    def _trigger(self) -> int | None:
        settings = self.settings
        return trigger(
            self.window.limit,
            threshold=settings.threshold,
            max_output=self._max_output,
            max_tokens=settings.max_tokens,
        )

    def _reason(self, total: int | None, force: str, refit: int | None) -> str:
        """Why a compaction is due, or nothing."""
        limit, level = self.window.limit, self._trigger()
        if force and force != OVERFLOW:
            return force
        if total is None:
            return ""
        if force or refit is not None:
            most = refit if refit is not None else limit and input_budget(limit, self._max_output)
            return OVERFLOW if most and total > most else ""
        if self.settings.enabled and level is not None and total > level:
            return THRESHOLD
        return self._priced(total) if self._may_pay() else ""

    def _may_pay(self) -> bool:
        """Could a cut be worth its price? Not while all there is would stay: then nothing is counted for it either."""
        return bool(self._economy and self._billed and self._billed[1] > self._economy.sizes(self.window.limit)[0])

    def _priced(self, total: int) -> str:
        """Why `auto` cuts before the threshold is reached, or nothing."""
        space = self.room(total)
        zone = split(self.view, space.recent).compactable
        if not self._economy or not zone:
            return ""
        start = self.view.tokens() - self.view.tokens_since(self.view.units.index(zone[0]))
        cut = sum(map(self.view.unit_tokens, zone))
        old = sum(self.view.unit_tokens(unit) for unit in zone if unit.kind == "marker")
        index = min(space.index, old + (cut - old) // INDEXED)
        before, inside, stand_in = (math.ceil(size * space.rate) for size in (start, cut, index))
        return self._economy.wants(before=before, zone=inside, behind=total - before - inside, stand_in=stand_in)

    def room(self, total: int, refit: int | None = None, *, eager: bool = False) -> Room:
        """What a request that is now `total` tokens may come down to."""
        limit = self.window.limit
        return room(
            self.view,
            total,
            settings=self.settings,
            limit=limit,
            max_output=self._max_output,
            refit=refit,
            cut=self._economy.sizes(limit) if self._economy else None,
            eager=eager,
        )

    # --- hand over ---

    def _hand_over(
        self, view: View, total: int | None, *, facts: tuple[Fact, ...] = (), warnings: tuple[str, ...] = ()
    ) -> Assembly:
        request = self._finish(view.request(), total, cut=self._cut or bool(facts))
        self._sent = request
        return Assembly(request, facts, total, warnings)

    def _finish(self, request: Request, total: int | None, *, cut: bool) -> Request:
        """Add the cache marks, and lower the room for the answer where the window has no more."""
        limit, output, effort = self.window.limit, request.max_output, request.effort
        if limit and total and total * SLACK + output > limit:
            kept = reserve(limit, output)
            output = min(kept, max(limit - math.ceil(total * SLACK), kept // 2 + 1))
            if effort.budget > kept // 2:
                effort = Effort(effort.level, kept // 2) if kept // 2 >= LEAST_THINKING else Effort()
        return msgspec.structs.replace(
            request,
            max_output=output,
            effort=effort,
            marks=cacheplan.marks(request, cut=cut),
            cache_key=self._cache_key,
        )

    # --- learn ---

    def observe_usage(self, usage: Usage) -> None:
        """Calibrate by what the provider counted for the last request; nothing is counted only for that."""
        if self._sent is not None and usage.total_input and self.view.counted:
            self.estimator.observe(self.estimator.request(self._sent), usage.total_input)

    def learn(self, limit: int | None, *, sent: int | None = None) -> int | None:
        """After an overflow: what the server said of its window and of the request. The window to remember, if any.

        A refused request is larger than the limit, whatever our count says; without a limit three quarters are tried.
        """
        plain = self.view.tokens()
        told = sent or limit or self.estimator.scaled(plain)
        self._refused = min(CREDIBLE_RATE, told / max(1, plain))
        known = self.window.limit
        if self.window.origin != "configured" or known is None or (limit or 0) < known:
            self.window = Window(limit or int(told * GUESS), "learned")
        return limit

    @property
    def _max_output(self) -> int:
        return self.configured.max_output if self.configured else self.info.max_output
