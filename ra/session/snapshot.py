"""What the model sees of a session at one position: the request, by source, with its price; nothing is sent."""

import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from ra.context.report import Difference, Report, first_difference, report
from ra.core.errors import UserError
from ra.core.facts import Configured, Said, Spent, TimelineEvent
from ra.core.model import Request, Usage
from ra.costs.promptcache import rules_for
from ra.providers.connect import body
from ra.session.loop import Loop
from ra.session.recipe import Recipe, Services
from ra.session.run import Prompt
from ra.timeline.in_memory import MemoryTimeline


class Snapshot:
    """One request, and the events that it follows from."""

    def __init__(
        self, request: Request, loop: Loop, events: Sequence[TimelineEvent], held: Request | None, services: Services
    ) -> None:
        self.request = request
        self.events = events
        self.recipe = loop.recipe
        self.window = loop.engine.window.limit
        self.report: Report = report(
            request,
            estimator=loop.engine.estimator,
            window=self.window,
            rate=loop.engine.rate(),
            previous=held,
            price=loop.pricing,
        )
        self._loop = loop
        self._services = services

    @property
    def is_cold(self) -> bool:
        """Whether the provider's cache of this session has run out."""
        return is_cold(self.events, self.recipe)

    def body(self) -> dict[str, Any]:
        """The request as the provider's own JSON, byte for byte what is sent."""
        return body(self.recipe.provider, self.request)

    def price(self, usage: Usage) -> Decimal | None:
        return self._loop.pricing(self.recipe.model, usage)

    async def difference(self) -> Difference | None:
        """What broke the cached prefix between the last two requests; None when nothing did."""
        answers = _answers(self.events)
        if len(answers) < 2:
            raise UserError("A difference needs two model calls; this session has fewer. Ask something more first.")
        earlier, later = [await _request_of(answer, self.events, self._loop, self._services) for answer in answers[-2:]]
        return first_difference(earlier, later, self._loop.engine.estimator)


async def previewed(timeline: MemoryTimeline, prompt: Prompt, services: Services, *, said: bool) -> Snapshot:
    """What this prompt would send. `timeline` is a copy, which takes what would be recorded."""
    events = tuple(timeline.events())
    loop = Loop(timeline, prompt.recipe, services, preview=True)
    held = await _held(events, loop, services)
    if said:
        await loop.stage(prompt)
    else:
        await loop.compose(prompt.message, prompt)
    return Snapshot(await loop.outgoing(), loop, events, held, services)


async def snapshot(timeline: MemoryTimeline, recipe: Recipe, services: Services, *, at: int | None) -> Snapshot:
    """The next request, made with what the last one was made with; or, `at` a position, the one that was next then."""
    every = tuple(timeline.events())
    events = _until(every, at, timeline.session)
    past = at is not None and len(events) < len(every)
    loop = Loop(_timeline(events, timeline), recipe, services, preview=True)
    held = await _held(events, loop, services)
    if past:
        return Snapshot((await loop.engine.assemble()).request, loop, events, held, services)
    return Snapshot(await loop.outgoing(), loop, events, held, services)


def _until(events: Sequence[TimelineEvent], at: int | None, session: str) -> Sequence[TimelineEvent]:
    """The events up to a position; before the first request, those of the first request."""
    if at is None:
        return events
    if events and at > events[-1].at:
        raise UserError(f"Session {session} ends at position {events[-1].at}, before {at}; name one up to it.")
    first = next((event.at for event in events if isinstance(event.fact, Configured)), None)
    position = at if first is None else max(at, _end_of_prompt(events, first))
    return [event for event in events if event.at <= position]


def _end_of_prompt(events: Sequence[TimelineEvent], configured: int) -> int:
    """The last position before the model was first called: what was noticed along with the prompt is part of it."""
    called = next(
        (event.at for event in events if event.at > configured and isinstance(event.fact, Spent | Said)), None
    )
    return called - 1 if called is not None else events[-1].at


def _timeline(events: Sequence[TimelineEvent], copy: MemoryTimeline) -> MemoryTimeline:
    return MemoryTimeline(copy.session, events=events, texts=copy.kept)


async def _held(events: Sequence[TimelineEvent], loop: Loop, services: Services) -> Request | None:
    """The last request, whose prefix the provider may still hold."""
    answers = _answers(events)
    if not answers or is_cold(events, loop.recipe):
        return None
    return await _request_of(answers[-1], events, loop, services)


async def _request_of(
    answer: TimelineEvent, events: Sequence[TimelineEvent], loop: Loop, services: Services
) -> Request:
    """The request that brought an answer: what follows from all that was before it."""
    before = [event for event in events if event.at < answer.at]
    copy = MemoryTimeline(loop.journal.session, events=before, texts=loop.journal.timeline.kept)
    return await Loop(copy, loop.recipe, services, preview=True).outgoing()


def _answers(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    return [
        event
        for event in events
        if isinstance(event.fact, Said) and event.fact.message.role == "assistant" and event.fact.message.model
    ]


def is_cold(events: Iterable[TimelineEvent], recipe: Recipe) -> bool:
    """Whether the provider's cache of a session has run out."""
    bills = [(event.time, event.fact) for event in events if isinstance(event.fact, Spent)]
    if not bills:
        return True
    paid_at, last = bills[-1]
    return time.time() - paid_at > rules_for(recipe.model, recipe.provider, long_lived=last.long_lived).lifetime_s
