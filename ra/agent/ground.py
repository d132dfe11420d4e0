"""What does every strategy stand on? The session so far, the current input, and the system part that is always there.

The parts that only composed prompts need are loaded when they are asked for: most runs replay.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ra.agent.compose import Sections
from ra.agent.journal import Journal
from ra.context.engine import Engine
from ra.context.projection import ENTRIES
from ra.context.timed import TimestampedMessage
from ra.context.window import input_budget
from ra.core.messages import Message, say
from ra.core.model import ToolSpec

if TYPE_CHECKING:
    from ra.context.items import Projection
    from ra.context.strategies.custom import StrategyContext

UNKNOWN_WINDOW = 100_000  # tokens that slots share while nobody knows the window: what every current model has


class Ground:
    """What every strategy stands on: the session so far, and the system part that is always there.

    `prompt` is the current input, from the moment that a strategy is asked.
    """

    def __init__(self, journal: Journal, engine: Engine, *, sections: Sections, tools: Sequence[ToolSpec]) -> None:
        self.journal = journal
        self.engine = engine
        self.sections = sections
        self.tools = tuple(tools)
        self.prompt = say("user", "")

    def timeline_messages(
        self, since: int | None = None, projection: "Projection | None" = None
    ) -> list[TimestampedMessage]:
        """The conversation, the current input last; it is the very object, so that whoever cuts knows it."""
        from ra.context.items import timeline_messages

        events = self.journal.timeline.events()
        timed = timeline_messages(events, since, projection, estimator=self.engine.estimator)
        # It was said last; an older message may say the same.
        last = next((at for at in range(len(timed) - 1, -1, -1) if timed[at].message.name != ENTRIES), None)
        if last is not None and timed[last].message == self.prompt:
            timed[last] = TimestampedMessage(self.prompt, timed[last].at)
        return timed

    def history(self) -> list[Message]:
        """The conversation before the current input."""
        return [timed.message for timed in self.timeline_messages() if timed.message is not self.prompt]

    def room(self) -> int:
        """The input tokens that are left beside the tools, the system part and the entries."""
        engine = self.engine
        limit = engine.window.limit or UNKNOWN_WINDOW
        live = [section for section in engine.view.sections if section.name == ENTRIES]
        fixed = sum(map(engine.estimator.section, (*self.sections(), *live))) + engine.estimator.tools(self.tools)
        return max(0, input_budget(limit, engine.info.max_output) - engine.estimator.scaled(fixed))

    def strategy_context(self) -> "StrategyContext":
        """The `ctx` of a strategy file."""
        from ra.context import entries
        from ra.context.strategies.custom import StrategyContext

        engine = self.engine
        return StrategyContext(
            input=self.prompt,
            history=self.history(),
            remaining_input_tokens=self.room(),
            estimator=engine.estimator,
            entries=entries.all_of(engine.view),
            session=self.journal.session,
            model=engine.info.id,
        )
