"""What would `layered` and `planner` have sent? Segments instead of one long replay, as the served strategies do it."""

from decimal import Decimal

from ra.bench.comparisons import rolling
from ra.bench.replay import Aside, Sent
from ra.bench.trace import Call, Trace
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message, Text, say
from ra.core.model import Usage
from ra.costs.prices import PriceRow

STALE_S = 45 * 60
TURNS = 15
TIER_TWO = 180_000
HISTORY = 1_200  # tokens of newest turns that a new segment starts with
PLANNED_TURNS = 3  # what the planner falls back to; without a model nobody can ask for more or less
PLAN_INPUT = 700  # tokens that the planner reads: four short messages, the new one, its instructions
PLAN_OUTPUT = 120


class Layered:
    """Replays the segment; a new one starts when a prompt comes after 45 idle minutes, 15 turns, or a full tier."""

    name = "layered"

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._messages: list[Message] = []
        self._prompts = 0
        self._time: float | None = None
        self._input = 0
        self._rewritten = False

    def hear(self, event: TimelineEvent) -> None:
        if not isinstance(event.fact, Said):
            return
        message = event.fact.message
        if message.role == "user" and not message.name:
            if self._prompts and self._ends(event.time):
                self._rotate()
            self._prompts += 1
        self._messages.append(message)
        self._time = event.time

    def send(self, call: Call) -> Sent:
        rewritten, self._rewritten = self._rewritten, False
        return Sent(tuple(self._messages), rolling(self._messages), rewritten=rewritten)

    def billed(self, call: Call, usage: Usage, dollars: Decimal) -> None:
        self._input = usage.total_input

    def close(self) -> None:
        pass

    def _ends(self, now: float) -> bool:
        idle = now - self._time if self._time is not None else 0.0
        return idle > STALE_S or self._input >= TIER_TWO or self._prompts >= TURNS

    def _rotate(self) -> None:
        self._messages = newest_turns(self._messages, self._trace, tokens=HISTORY)
        self._prompts, self._rewritten = 0, True


class Planner(Layered):
    """Starts fresh with every prompt: a small model has said how many turns to keep."""

    name = "planner"

    def __init__(self, trace: Trace, plan: PriceRow | None) -> None:
        super().__init__(trace)
        self._plan = plan

    def send(self, call: Call) -> Sent:
        sent = super().send(call)
        planned = sent.rewritten and self._plan is not None
        return sent._replace(asides=[Aside((), PLAN_INPUT, PLAN_OUTPUT, self._plan)]) if planned else sent

    def _ends(self, now: float) -> bool:
        return True

    def _rotate(self) -> None:
        self._messages = newest_turns(self._messages, self._trace, turns=PLANNED_TURNS)
        self._rewritten = True


def newest_turns(
    messages: list[Message], trace: Trace, *, turns: int | None = None, tokens: int | None = None
) -> list[Message]:
    """The newest prompts and the answers to them, without tool calls and results."""
    spoken = [
        say(message.role, message.text)
        for message in messages
        if message.role in ("user", "assistant") and any(isinstance(b, Text) and b.text for b in message.blocks)
    ]
    kept: list[Message] = []
    prompts = 0
    for message in reversed(spoken):
        if turns is not None and prompts >= turns:
            break
        if tokens is not None:
            tokens -= trace.size(message)
            if tokens < 0:
                break
        kept.append(message)
        prompts += message.role == "user"
    return kept[::-1]
