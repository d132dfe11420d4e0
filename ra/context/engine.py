"""What goes to the model next? The stages on one page: fold, measure, compact if it must be, mark, hand over."""

from collections.abc import Sequence

import msgspec

from ra.context import cacheplan
from ra.context.compaction.compactor import Compactor
from ra.context.compaction.digest import Digest
from ra.context.compaction.guard import Guard
from ra.context.compaction.priced import Economy, wanted
from ra.context.compaction.room import Room, room, too_small
from ra.context.compaction.summarize import Call, Summarizer
from ra.context.meter import Meter
from ra.context.refusals import Refusals
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.context.window import SLACK, Window, answer_room, input_budget, trigger
from ra.core.errors import UserError
from ra.core.facts import Checkpointed, Configured, Fact, TimelineEvent
from ra.core.functions import Price
from ra.core.model import ModelInfo, Request, Usage

THRESHOLD = "threshold"  # the reasons of compactions that nobody asked for: the request was too large for our rule
OVERFLOW = "overflow"  # or for the provider


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
        self.meter = Meter(self.view, estimator)
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
        self._sent: Request | None = None
        self._refusals = Refusals()

    @property
    def configured(self) -> Configured | None:
        return self.view.configured

    def apply(self, event: TimelineEvent) -> None:
        self.meter.apply(event)
        self.window = self._refusals.apply(event, self.window)
        if self._economy:
            self._economy.observe(event)

    # --- assemble ---

    async def assemble(self, *, force: str = "", refit: int | None = None, focus: str = "") -> Assembly:
        """The next request. `force` compacts now and says why; `refit` is the most that this request may have.

        Raises UserError when not even the system part and the tools fit.
        """
        total = self.measure(exact=bool(force) or refit is not None or self._may_pay())
        reason = self._reason(total, force, refit)
        if total is None or not reason:
            return self._hand_over(self.view, total)
        space = self.room(total, refit, eager=reason == force != OVERFLOW, forced=reason == THRESHOLD)
        sent = self._finish(self.view, total, cut=self.meter.cut)
        shrunk = await self.compactor.shrink(self.view, space, reason, sent=sent, focus=focus)
        if space.must and shrunk.view.tokens() > space.most and self.window.origin != "guessed":
            raise UserError(too_small(shrunk.view, space, self.estimator))
        if not shrunk.facts:
            return self._hand_over(self.view, total, warnings=shrunk.warnings)
        self.meter.accept()
        return self._hand_over(shrunk.view, space.scaled(shrunk.view), facts=shrunk.facts, warnings=shrunk.warnings)

    def request(self) -> Request:
        """The next request as it stands, without deciding anything: what `ra context` shows."""
        return self._finish(self.view, self.measure(exact=False), cut=self.meter.cut)

    def measure(self, *, exact: bool) -> int | None:
        """The model's tokens in the next request; unless `exact`, None while no limit is near or known."""
        near = self._near()
        return self.meter.measure(None if exact else near) if exact or near is not None else None

    def rate(self) -> float | None:
        """The model's tokens for one of o200k_base in the next request, as it is measured; None while it is empty."""
        plain = self.view.tokens()
        return (self.measure(exact=True) or 0) / plain if plain else None

    def _near(self) -> int | None:
        """Up to this size neither the request nor the room for its answer has to change; None: no limit is known."""
        limit, level = self.window.limit, self._trigger()
        return level if level is None or limit is None else min(level, int((limit - self._max_output) / SLACK))

    def _trigger(self) -> int | None:
        limit, rule = self.window.limit, self.settings
        return trigger(limit, threshold=rule.threshold, max_output=self._max_output, max_tokens=rule.max_tokens)

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
        economy = self._economy if self._may_pay() else None
        return wanted(economy, self.view, self.room(total), total, self.compactor.hide) if economy else ""

    def _may_pay(self) -> bool:
        """Could a cut be worth its price? Not while all there is would stay: then nothing is counted for it either."""
        return self._economy is not None and self.meter.billed > self._economy.sizes(self.window.limit)[0]

    def room(self, total: int, refit: int | None = None, *, eager: bool = False, forced: bool = False) -> Room:
        """What a request that is now `total` tokens may come down to."""
        limit = self.window.limit
        return room(
            self.view,
            total,
            settings=self.settings,
            limit=limit,
            max_output=self._max_output,
            refit=refit,
            cut=self._economy.sizes(limit, forced=forced) if self._economy else None,
            eager=eager,
            stack=self._economy is not None and self._economy.warm,
        )

    # --- hand over ---

    def _hand_over(
        self, view: View, total: int | None, *, facts: tuple[Fact, ...] = (), warnings: tuple[str, ...] = ()
    ) -> Assembly:
        cut = any(isinstance(fact, Checkpointed) for fact in facts)
        request = self._sent = self._finish(view, total, cut=cut or self.meter.cut)
        return Assembly(request, facts, total, warnings)

    def _finish(self, view: View, total: int | None, *, cut: bool) -> Request:
        """The request of a view, with its cache marks, and less room for the answer where the window has no more."""
        request = view.request()
        output, effort = answer_room(self.window.limit, total, request.max_output, request.effort)
        gap = view.newest_gap() if cut else None
        marks, key = cacheplan.marks(request, cut=cut, gap=gap), self._cache_key
        return msgspec.structs.replace(request, max_output=output, effort=effort, marks=marks, cache_key=key)

    # --- learn ---

    def observe_usage(self, usage: Usage) -> None:
        """Calibrate by what the provider counted for the last request; nothing is counted only for that."""
        if self._sent is not None and usage.total_input and self.view.counted:
            self.estimator.observe(self.estimator.request(self._sent), usage.total_input)

    def learn(self, limit: int | None, *, sent: int | None = None) -> int | None:
        """After an overflow: what the server said of its window and of the request. The window to remember, if any.

        A refused request is larger than the limit, whatever our count says.
        """
        told = self.meter.refuse(sent, self._refusals.at_least(limit))
        self.window = self._refusals.learn(self.window, limit, told)
        return limit

    @property
    def _max_output(self) -> int:
        return self.configured.max_output if self.configured else self.info.max_output
