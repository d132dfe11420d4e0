"""Reads a transcript as a list of model calls, with the tokens that the provider counted."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from ra.bench.recorded import is_own, requests_of
from ra.context.tokens import Estimator
from ra.core.facts import Configured, Cut, Said, Spent, TimelineEvent
from ra.core.messages import Message
from ra.core.model import Marks, Section, ToolSpec, Usage
from ra.core.value import same_head

PACE_S = 10.0  # between the calls of a transcript without times
LARGEST = 10_000_000  # tokens of a request; no window is larger, so a bill beyond that is damaged
_CREDIBLE = (0.3, 4.0)  # provider's tokens for one estimated; outside, something else is between two calls
_FACTORS = (("claude", 1.25), ("gemini", 1.15))


class RecordedCall(NamedTuple):
    """A model call: the position of its answer among the events, the time of its request, and its bill, if any."""

    place: int
    message: Message
    model: str
    time: float
    output: int
    usage: Usage | None
    dollars: Decimal | None
    long_lived: bool = False  # its cache writes last an hour


class SentRequest(NamedTuple):
    """A recorded request: the first `keep` messages of the request before it, and those `added` to them.

    `fixed` is what precedes them, as far as the recording shows it. `paid` was spent since the previous call on calls
    that are not turns: summaries, plans, sub-agents.
    """

    keep: int
    added: tuple[Message, ...]
    fixed: tuple[ToolSpec | Section, ...]
    marks: Marks
    rewritten: bool
    paid: Decimal


class Trace:
    """One recorded conversation, which can be replayed any number of times.

    `base` is what no transcript shows: system prompt and tools, as far as the first bill reveals. `sizes` holds the
    tokens of each message: the provider's count between two bills, otherwise an estimate; with `fitted=False` all are
    estimated, by one factor for the session. `damaged` counts bills that cannot be true; their calls count as calls
    without one.
    """

    def __init__(
        self, name: str, model: str, events: Sequence[TimelineEvent], estimator: Estimator, *, fitted: bool = True
    ) -> None:
        self.name = name
        self.model = model
        self.events = _timed(events)
        self.estimator = estimator
        self.calls = calls_of(self.events, model, estimator)
        self.damaged = sum(isinstance(event.fact, Spent) and not _credible(event.fact) for event in self.events)
        self.own = is_own(self.events)
        self.sent = self._requests()
        self._sizes: dict[int, tuple[Message, int]] = {}
        self.factor = self._measure()
        if not fitted:
            self._sizes = {}
        self.base = self._base()
        if fitted:
            self._measure_rewritten()
        first = sum(map(self._plain, self.sent[0].fixed)) if self.sent else 0
        self._fixed_factor = self.base / first if first and self.base else self.factor

    @property
    def measured(self) -> bool:
        """Whether it has bills."""
        return any(call.usage for call in self.calls)

    @property
    def unmarked(self) -> bool:
        """Whether another agent never asked for a cache. If that takes marks, it reveals nothing about the provider."""
        usages = [call.usage for call in self.calls if call.usage]
        return not self.own and bool(usages) and not any(usage.cache_read + usage.cache_write for usage in usages)

    def size(self, message: Message) -> int:
        """Its tokens, in the model's own count."""
        cached = self._sizes.get(id(message))
        return cached[1] if cached else round(self.estimator.message(message) * self.factor)

    def fixed_size(self, part: ToolSpec | Section) -> int:
        """The tokens of a tool or section that precedes the messages, in the model's own count."""
        return round(self._plain(part) * self._fixed_factor)

    def _plain(self, part: ToolSpec | Section) -> int:
        return self.estimator.tools((part,)) if isinstance(part, ToolSpec) else self.estimator.section(part)

    def _requests(self) -> list[SentRequest]:
        """The request of each call, as changes from one to the next."""
        fold, event_count = requests_of(self.events, self.estimator), 0
        before: tuple[Message, ...] = ()
        sent = []
        for call in self.calls:
            paid = Decimal(0)
            for event in self.events[event_count : call.place]:
                fold.hear(event)
                if isinstance(event.fact, Spent) and event.fact.purpose != "turn":
                    paid += Decimal(event.fact.dollars or 0)
            event_count = call.place
            messages = fold.messages
            keep = same_head(before, messages)
            sent.append(SentRequest(keep, messages[keep:], fold.fixed, fold.marks(), fold.rewritten, paid))
            fold.rewritten = False
            before = messages
        return sent

    def _measure(self) -> float:
        """Measures messages by the growth between two bills; returns the provider's tokens for one estimated token."""
        counted = estimated = shown_tokens = 0
        last_bill: int | None = None
        added: list[Message] = []  # since the last bill: calls without one may be in between
        fixed: tuple[ToolSpec | Section, ...] = ()
        for call, sent in zip(self.calls, self.sent, strict=True):
            extends = sent.keep == shown_tokens and sent.fixed == fixed
            shown_tokens, fixed = sent.keep + len(sent.added), sent.fixed
            if extends:
                added += sent.added
            else:
                last_bill, added = None, []
            if call.usage is None:
                continue
            if last_bill is not None and added:
                grown, plain = call.usage.total_input - last_bill, self.estimator.messages(added)
                if _CREDIBLE[0] <= grown / max(plain, 1) <= _CREDIBLE[1]:
                    counted, estimated = counted + grown, estimated + plain
                    self._share(added, grown, plain)
            last_bill, added = call.usage.total_input, []
        if estimated:
            return counted / estimated
        return next((factor for part, factor in _FACTORS if part in self.model.lower()), 1.0)

    def _measure_rewritten(self) -> None:
        """After a cut, the tokens of its bill beyond the known messages belong to the unknown ones."""
        shown: list[Message] = []
        for number, (call, sent) in enumerate(zip(self.calls, self.sent, strict=True)):
            cut = bool(number) and sent.keep < len(shown)
            del shown[sent.keep :]
            shown += sent.added
            if not cut or call.usage is None:
                continue
            unknown = [message for message in sent.added if id(message) not in self._sizes]
            other_tokens = sum(self.size(message) for message in shown) - sum(map(self.size, unknown))
            unexplained, plain = call.usage.total_input - self.base - other_tokens, self.estimator.messages(unknown)
            if unknown and _CREDIBLE[0] <= unexplained / max(plain, 1) <= _CREDIBLE[1]:
                self._share(unknown, unexplained, plain)

    def _share(self, messages: Sequence[Message], grown: int, plain: int) -> None:
        """Divides counted tokens among messages, in proportion to our estimates; preserves the sum."""
        position = shared = 0
        for message in messages:
            position += self.estimator.message(message)
            size = round(grown * position / plain) - shared
            shared += size
            self._sizes[id(message)] = (message, size)

    def _base(self) -> int:
        shown: list[Message] = []
        for call, sent in zip(self.calls, self.sent, strict=True):
            del shown[sent.keep :]
            shown += sent.added
            if call.usage is not None:
                return max(0, call.usage.total_input - sum(map(self.size, shown)))
        configured = next((event.fact for event in self.events if isinstance(event.fact, Configured)), None)
        if configured is None:
            return 0
        plain = sum(map(self.estimator.section, configured.sections)) + self.estimator.tools(configured.tools)
        return round(plain * self.factor)


