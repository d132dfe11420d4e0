"""What does a stored session look like to a model, without asking one? For `ra context`, `compact`, `recall` …"""

import asyncio
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from ra.app import open_prices, open_store
from ra.app.parts import economy
from ra.config.load import Resolved
from ra.context import window
from ra.context.cacheplan import Difference, first_difference
from ra.context.compaction.plan import Preview, preview
from ra.context.compaction.priced import Economy
from ra.context.engine import Assembly, Engine
from ra.context.report import Report, report
from ra.context.tokens import Estimator
from ra.core.errors import UserError
from ra.core.facts import Configured, Said, Spent, TimelineEvent
from ra.core.model import Request, Usage
from ra.core.ports import Timeline
from ra.costs.promptcache import rules_for
from ra.providers import connect
from ra.providers.dialects import dialect
from ra.providers.vendors import BY_NAME


class Reading:
    """One stored session, folded up to a position. Nothing is sent and nothing is recorded."""

    def __init__(
        self, resolved: Resolved, session: str | None = None, *, at: int | None = None, timeline: Timeline | None = None
    ) -> None:
        """By default the latest session of the project; `timeline` is one that is open already."""
        self.resolved = resolved
        self.store = open_store(resolved)
        self.prices = open_prices(resolved)
        self.timeline = timeline or self._stored(session)
        stored = list(self.timeline.events())
        if at is not None and stored and at > stored[-1].at:
            raise UserError(
                f"Session {self.timeline.session} ends at position {stored[-1].at}, before {at}; name one up to it."
            )
        self.events = [event for event in stored if at is None or event.at <= at]
        if not self.events:
            where = f" up to position {at}" if at is not None else " in it yet"
            raise UserError(f"Session {self.timeline.session} has nothing{where}. `ra sessions list` shows the others.")
        self.configured = next(
            (e.fact for e in reversed(self.events) if isinstance(e.fact, Configured)), Configured("", "", "timeline")
        )
        self.engine = self._folded(self.events)

    def _stored(self, session: str | None) -> Timeline:
        chosen = session or self.store.latest(str(self.resolved.root))
        if chosen is None:
            raise UserError('This project has no session yet. Start one: ra "your question"')
        return self.store.open(chosen, write=False)

    def next_request(self) -> Assembly:
        """What would be sent now, before anything new is said."""
        return asyncio.run(self.engine.assemble())

    def last_request(self) -> Request | None:
        """The request of the last model call: the fold up to the answer that it brought."""
        answered = self._last_call()
        if answered is None:
            return None
        before = self._folded([event for event in self.events if event.at < answered.at])
        return asyncio.run(before.assemble()).request

    def report(self, request: Request) -> Report:
        """By source, with what the provider may still hold of the last request."""
        return report(
            request,
            estimator=self.engine.estimator,
            window=self.engine.window.limit,
            rate=self.engine.rate(),
            previous=self.held(),
            price=self.price,
        )

    def held(self) -> Request | None:
        """The request whose prefix the provider may still hold."""
        return None if self.is_cold() else self.last_request()

    def difference(self) -> Difference | None:
        """What broke the cached prefix between the last two requests."""
        answered = self._last_call()
        earlier = answered and self._last_call(before=answered.at)
        if answered is None or earlier is None:
            raise UserError("A difference needs two model calls; this session has fewer. Ask something more first.")
        one, other = (
            self._folded([event for event in self.events if event.at < call.at]) for call in (earlier, answered)
        )
        requests = [asyncio.run(engine.assemble()).request for engine in (one, other)]
        return first_difference(requests[0], requests[1], self.engine.estimator)

    def body(self, request: Request) -> dict[str, Any]:
        """The request as the provider's own JSON, byte for byte what is sent."""
        provider = self.configured.provider
        if provider == "local" or provider in BY_NAME:
            speaks = dialect("openai-chat" if provider == "local" else provider)
            return speaks.body(request, connect.info(provider, request.model))
        told: dict[str, Any] = msgspec.to_builtins(request)
        return told

    def is_cold(self) -> bool:
        """Has the provider's cache of this session run out?"""
        paid = [event.time for event in self.events if isinstance(event.fact, Spent)]
        lifetime = rules_for(self.configured.model, self.configured.provider).lifetime_s
        return not paid or time.time() - paid[-1] > lifetime

    def price(self, model: str, usage: Usage) -> Decimal | None:
        return self.prices.price(model, usage, self.configured.provider)

    def _last_call(self, *, before: int | None = None) -> TimelineEvent | None:
        """The answer of the last model call."""
        return next(
            (
                event
                for event in reversed(self.events)
                if isinstance(event.fact, Said)
                and event.fact.message.role == "assistant"
                and event.fact.message.model
                and (before is None or event.at < before)
            ),
            None,
        )

    def compaction(self) -> Preview:
        """What `ra compact` would do now."""
        decider = economy(self.resolved.config.agent.compaction, self.prices, self.configured.provider)
        return preview(self._folded(self.events, decider), price=self.price)

    def _folded(self, events: Sequence[TimelineEvent], decider: Economy | None = None) -> Engine:
        provider, model = self.configured.provider or "scripted", self.configured.model
        info = connect.info(provider, model)
        learned = self.store.learned(model)
        settings = self.resolved.config.agent.compaction
        limit = window.resolve(settings.context_window, learned.window, info.window)
        factor = learned.factor or info.tokens_per_o200k
        engine = Engine(
            settings,
            estimator=Estimator(factor),
            window=limit,
            info=info,
            must_keep=self.resolved.config.agent.context.must_keep,
            economy=decider,
            cache_key=self.timeline.session,
        )
        for event in events:
            engine.apply(event)
        return engine
