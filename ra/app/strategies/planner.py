"""What is `planner` wired to? A small model that says what each turn needs, and the memory of the project."""

from functools import partial

from ra.agent.compose import Strategy
from ra.agent.planner import Planner, planning
from ra.agent.project_memory import ProjectMemory
from ra.app import App
from ra.app.strategies.layered import layers
from ra.app.wiring import Wiring
from ra.core.ports import Provider
from ra.providers import catalog, connect
from ra.providers.retry import Retries
from ra.providers.vendors import IN_PROCESS


def strategy(wiring: Wiring, default: Strategy) -> Strategy:
    app, ground = wiring.app, wiring.ground
    if app.options.dry_run:
        app.warn("a plan would have to be asked for; this is the turn that follows when there is none.")
        return layers(wiring).layered
    charge = partial(wiring.turn.charge, purpose="planner")
    planner = Planner(lambda: _connected(wiring), _model(app), app.config.session.planner, charge=charge)
    if not _in_process(app):
        wiring.closing.append(planner.close)
    memory = ProjectMemory(
        app.store, str(app.resolved.root), ground.journal.session, current=lambda: ground.prompt.text
    )
    return planning(layers(wiring), planner, memory, debug=partial(_debug, wiring))


def _model(app: App) -> str:
    """The user's choice, else the provider's cheapest; a server of one's own may know one model only."""
    if named := app.config.session.planner.model:
        return named
    own = _in_process(app) or connect.own_server(app.provider_name, app.provider_settings, app.env)
    return app.model if own else catalog.cheapest_model(app.provider_name)


def _connected(wiring: Wiring) -> Provider:
    """A connection that does not try again; a model that runs in this process is not loaded twice."""
    return wiring.turn.provider if _in_process(wiring.app) else wiring.app.connect(retries=Retries(tries=1))


def _in_process(app: App) -> bool:
    return app.provider_name in IN_PROCESS


def _debug(wiring: Wiring, why: str) -> None:
    if wiring.app.env.get("AGENTX_PLANNER_DEBUG") == "1":
        wiring.observer.unplanned(why)
        wiring.app.warn(f"planner failed, layered for this turn: {why}")
