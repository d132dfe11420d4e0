"""Replays `layered` and `planner`: segments instead of one long replay, as the served strategies do."""

from collections.abc import Sequence

from ra.bench.compacting import Compacting
from ra.bench.comparisons import Nothing
from ra.bench.replay import Aside, Sent
from ra.bench.trace import RecordedCall, Trace
from ra.context.compose.rotation import Segment, due, limits, rotate
from ra.context.settings import CompactionSettings, SessionSettings
from ra.core.facts import Fact, Said, TimelineEvent
from ra.core.messages import Message, Text, say
from ra.costs.prices import PriceRow

PLANNED_TURNS = 3  # the default for a plan without a usable number
PLAN_INPUT = 700  # tokens that the planner reads: four short messages, the new one, its instructions
PLAN_OUTPUT = 120


class LayeredReplay(Compacting):
    """Replays the segment; a prompt after 45 idle minutes, 15 turns or a full tier opens a new one.

    Leaves the layers themselves out: a transcript does not show what they would have contained.
    """

    def __init__(self, trace: Trace, settings: CompactionSettings, *, window: int | None) -> None:
        self._session = SessionSettings()
        self._segment = Segment()
        self._rotated = False
        super().__init__(trace, settings, window=window)
        self.name = "layered"

    def hear(self, event: TimelineEvent) -> None:
        if isinstance(event.fact, Said) and _is_prompt(event.fact.message):
            reason = due(self._segment, limits(self._session, "layered"), now=event.time)
            if reason is not None:
                view, history = self._engine.view, self._session.layers.history
                fact = rotate(view, reason, self._segment, history=history, estimator=self._estimator)
                self._apply(fact, event.time)
                self._rotated = True
        super().hear(event)
        if isinstance(event.fact, Said):
            self._segment.apply(event)

    def send(self, call: RecordedCall) -> Sent:
        rotated, self._rotated = self._rotated, False
        sent = super().send(call)
        return sent._replace(rewritten=sent.rewritten or rotated)

    def _apply(self, fact: Fact, time: float) -> None:
        super()._apply(fact, time)
        self._segment.apply(TimelineEvent(self._at, time, fact))


class PlannerReplay(Nothing):
    """Starts fresh with every prompt: a small model has decided how many turns to keep."""

    name = "planner"

    def __init__(self, trace: Trace, plan: PriceRow | None) -> None:
        super().__init__(trace)
        self._plan = plan
        self._fresh = False

    def hear(self, event: TimelineEvent) -> None:
        if isinstance(event.fact, Said) and _is_prompt(event.fact.message) and self._messages:
            self._messages = newest_turns(self._messages, PLANNED_TURNS)
            self._fresh = True
        super().hear(event)

    def send(self, call: RecordedCall) -> Sent:
        fresh, self._fresh = self._fresh, False
        plans = [Aside((), PLAN_INPUT, PLAN_OUTPUT, self._plan)] if fresh and self._plan else []
        return super().send(call)._replace(rewritten=fresh, asides=plans)


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and not message.name


def newest_turns(messages: Sequence[Message], turns: int) -> list[Message]:
    """The newest prompts and their answers, without tool calls and results."""
    spoken = [
        say(message.role, message.text)
        for message in messages
        if message.role in ("user", "assistant") and any(isinstance(b, Text) and b.text for b in message.blocks)
    ]
    prompts = [index for index, message in enumerate(spoken) if message.role == "user"]
    return spoken[prompts[-turns] if len(prompts) >= turns else 0 :]
