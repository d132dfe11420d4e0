"""How do layers get in front of the model? In their places, with turns and memory where a plan asked for them."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ra.agent.compose import Composed
from ra.agent.ground import Ground
from ra.agent.observe import Observer
from ra.context.secrets import redact
from ra.context.settings import LayersSettings
from ra.context.strategies import layered as layers
from ra.context.strategies.channels import one_line
from ra.context.strategies.layered import CORE, Layered, World
from ra.context.strategies.planner import Plan
from ra.core.messages import Message, Text, say

MOST_HITS = 5
MOST_HINTS = 5
MEMORY = "[Memory: from notes and earlier sessions; check before relying on it]"
ELSEWHERE = "[Other conversations of this project]"


class Memory(Protocol):
    """What earlier sessions of the project know."""

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Lines that hold the words of the query, best first; not from the newest turns of this session."""
        ...

    def elsewhere(self, limit: int) -> Sequence[str]:
        """What the latest other conversations are about, a line each."""
        ...


class Layers:
    """The layers of one session."""

    def __init__(
        self, ground: Ground, settings: LayersSettings, observer: Observer, *, world: Callable[[], World]
    ) -> None:
        self.ground = ground
        self.settings = settings
        self.observer = observer
        self.world = world

    async def layered(self, message: Message) -> Composed:
        """The conversation is replayed; stable layers stand in the system part, the others with the message."""
        self.ground.prompt = message
        made = self._fit(message, history=self._not_replayed())
        return Composed((*self.ground.sections(), *made.system), noticed=made.turn, name="layered")

    def planned(self, message: Message, plan: Plan, memory: Memory) -> Composed:
        """The replay starts fresh: what the plan asked for, the core layers, the message."""
        self.ground.prompt = message
        made = self._fit(message, only=CORE)
        extra = [
            *_listed("memory", MEMORY, self._hits(plan, memory)),
            *_listed("elsewhere", ELSEWHERE, self._hints(plan, memory)),
        ]
        base = (
            *recent_turns(self.ground.history(), plan.recent_turns),
            message,
            *(say("user", section.content, name=section.name) for section in made.turn),
            *extra,
        )
        return Composed((*self.ground.sections(), *made.system), base=base, name="planner")

    def _hits(self, plan: Plan, memory: Memory) -> list[str]:
        return [redact(line) for line in memory.search(plan.query, MOST_HITS)] if plan.query else []

    def _hints(self, plan: Plan, memory: Memory) -> list[str]:
        return [redact(line) for line in memory.elsewhere(MOST_HINTS)] if plan.cross_chat else []

    def _fit(self, message: Message, *, history: str = "", only: Sequence[str] = layers.LAYERS) -> Layered:
        system = next((section.content for section in self.ground.sections() if section.name == "system"), "")
        found = layers.texts(self.observer.task, self.world(), system, message, history)
        chosen = {name: text for name, text in found.items() if name in only}
        made = layers.fit(chosen, self.settings, self.ground.engine.estimator)
        self.ground.journal.keep(made.kept.values())
        return made

    def _not_replayed(self) -> str:
        """What was said before, when the replay does not carry it: after turns that started fresh."""
        configured = self.ground.engine.configured
        if configured is None or configured.base is None:
            return ""
        shown = {text for one in self.ground.engine.view.messages if (text := one.text.strip())}
        return "\n".join(
            f"{one.role}: {one.text.strip()}"
            for one in self.ground.history()
            if one.role in ("user", "assistant") and one.text.strip() and one.text.strip() not in shown
        )


def recent_turns(history: Sequence[Message], count: int) -> tuple[Message, ...]:
    """The newest turns, what was said in them word for word. Tool calls stay behind: results can be recalled."""
    spoken = [
        _spoken(one) for one in history if one.role in ("user", "assistant") and not one.name and one.text.strip()
    ]
    starts = [index for index, one in enumerate(spoken) if one.role == "user"]
    return tuple(spoken[starts[-count] :]) if 0 < count <= len(starts) else tuple(spoken) if count and starts else ()


def _spoken(message: Message) -> Message:
    return Message(message.role, tuple(block for block in message.blocks if isinstance(block, Text)))


def _listed(name: str, heading: str, lines: Sequence[str]) -> list[Message]:
    return (
        [say("user", "\n".join([heading, *(f"- {one_line(line, 400)}" for line in lines)]), name=name)] if lines else []
    )
