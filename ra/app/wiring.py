"""Which strategy does a session have, and what goes with it? Rotation, log, and the handler of an agent file."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from ra import plugins
from ra.agent import rotation
from ra.agent.compose import Composed, Composer, Sections, Strategy, replaying
from ra.agent.ground import Ground
from ra.agent.loop import Loop
from ra.agent.observe import LEVELS, Line, LogFile, Observer
from ra.agent.settings import check_strategy
from ra.agent.turn import Turn
from ra.app import strategies
from ra.context import window
from ra.context.strategies.channels import Task
from ra.core.errors import ConfigError
from ra.core.facts import Rotated
from ra.core.messages import Message
from ra.providers import connect

if TYPE_CHECKING:
    from ra.agent.handler import Handling
    from ra.app import App


def choose_strategy(app: "App", wanted: str | None) -> str:
    """task or flag > agent > session > the default: `layered` for served tasks, `timeline` on the command line.

    Sources are a strategy of their own: they take the place of a default, and get along with no other that was named.
    """
    name = wanted or app.config.session.context_strategy
    context = app.config.agent.context
    composed = bool(context.sources) or context.source_budget is not None
    if name is not None:
        check_strategy(name)
        if composed and name != "timeline":
            raise ConfigError(
                f"contextStrategy is {name!r}, and agent.context.sources says what the prompt is composed of; "
                "leave one of the two out."
            )
    if composed:
        return strategies.SOURCES
    return name or ("layered" if app.options.served else "timeline")


def log_to(app: "App") -> Callable[[Line], None]:
    """The log file of the data directory, for lines that are important enough."""
    file = LogFile(app.resolved.data_dir / "ra.log", clock=app.clock)
    least = LEVELS.index(app.config.app.log_level)

    def sink(line: Line) -> None:
        if LEVELS.index(line.level) >= least:
            file(line)

    return sink


class Wiring:
    """The strategy of one session, and what goes with it. The modules of `ra.app.strategies` are made from it."""

    def __init__(self, app: "App", name: str) -> None:
        self.app = app
        self.name = name
        self.observer = Observer(app.log)
        self.segment = rotation.Segment()
        self.limits = rotation.limits(app.config.session, name)
        self.closing: list[Callable[[], Awaitable[None]]] = []  # what the strategy must let go of at the end

    def attach(self, ground: Ground, turn: Turn) -> None:
        """What exists only when the journal has been read, which this object watches from its first fact on."""
        self.ground = ground
        self.turn = turn
        options = self.app.options
        self.observer.task = Task(options.agent or "ra", options.channel, ground.journal.session, local=True)

    def strategy(self, noticed: Sections) -> Strategy:
        ground = self.ground
        return strategies.make(self, replaying(lambda: ground.sections(), noticed))  # a handler may put others there

    # --- agent files ---

    def handling(self, loop: Loop, compose: Composer) -> "Handling | None":
        """What runs the handler of an agent file, of a named agent or of the program that uses the library."""
        app = self.app
        file = app.options.agent_file or app.config.agents.get(app.options.agent, {}).get("handler")
        if app.handler is None and not file:
            return None
        if app.options.dry_run:
            app.warn("an agent file says what is sent when it runs, and it is not run; this is the request without it.")
        from ra.agent.handler import Handling

        common = partial(
            Handling,
            loop=loop,
            ground=self.ground,
            compose=compose,
            task=lambda: self.observer.task,
            use_model=partial(self._use_model, compose),
        )
        if app.handler is not None:
            return common(app.handler)
        path = plugins.locate(str(file), base=app.resolved.cwd)
        handler = plugins.load(str(path), base=app.resolved.cwd, name="handler")
        # A thread of its own: a hook that is left behind must not take the handler with it.
        return common(handler, call=plugins.Worker().call, file=path)

    def _use_model(self, compose: Composer, model: str) -> None:
        app, engine = self.app, self.ground.engine
        learned = app.store.learned(model)
        engine.info = connect.info(app.provider_name, model)
        configured = app.config.agent.compaction.context_window
        engine.window = window.resolve(configured, learned.window, engine.info.window)
        compose.model = model

    # --- what goes with it ---

    def rotate(self) -> Rotated | None:
        """The fact that begins a new segment, when one is due."""
        reason = rotation.due(self.segment, self.limits, now=self.app.clock())
        if reason is None:
            return None
        engine, segment = self.ground.engine, self.segment
        detail = {
            "stale": f"— idle for {(self.app.clock() - (segment.heard or 0)) / 60:.0f} minutes",
            "tier-2": f"— prior turn had {segment.last.total_input} total input tokens",
            "max-turns": f"— {segment.turns} turns",
        }[reason]
        if not self.app.options.dry_run:
            self.observer.rotated(reason, detail)
        return rotation.rotate(
            engine.view,
            reason,
            segment,
            history=self.app.config.session.layers.history,
            estimator=engine.estimator,
        )

    def composed(self, composed: Composed, message: Message) -> None:
        system = sum(len(section.content) for section in composed.sections)
        others = [one.text for one in composed.base or () if one is not message]
        history = sum(map(len, others)) + sum(len(section.content) for section in composed.noticed)
        self.observer.composed(history=history, system=system, message=len(message.text))

    def finished(self) -> None:
        """A run is over: did its last call reach the second tier?"""
        threshold = self.app.config.session.tier_two_threshold_tokens or self.limits.tokens
        if threshold is None and self.name == "planner":
            threshold = rotation.TIER_TWO_TOKENS
        if threshold is not None:
            self.observer.billed(self.segment.last, threshold)

    async def close(self) -> None:
        for close in self.closing:
            await close()
