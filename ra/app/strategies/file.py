"""How does a strategy of the user's own get its say? A Python file with `async def on_context_build(ctx)`."""

from ra import plugins
from ra.agent.compose import Strategy
from ra.agent.user_strategies import filed, guarded
from ra.app.wiring import Wiring

FUNCTION = "on_context_build"


def strategy(wiring: Wiring, default: Strategy) -> Strategy:
    root, call = wiring.app.resolved.root, wiring.app.worker.call
    file = plugins.locate(wiring.name, base=root)
    function = plugins.load(str(file), base=root, name=FUNCTION)
    return filed(wiring.ground, guarded(function, call=call, file=file, what=FUNCTION), default)
