"""What goes to the model next? The stages on one page: fold, measure, compact if it must be, mark, hand over."""

import math
from collections.abc import Callable, Sequence

import msgspec

from ra.context import cacheplan
from ra.context.compaction.compactor import Compactor, Room
from ra.context.compaction.digest import Digest
from ra.context.compaction.guard import Guard
from ra.context.compaction.summarize import Call, Price, Summarizer
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.context.window import Window, input_budget, reserve, target, trigger
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
CREDIBLE = 6.0  # no model counts more of its tokens for one of o200k_base
LEAST_THINKING = 1024  # tokens; providers refuse a smaller budget

Economy = Callable[[View], str]
"""Decides by price when `auto` compacts: a reason, or "" for not now."""


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
            info=summary_info or info,
            estimator=estimator,
            digest=self.digest,
            prompt=settings.prompt,
            price=price,
        )
        self.compactor = Compactor(
            settings, estimator, digest=self.digest, guard=Guard(must_keep), summarizer=summarizer
        )
        self._economy = economy
        self._cache_key = cache_key
        self._billed: tuple[int, int] | None = None  # the first so many units, with all above them, are so many tokens
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
        match fact:
            case Spent(purpose="turn", usage=usage) if usage.total_input:
                units = self.view.units
                answered = bool(units) and units[-1].item.message.role == "assistant"
                self._billed = (len(units) - answered, usage.total_input)
            case Checkpointed(after=after) if after:
                self._billed = (len(self.view.units), after)

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
        total = self.measure(exact=bool(force) or refit is not None)
        reason = self._reason(total, force, refit)
        if total is None or not reason:
            return self._hand_over(self.view, total)
        room = self.room(total, refit, eager=reason not in (THRESHOLD, OVERFLOW))
        must = total > room.most * room.rate
        sent = self._finish(self.view.request(), total)
        shrunk = await self.compactor.shrink(self.view, room, reason, must=must, sent=sent, focus=focus)
        if must and shrunk.view.tokens() > room.most:
            raise UserError(self._what_does_not_fit(shrunk.view, room))
        if not shrunk.facts:
            return self._hand_over(self.view, total, warnings=shrunk.warnings)
        self._refused = 0.0
        left = math.ceil(shrunk.view.tokens() * room.rate)
        return self._hand_over(shrunk.view, left, facts=shrunk.facts, warnings=shrunk.warnings)

    def request(self) -> Request:
        """The next request as it stands, without deciding anything: what `ra context` shows."""
        return self._finish(self.view.request(), self.measure(exact=False))

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
        plain = self.view.tokens_since(start) if billed else self.view.tokens()
        told = math.ceil(self.view.tokens() * self._refused) if self._refused else 0
        return max(billed + self.estimator.scaled(plain), told)

    def _near(self) -> int | None:
        """Up to this size neither the request nor the room for its answer has to change; None: no limit is known."""
        limit, output = self.window.limit, self._max_output
        level = trigger(
            limit, threshold=self.settings.threshold, max_output=output, max_tokens=self.settings.max_tokens
        )
        return level if level is None or limit is None else min(level, limit - output)

    def _reason(self, total: int | None, force: str, refit: int | None) -> str:
        """Why a compaction is due, or nothing."""
        limit, settings = self.window.limit, self.settings
        if force and force != OVERFLOW:
            return force
        if total is None:
            return ""
        if force or refit is not None:
            most = refit if refit is not None else limit and input_budget(limit, self._max_output)
            return OVERFLOW if most and total > most else ""
        level = trigger(
            limit, threshold=settings.threshold, max_output=self._max_output, max_tokens=settings.max_tokens
        )
        if settings.enabled and level is not None and total > level:
            return THRESHOLD
        return self._economy(self.view) if settings.strategy == "auto" and self._economy else ""

    def room(self, total: int, refit: int | None = None, *, eager: bool) -> Room:
        """What a request that is now `total` tokens may come down to. Eager: to half of it, however much fits."""
        settings, limit = self.settings, self.window.limit or total
        rate = total / max(1, self.view.tokens())
        most = input_budget(limit, self._max_output) if self.window.limit else total
        goal = target(limit, threshold=settings.threshold, max_tokens=settings.max_tokens) or most
        recent = limit * settings.recent
        if refit is not None:
            most, goal = min(most, refit), min(goal, refit)
        if eager:
            goal, recent = min(goal, total // 2), min(recent, total * settings.recent)
        goal = int(min(goal, most) / rate)
        left = goal - self.view.fixed_tokens() - sum(map(self.view.unit_tokens, self.view.prompts()))
        return Room(int(limit / rate), int(most / rate), goal, max(0, min(int(recent / rate), left // 2)), rate)

    # --- hand over ---

    def _hand_over(
        self, view: View, total: int | None, *, facts: tuple[Fact, ...] = (), warnings: tuple[str, ...] = ()
    ) -> Assembly:
        request = self._finish(view.request(), total)
        self._sent = request
        return Assembly(request, facts, total, warnings)

    def _finish(self, request: Request, total: int | None) -> Request:
        """Add the cache marks, and lower the room for the answer where the window has no more."""
        limit, output, effort = self.window.limit, request.max_output, request.effort
        if limit and total and total + output > limit:
            output = reserve(limit, output)
            if effort.budget >= output:
                budget = output // 2
                effort = Effort(effort.level, budget) if budget >= LEAST_THINKING else Effort()
        return msgspec.structs.replace(
            request, max_output=output, effort=effort, marks=cacheplan.marks(request), cache_key=self._cache_key
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
        self._refused = min(CREDIBLE, told / max(1, plain))
        known = self.window.limit
        if self.window.origin != "configured" or known is None or (limit or 0) < known:
            self.window = Window(limit or int(told * GUESS), "learned")
        return limit

    @property
    def _max_output(self) -> int:
        return self.configured.max_output if self.configured else self.info.max_output

    def _what_does_not_fit(self, view: View, room: Room) -> str:
        sections, tools = (
            math.ceil(count * room.rate)
            for count in (
                sum(map(self.estimator.section, view.sections)),
                self.estimator.tools(view.request().tools),
            )
        )
        return (
            f"The system part ({sections} tokens) and the tool definitions ({tools}) leave too little room for the "
            f"conversation: a request may have {math.floor(room.most * room.rate)}. Use fewer tools (--no-tools, "
            "agent.tools), a shorter system prompt or fewer entries, or a model with a larger window "
            "(agent.compaction.contextWindow)."
        )
