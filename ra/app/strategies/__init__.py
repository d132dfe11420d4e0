"""Which strategy composes the prompts of a session? One module each, found by its name: `strategy(wiring, default)`.

A user chooses among `ra.context.settings.STRATEGIES`; sources and strategy files have a module of their own.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ra.agent.compose import Strategy
from ra.context.settings import STRATEGIES

if TYPE_CHECKING:
    from ra.app.wiring import Wiring

SOURCES = "sources"  # the strategy of a configuration that says what the prompt is composed of

Make = Callable[["Wiring", Strategy], Strategy]


def make(wiring: "Wiring", default: Strategy) -> Strategy:
    """Loaded only now: most runs replay, which is the default, and need nothing more."""
    if wiring.name == "timeline":
        return default
    module = wiring.name if wiring.name in (*STRATEGIES, SOURCES) else "file"
    strategy: Make = import_module(f"{__name__}.{module}").strategy
    return strategy(wiring, default)
