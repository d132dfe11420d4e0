"""How is a turn planned? One small call that ends in time; when it fails, the turn is layered."""

import asyncio
import time
from collections.abc import Callable

from ra.agent.compose import Composed, Strategy
from ra.agent.layering import Layers, Memory
from ra.agent.turn import whole
from ra.context.settings import PlannerSettings
from ra.context.strategies import planner
from ra.context.strategies.planner import Plan, Unplanned
from ra.core.errors import BadStream, RaError
from ra.core.messages import Message
from ra.core.model import Usage
from ra.core.ports import Provider

Charge = Callable[[str, Usage, float], None]
"""(model, usage, seconds): puts the call into the ledger."""


class Planner:
    """Asks the small model. Its provider is connected when the first turn is planned, and does not try again."""

    def __init__(
        self, connect: Callable[[], Provider], model: str, settings: PlannerSettings, *, charge: Charge
    ) -> None:
        self._connect = connect
        self._provider: Provider | None = None
        self._model = model
        self.settings = settings
        self._charge = charge

    async def plan(self, history: list[Message], message: Message) -> Plan:
        """Raises Unplanned, TimeoutError, or what the provider raises. What was billed is in the ledger in any case."""
        if self._provider is None:
            self._provider = self._connect()
        request = planner.request(self._model, history, message, max_output=self.settings.max_output)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.settings.timeout):
                reply = await whole(self._provider, request)
        except BadStream as error:
            if error.usage != Usage():
                self._charge(self._model, error.usage, time.monotonic() - began)
            raise
        self._charge(self._model, reply.usage, time.monotonic() - began)
        return planner.read(reply.message.text)

    async def close(self) -> None:
        if self._provider is not None:
            await self._provider.close()


def planning(layers: Layers, small: Planner, memory: Memory, *, debug: Callable[[str], None]) -> Strategy:
    """`planner`: the plan decides; any failure makes the turn layered. `debug` hears why."""

    async def strategy(message: Message) -> Composed:
        layers.ground.prompt = message
        if not message.text.strip():  # nothing to plan for
            return await layers.layered(message)
        began = time.monotonic()
        try:
            plan = await small.plan(layers.ground.history(), message)
        except (RaError, TimeoutError, Unplanned) as error:
            why = f"no plan within {small.settings.timeout:g} s" if isinstance(error, TimeoutError) else str(error)
            debug(why)
            return await layers.layered(message)
        layers.observer.planned(
            turns=plan.recent_turns,
            memory=bool(plan.query),
            cross_chat=plan.cross_chat,
            seconds=time.monotonic() - began,
            reasoning=plan.reasoning,
        )
        return layers.planned(message, plan, memory)

    return strategy
