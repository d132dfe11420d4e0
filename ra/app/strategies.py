"""Which strategy does a session have, and what is it wired to?"""

from functools import partial
from typing import TYPE_CHECKING

from ra import plugins
from ra.agent.compose import Sections, Strategy, replaying
from ra.agent.settings import STRATEGIES, check_strategy
from ra.core.errors import ConfigError

if TYPE_CHECKING:
    from ra.agent.strategies import Ground
    from ra.app import App


def choose(app: "App", wanted: str | None) -> str:
    """task or flag > agent > session > the default: `layered` for served tasks, `timeline` on the command line.

    Sources are a strategy of their own: they take the place of a default, and get along with no other that was named.
    """
    name = wanted or app.config.session.context_strategy
    sources = bool(app.config.agent.context.sources) or app.config.agent.context.source_budget is not None
    if name is not None:
        check_strategy(name, place="contextStrategy")
        if sources and name != "timeline":
            raise ConfigError(
                f"contextStrategy is {name!r}, and agent.context.sources says what the prompt is composed of; "
                "leave one of the two out."
            )
    if sources:
        return "sources"
    return name or ("layered" if app.options.served else "timeline")


def wire(app: "App", name: str, ground: "Ground", *, noticed: Sections) -> Strategy:
    """The strategy itself. What it needs is loaded only now: most runs replay and need nothing."""
    default = replaying(ground.sections, noticed)
    if name == "timeline":
        return default
    from ra.agent.strategies import filed, guarded, sourced

    if name == "sources":
        return sourced(ground, *_sources(app, ground))
    if name not in STRATEGIES:
        file = plugins.locate(name, base=app.resolved.root)
        function = plugins.load(str(file), base=app.resolved.root, name="on_context_build")
        return filed(ground, guarded(function, call=app.worker.call, file=file, what="on_context_build"), default)
    raise ConfigError(f"contextStrategy {name!r} is not wired.")