def _timed(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    """The events with times that never decrease; a transcript without times gets a call every ten seconds."""
    if len({event.time for event in events}) <= 1:
        return [TimelineEvent(event.at, index * PACE_S / 2, event.fact) for index, event in enumerate(events)]
    timed: list[TimelineEvent] = []
    now = 0.0
    for event in events:
        now = max(now, event.time)
        timed.append(event if event.time == now else TimelineEvent(event.at, now, event.fact))
    return timed


def calls_of(events: Sequence[TimelineEvent], model: str, estimator: Estimator) -> list[RecordedCall]:
    """The model calls among the events."""
    calls: list[RecordedCall] = []
    bills = _bills(events)
    last = events[0].time if events else 0.0  # a request is sent when the message that it answers has arrived
    for index, event in enumerate(events):
        start = last
        if not isinstance(event.fact, Configured):  # readers record a model with its first answer
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
            if isinstance(event.fact, Cut):
                continue  # broken off before anything was counted
            spent = None  # a provider without counts: estimated
        if spent is None and isinstance(event.fact, Cut):
            continue
        if spent is not None and spent.seconds:
            start = max(start, event.time - spent.seconds)
        output = spent.usage.output if spent else estimator.message(message)
        dollars = Decimal(spent.dollars) if spent and spent.dollars else None
        usage, spoke = (spent.usage, spent.model) if spent else (None, message.model)
        long_lived = spent is not None and spent.long_lived
        calls.append(RecordedCall(index, message, spoke or model, start, output, usage, dollars, long_lived))
    return calls


def _credible(spent: Spent) -> bool:
    return spent.usage.total_input + spent.usage.output <= LARGEST


def _bills(events: Sequence[TimelineEvent]) -> dict[int, Spent]:
    """Assigns bills to answers: a bill belongs to the answer before it, unless that has one already."""
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
