"""Which strategy does a session have, and what is it wired to? Its layers, its plans, its rotation and its log."""

import platform
from collections.abc import Awaitable, Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ra import plugins
from ra.agent import prompt, rotation
from ra.agent.compose import Composed, Composer, Sections, Strategy, replaying
from ra.agent.ground import Ground
from ra.agent.loop import Loop
from ra.agent.observe import LEVELS, Line, LogFile, Observer
from ra.agent.settings import check_strategy
from ra.agent.turn import Turn
from ra.context import window
from ra.context.settings import STRATEGIES
from ra.context.strategies.channels import Task
from ra.core.errors import ConfigError
from ra.core.facts import Rotated
from ra.core.messages import Message
from ra.core.ports import Provider
from ra.providers import catalog, connect
from ra.providers.retry import Retries
from ra.providers.vendors import IN_PROCESS

if TYPE_CHECKING:
    from ra.agent.handler import Handling
    from ra.agent.planner import Planner
    from ra.app import App
    from ra.context.sources import Content, Source
    from ra.context.strategies.layered import World


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
        return "sources"
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
    """The strategy of one session, and what goes with it."""

    def __init__(self, app: "App", name: str) -> None:
        self.app = app
        self.name = name
        self.observer = Observer(app.log)
        self.segment = rotation.Segment()
        self.limits = rotation.limits(app.config.session, name)
        self._planner: Planner | None = None

    def attach(self, ground: Ground, turn: Turn) -> None:
        """What exists only when the journal has been read, which this object watches from its first fact on."""
        self.ground = ground
        self.turn = turn
        options = self.app.options
        self.observer.task = Task(options.agent or "ra", options.channel, ground.journal.session, local=True)

    # --- the strategy ---

    def strategy(self, noticed: Sections) -> Strategy:
        """What it needs is loaded only now: most runs replay, and need nothing."""
        ground = self.ground
        default = replaying(lambda: ground.sections(), noticed)  # a handler may put others in their place
        if self.name == "timeline":
            return default
        from ra.agent.user_strategies import filed, guarded, sourced

        if self.name == "sources":
            budget = self.app.config.agent.context.source_budget
            return sourced(ground, budget or 0, self._sources(ground))
        if self.name not in STRATEGIES:
            root, call = self.app.resolved.root, self.app.worker.call
            file = plugins.locate(self.name, base=root)
            function = plugins.load(str(file), base=root, name="on_context_build")
            return filed(ground, guarded(function, call=call, file=file, what="on_context_build"), default)
        return self._layered(ground)

    def _layered(self, ground: Ground) -> Strategy:
        from ra.agent.layering import Layers

        session = self.app.config.session
        layers = Layers(ground, session.layers, self.observer, world=self._world)
        if self.name == "layered":
            return layers.layered
        if self.app.options.dry_run:
            self.app.warn("a plan would have to be asked for; this is the turn that follows when there is none.")
            return layers.layered
        from ra.agent.planner import Planner, planning
        from ra.agent.project_memory import ProjectMemory

        self._planner = Planner(
            self._small, self._small_model(), session.planner, charge=partial(self.turn.charge, purpose="planner")
        )
        journal = ground.journal
        memory = ProjectMemory(
            self.app.store, str(self.app.resolved.root), journal.session, current=lambda: ground.prompt.text
        )
        return planning(layers, self._planner, memory, debug=self._debug)

    def _sources(self, ground: Ground) -> "dict[str, Source]":
        from ra.agent.sourcing import read_file, run_command
        from ra.agent.user_strategies import alone, guarded
        from ra.context.sources import from_settings

        root = self.app.resolved.root

        def load(place: str) -> "Callable[[], Awaitable[Content]]":
            path, _, name = place.rpartition(":") if ".py:" in place else (place, "", "content")
            file = plugins.locate(path, base=root)
            return guarded(plugins.load(str(file), base=root, name=name), call=alone, file=file, what=name)

        return from_settings(
            self.app.config.agent.context,
            read=partial(read_file, root=root),
            run=partial(run_command, root=root, env=self.app.env),
            load=load,
            timeline=ground.timeline_messages,
        )

    def _world(self) -> "World":
        from ra.context.strategies.layered import World

        resolved, config = self.app.resolved, self.app.config
        return World(
            root=str(resolved.root),
            cwd=str(resolved.cwd),
            branch=prompt.git_branch(resolved.root),
            date=date.fromtimestamp(self.app.clock()).isoformat(),
            system=platform.system(),
            tools=tuple(spec.name for spec in self.ground.tools),
            agents={
                name: str(agent.get("description", ""))
                for name, agent in config.agents.items()
                if name != self.observer.task.agent
            },
            servers=tuple(server.name for server in config.agent.mcp_servers),
            wiki=self._has_articles(),
        )

    def _has_articles(self) -> bool:
        dirs = self.app.config.session.wiki.dirs
        if not dirs:
            return False
        from ra.context.wiki import has_articles

        return has_articles([Path(folder) for folder in dirs])

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

    # --- the planner ---

    def _small_model(self) -> str:
        """The user's choice, else the provider's cheapest; a server of one's own may know one model only."""
        app = self.app
        if named := app.config.session.planner.model:
            return named
        elsewhere = app.provider_settings.base_url or app.env.get("OPENAI_BASE_URL", "").strip()
        own = self._in_process or (app.provider_name == "openai-chat" and elsewhere)
        return app.model if own else catalog.cheapest_model(app.provider_name)

    @property
    def _in_process(self) -> bool:
        return self.app.provider_name in IN_PROCESS

    def _small(self) -> Provider:
        """A connection that does not try again; a model that runs in this process is not loaded twice."""
        return self.turn.provider if self._in_process else self.app.connect(retries=Retries(tries=1))

    def _debug(self, why: str) -> None:
        if self.app.env.get("AGENTX_PLANNER_DEBUG") == "1":
            self.observer.unplanned(why)
            self.app.warn(f"planner failed, layered for this turn: {why}")

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
        if self._planner is not None and not self._in_process:
            await self._planner.close()
