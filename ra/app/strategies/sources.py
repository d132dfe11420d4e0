"""Where do the sources of `agent.context.sources` come from? Files, commands, texts, functions and the timeline."""

from collections.abc import Awaitable, Callable
from functools import partial

from ra import plugins
from ra.agent.compose import Strategy
from ra.agent.sourcing import read_file, run_command
from ra.agent.user_strategies import alone, guarded, sourced
from ra.app.wiring import Wiring
from ra.context.sources import Content, Source, from_settings


def strategy(wiring: Wiring, default: Strategy) -> Strategy:
    budget = wiring.app.config.agent.context.source_budget
    return sourced(wiring.ground, budget or 0, _sources(wiring))


def _sources(wiring: Wiring) -> dict[str, Source]:
    root = wiring.app.resolved.root

    def load(place: str) -> Callable[[], Awaitable[Content]]:
        path, _, name = place.rpartition(":") if ".py:" in place else (place, "", "content")
        file = plugins.locate(path, base=root)
        return guarded(plugins.load(str(file), base=root, name=name), call=alone, file=file, what=name)

    return from_settings(
        wiring.app.config.agent.context,
        read=partial(read_file, root=root),
        run=partial(run_command, root=root, env=wiring.app.env),
        load=load,
        timeline=wiring.ground.timeline_messages,
    )
