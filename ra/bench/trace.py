"""What was recorded? A transcript as a list of model calls, with the tokens that the provider counted."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from ra.context.tokens import Estimator
from ra.core.facts import Checkpointed, Configured, Cut, Edited, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message
from ra.core.model import Usage

PACE_S = 10.0  # between calls of a transcript without times
LARGEST = 10_000_000  # tokens of a request; no window is larger: a bill beyond that is damaged
_CREDIBLE = (0.3, 4.0)  # counted by the provider for one of ours; outside, something else lies between two calls
_FACTORS = (("claude", 1.25), ("gemini", 1.15))


class Call(NamedTuple):
    """A model call: where its answer stands among the events, when the request went out, its bill if there is one."""

    place: int
    message: Message
    model: str
    time: float
    output: int
    usage: Usage | None
    dollars: Decimal | None
    long_lived: bool = False  # it wrote to the cache for an hour


class Trace:
    """One recorded conversation, ready to be replayed any number of times.

    `base` is what no transcript shows: system prompt and tools, as far as the first bill tells. `sizes` holds the
    tokens of each message: where two bills enclose it, those that the provider counted, else estimated ones. `damaged`
    counts bills that cannot be true; their calls are taken as calls without one.
    """

    def __init__(self, name: str, model: str, events: Sequence[TimelineEvent], estimator: Estimator) -> None:
        self.name = name
        self.model = model
        self.events = _timed(events)
        self.estimator = estimator
        self.calls = _calls(self.events, model, estimator)
        self.damaged = sum(isinstance(event.fact, Spent) and not _credible(event.fact) for event in self.events)
        self._sizes: dict[int, tuple[Message, int]] = {}
        self.factor = self._measure()
        self.base = self._base()

    @property
    def measured(self) -> bool:
        """Does it carry bills?"""
        return any(call.usage for call in self.calls)

    def size(self, message: Message) -> int:
        """Its tokens, in the model's own count."""
        known = self._sizes.get(id(message))
        return known[1] if known else round(self.estimator.message(message) * self.factor)

    def _measure(self) -> float:
        counted = estimated = 0
        for before, call in pairwise(self.calls):
            between = self.events[before.place : call.place]
            messages = [event.fact.message for event in between if isinstance(event.fact, Said)]
            if before.usage is None or call.usage is None or not messages:
                continue
            if any(isinstance(event.fact, Checkpointed | Rotated | Edited) for event in between):
                continue
            grown = call.usage.total_input - before.usage.total_input
            plain = self.estimator.messages(messages)
            if _CREDIBLE[0] <= grown / max(plain, 1) <= _CREDIBLE[1]:
                counted, estimated = counted + grown, estimated + plain
                self._share(messages, grown, plain)
        if estimated:
            return counted / estimated
        return next((factor for part, factor in _FACTORS if part in self.model.lower()), 1.0)

    def _share(self, messages: Sequence[Message], grown: int, plain: int) -> None:
        """Divide counted tokens among messages, by our estimate of each; the sum is kept."""
        seen = shared = 0
        for message in messages:
            seen += self.estimator.message(message)
            size = round(grown * seen / plain) - shared
            shared += size
            self._sizes[id(message)] = (message, size)

    def _base(self) -> int:
        for call in self.calls:
            if call.usage is not None:
                before = [event.fact.message for event in self.events[: call.place] if isinstance(event.fact, Said)]
                return max(0, call.usage.total_input - sum(map(self.size, before)))
        configured = next((event.fact for event in self.events if isinstance(event.fact, Configured)), None)
        if configured is None:
            return 0
        plain = sum(map(self.estimator.section, configured.sections)) + self.estimator.tools(configured.tools)
        return round(plain * self.factor)


def _timed(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    """Events whose times never run backwards; a transcript without times gets a call every ten seconds."""
    if len({event.time for event in events}) <= 1:
        return [TimelineEvent(event.at, index * PACE_S / 2, event.fact) for index, event in enumerate(events)]
    timed: list[TimelineEvent] = []
    now = 0.0
    for event in events:
        now = max(now, event.time)
        timed.append(event if event.time == now else TimelineEvent(event.at, now, event.fact))
    return timed


def _calls(events: Sequence[TimelineEvent], model: str, estimator: Estimator) -> list[Call]:
    calls: list[Call] = []
    bills = _bills(events)
    last = events[0].time if events else 0.0  # a request goes out when what it answers has come in
    for index, event in enumerate(events):
        start = last
        if not isinstance(event.fact, Configured):  # readers note a model when its first answer is there
            last = event.time
        match event.fact:
            case Said(message) | Cut(message) if message.role == "assistant":
                pass
            case _:
                continue
        spent = bills.get(index)
        if spent is not None and not _credible(spent):
            spent = None
        if spent is not None and not spent.usage.total_input:
            continue  # broken off before anything was counted
        if spent is None and isinstance(event.fact, Cut):
            continue
        if spent is not None and spent.seconds:
            start = max(start, event.time - spent.seconds)
        output = spent.usage.output if spent else estimator.message(message)
        dollars = Decimal(spent.dollars) if spent and spent.dollars else None
        usage, spoke = (spent.usage, spent.model) if spent else (None, message.model)
        long_lived = spent is not None and spent.long_lived
        calls.append(Call(index, message, spoke or model, start, output, usage, dollars, long_lived))
    return calls


def _credible(spent: Spent) -> bool:
    return spent.usage.total_input + spent.usage.output <= LARGEST


def _bills(events: Sequence[TimelineEvent]) -> dict[int, Spent]:
    """Which bill belongs to which answer: that of the answer before it, unless that has one already."""
    bills: dict[int, Spent] = {}
    answer: int | None = None
    for index, event in enumerate(events):
        match event.fact:
            case Said(message) | Cut(message) if message.role == "assistant":
                answer = index
            case Spent(purpose="turn") as spent if answer is not None and answer not in bills:
                bills[answer] = spent
            case _:
                pass
    return bills
