"""Builds sessions from a configuration: the only module that knows all the parts."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ra.config.discovered import DiscoveredFiles
from ra.config.load import Resolved
from ra.config.options import Options
from ra.config.toolboxes import Toolboxes
from ra.context.compose import prompt, rotation
from ra.context.compose.strategy import StoredStrategy, Strategy, TaskOrigin, TimelineStrategy
from ra.context.settings import STRATEGIES
from ra.core.errors import ConfigError, NoModel, UsageError, UserError
from ra.core.facts import Configured, Said
from ra.core.messages import Message
from ra.core.model import ModelInfo, Section
from ra.core.ports import Provider, Timeline
from ra.costs.prices import Prices
from ra.middleware.hooks import Hooks
from ra.middleware.settings import MiddlewareSettings
from ra.providers import account, catalog, connect
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName, ProviderSettings
from ra.providers.vendors import IN_PROCESS
from ra.session.budget import Limits, need_price
from ra.session.log import EventLog, LogFile, Sink
from ra.session.prepare import ConfiguredResolvers, Prompts
from ra.session.recipe import Notices, ProviderFactory, Recipe, Services
from ra.session.session import Session
from ra.session.settings import check_strategy
from ra.system import plugins
from ra.system.environment import clean
from ra.timeline.in_memory import MemoryTimeline
from ra.timeline.sqlite import SqliteStore
from ra.timeline.store import Store, StoredTimeline
from ra.tools.tool import Tool

if TYPE_CHECKING:
    from ra.context.compose.layered import LayeredStrategy
    from ra.session.agent_file import AgentFile, Handler
    from ra.session.telemetry import Telemetry
    from ra.timeline.spending import DailySpending
    from ra.tools.mcp.servers import Servers

SOURCES = "sources"  # the strategy of a configuration with agent.context.sources
UNKNOWN: ProviderName = "scripted"  # the provider of a session in which no configured model has answered


def open_store(resolved: Resolved, clock: Callable[[], float] = time.time) -> Store:
    address = resolved.config.app.store
    if address is None:
        return SqliteStore(resolved.data_dir / "ra.db", clock=clock)
    from ra.timeline import opening  # start-up time: the default store does not need it

    return opening.open_store(resolved.data_dir, address, clock=clock)


def open_prices(resolved: Resolved) -> Prices:
    return Prices(resolved.config.app.prices, resolved.data_dir / "prices.json")


class App:
    """Opens the sessions of one configuration. What they share is created once, on first use."""

    def __init__(
        self,
        resolved: Resolved,
        options: Options,
        *,
        env: Mapping[str, str],
        warn: Callable[[str], None] = print,
        clock: Callable[[], float] = time.time,
        handler: "Handler | None" = None,
        log: Sink | None = None,
        providers: ProviderFactory | None = None,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.resolved = resolved
        self.config = resolved.config
        self.options = options
        self.env = env
        self.clock = clock
        self.notices = Notices(warn)
        self.files = DiscoveredFiles(resolved, env)
        self.store = open_store(resolved, clock)
        self.prices = open_prices(resolved)
        self.worker = plugins.Worker()
        self._handler = handler
        self._tools = tuple(tools)  # defined by the program that uses the library
        self._log = log
        self._providers = providers or Providers(resolved, env)

    # --- sessions ---

    def open(
        self,
        *,
        resume: str | None = None,
        latest: bool = False,
        fork: bool = False,
        ephemeral: bool = False,
        history: Sequence[Message] = (),
    ) -> Session:
        """Open a new session, or resume a stored one. An ephemeral session lives in memory only.

        `history` is a conversation that a new session continues.
        """
        return self.session(self.timeline(resume, latest=latest, fork=fork, ephemeral=ephemeral, history=history))

    def session(self, timeline: Timeline, *, recipe: Recipe | None = None, strategy: str | None = None) -> Session:
        """The session of a timeline. `strategy` is the one that a served task asked for."""
        recipe = recipe or (self.recipe if strategy is None else self.recipe_with(strategy))
        return Session(timeline, recipe, self.services, task=self._task(timeline), agent_file=self.agent_file)

    def stored(self, session: str | None = None, *, write: bool = False, hooks: bool = True) -> Session:
        """A stored session, by default the project's latest, to inspect or to change without a model. Needs no key.

        Its recipe is that of its last request, unless a flag names another model.
        """
        session_id = session or self.store.latest(str(self.resolved.root))
        if session_id is None:
            raise UserError('This project has no session yet. Start one: ra "your question"')
        timeline = self.store.open(session_id, write=write)
        services = self.services if hooks else self._services(MiddlewareSettings())
        return Session(timeline, self._stored_recipe(timeline), services, task=self._task(timeline))

    def timeline(
        self,
        resume: str | None = None,
        *,
        latest: bool = False,
        fork: bool = False,
        ephemeral: bool = False,
        history: Sequence[Message] = (),
    ) -> Timeline:
        project = str(self.resolved.root)
        if resume is None and latest:
            resume = self.store.latest(project)
            if resume is None:
                raise UserError('This project has no session to continue. Start one: ra "your question"')
        if fork and resume is None:
            raise UsageError("--fork needs -c or --resume ID: it copies that session and continues in the copy.")
        if resume is None:
            timeline = MemoryTimeline(clock=self.clock) if ephemeral else self.store.create(project)
            if history:
                timeline.append(*map(Said, history))
            return timeline
        if ephemeral:
            stored = self.store.open(resume, write=False)
            return MemoryTimeline(stored.session, events=stored.events(), texts=stored.kept, clock=self.clock)
        return self.store.open(self.store.fork(resume) if fork else resume, write=True)

    def check(self) -> None:
        """Warn about settings that have no effect. Raises UserError for what must be fixed before the first prompt."""
        recipe, agent = self.recipe, self.config.agent
        if recipe.provider == "local" and agent.model is None:
            from ra.providers import local

            if notice := local.notice(self.resolved.data_dir):
                self.notices.warn(notice)
        if agent.thinking != "off" and recipe.info.thinking == "none":
            self.notices.warn(
                f"agent.thinking: {agent.thinking} has no effect: {recipe.model} is not known to support thinking."
            )
        budgets = {"maxCost": recipe.limits.dollars, f"agents.{self.options.agent}.budget": self.spending}
        for key in [key for key, budget in budgets.items() if budget]:
            need_price(key, recipe.model, known=self.prices.row(recipe.model, recipe.provider) is not None)

    def warm_up(self) -> None:
        """Load what the first answer needs. A server does this at start; the command line while the model thinks."""
        from ra.context.tokens import Estimator

        Estimator(1.0).text("Hello, world.")
        self.prices.row(self.recipe.model, self.recipe.provider)
        for name in ("ra.providers.transports.http", "ra.context.compose.layered", "ra.tools.walk"):
            import_module(name)

    def _task(self, timeline: Timeline) -> TaskOrigin:
        return TaskOrigin(self.options.agent or "ra", self.options.channel, timeline.session, local=True)

    # --- the recipe ---

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of the configuration. Raises NoModel when no provider is set up."""
        return self.recipe_with(None)

    def recipe_with(self, strategy: str | None) -> Recipe:
        """The recipe of the configuration, with the strategy that a task asked for."""
        provider, model = self.chosen_model
        info = connect.info(provider, model)
        name = choose_strategy(self, strategy)
        return self._recipe(provider, model, info, self._strategy(name, provider, model, info))

    def _recipe(self, provider: ProviderName, model: str, info: ModelInfo, strategy: Strategy) -> Recipe:
        agent, session, compaction = self.config.agent, self.config.session, self.config.agent.compaction
        if compaction.model:
            compaction = msgspec.structs.replace(compaction, model=self._beside(compaction.model, provider))
        limits = rotation.limits(session, strategy.name)
        threshold = session.tier_two_threshold_tokens or limits.tokens
        if threshold is None and strategy.name == "planner":
            threshold = rotation.TIER_TWO_TOKENS
        has_tools = self.options.tools and info.tools
        system = prompt.system(agent.system_prompt, tools=has_tools)
        return Recipe(
            provider=provider,
            model=model,
            info=info,
            strategy=strategy,
            sections=(
                system,
                *self.discovered,
                *((*self.files.skill_sections(), *(self.mcp.sections() if self.mcp else ())) if has_tools else ()),
            ),
            thinking=agent.thinking,
            thinking_cap=agent.thinking_budget_cap,
            limits=Limits(agent.max_iterations, agent.max_token_budget, agent.max_cost, agent.max_duration),
            compaction=compaction,
            cache=agent.cache,
            must_keep=agent.context.must_keep,
            parallel_calls=agent.parallel_tool_calls,
            rotation=limits,
            fallback_rotation=rotation.limits(session, "layered") if strategy.name == "planner" else None,
            handover_tokens=session.layers.history,
            tier_two=threshold,
        )

    def _stored_recipe(self, timeline: StoredTimeline) -> Recipe:
        """The recipe of a session's last request; the configuration's, if a flag names a model."""
        if self._by_flag("model"):
            return self.recipe
        configured = timeline.configured()
        if configured is None:
            try:
                return self.recipe
            except UserError:  # no provider is set up, and looking at a session needs none
                configured = Configured(UNKNOWN, "", "timeline")
        provider = configured.provider or UNKNOWN
        info = connect.info(provider, configured.model)
        return self._recipe(provider, configured.model, info, StoredStrategy(configured))

    @cached_property
    def chosen_model(self) -> tuple[ProviderName, str]:
        """The provider and model that answer. Raises NoModel, and UnknownModel for a near miss of a known name."""
        agent, providers = self.config.agent, self.config.app.providers
        if not agent.model:
            provider = connect.choose(self.env, agent.provider, providers, have_local=self._have_local)
            settings = providers.get(provider, ProviderSettings())
            return provider, connect.model_for(provider, None, settings, self.env)
        from ra.providers import model_choice  # start-up time: most prompts go to the default model

        choice = model_choice.named(agent.model)
        if agent.provider is None and choice.provider in IN_PROCESS:
            return choice.provider, choice.model  # a model file needs no key
        provider = self._provider_in_force(choice.provider)
        asked_for = agent.provider is not None and (
            self._by_flag("provider")
            or not self._by_flag("model")
            or model_choice.serves_any(provider, providers, self.env)
        )
        choice = model_choice.choose(agent.model, provider, providers, self.env, asked_for=asked_for)
        return choice.provider or provider, choice.model

    def _provider_in_force(self, of_model: ProviderName | None) -> ProviderName:
        """The provider for a model whose name does not decide it. It needs a key only if something will be sent."""
        agent, providers = self.config.agent, self.config.app.providers
        try:
            return connect.choose(self.env, agent.provider, providers, have_local=self._have_local)
        except NoModel:
            if self.options.sends or of_model is None:
                raise
            return of_model

    def _by_flag(self, key: str) -> bool:
        """Whether the value comes from a flag of this run instead of a file."""
        return str(self.resolved.origins.get(("agent", key), "")).startswith("-")

    def _have_local(self) -> bool:
        from ra.providers import local

        return local.available(self.resolved.data_dir)

    # --- strategies ---

    def _strategy(self, name: str, provider: ProviderName, model: str, info: ModelInfo) -> Strategy:
        """Create a strategy. Imports are local for start-up time: most runs use `timeline`."""
        root = self.resolved.root
        replay = TimelineStrategy(self.environment if self.options.tools and info.tools else None)
        if name == "timeline":
            return replay
        if name == "layered":
            return self._layered()
        if name == "planner":
            from ra.context.compose.memory import ProjectMemory
            from ra.context.compose.planner import PlannerStrategy
            from ra.session.planner_model import PlannerModel

            small = PlannerModel(self.services.providers, provider, self._planning(provider, model), answering=model)
            memory = ProjectMemory(self.store, str(root))
            debug = self.env.get("AGENTX_PLANNER_DEBUG") == "1"
            settings, logged = self.config.session.planner, self._log is not None
            return PlannerStrategy(self._layered(), small, memory, settings, debug=debug, logged=logged)
        if name in STRATEGIES:  # it needs only the session, and the timeline strategy to fall back to
            other: Strategy = import_module(f"ra.context.compose.{name}").strategy(replay)
            return other
        from ra.context.compose.composed import ConfiguredSources, FileStrategy

        if name == SOURCES:
            return ConfiguredSources(self.config.agent.context, root, self.env)
        return FileStrategy(name, root=root, worker=self.worker, default=replay)

    def _planning(self, provider: ProviderName, model: str) -> str:
        """The planner's model: the user's choice, else the provider's cheapest; the agent's on an own server."""
        if wanted := self.config.session.planner.model:
            return self._beside(wanted, provider)
        settings = self.config.app.providers.get(provider, ProviderSettings())
        own_server = provider in IN_PROCESS or connect.own_server(provider, settings, self.env)
        return model if own_server else catalog.cheapest_model(provider)

    def _beside(self, name: str, provider: ProviderName) -> str:
        """The id of a model that serves this provider's agent in a second role, such as summaries."""
        return self.services.providers.named(name, provider)[1]

    def _layered(self) -> "LayeredStrategy":
        from ra.context.compose.layered import LayeredStrategy, Surroundings

        config = self.config
        for folder in config.session.wiki.dirs:
            if not Path(folder).is_dir():
                self.notices.warn(f"session.wiki.dirs: there is no folder {folder}; make it, or name the right one.")
        surroundings = Surroundings(
            self.resolved.cwd,
            self.resolved.root,
            clock=self.clock,
            agents={name: str(agent.get("description", "")) for name, agent in config.agents.items()},
            servers=tuple(server.name for server in config.agent.mcp_servers),
            wiki_dirs=config.session.wiki.dirs,
        )
        return LayeredStrategy(config.session.layers, surroundings)

    # --- the services ---

    @cached_property
    def services(self) -> Services:
        return self._services(self.config.agent.middleware)

    def _services(self, middleware: MiddlewareSettings) -> Services:
        resolved = self.resolved
        log = EventLog(LogFile(resolved.data_dir / "ra.log", clock=self.clock), level=self.config.app.log_level)
        # Scripts get no keys in their environment.
        hooks = Hooks(middleware, base=resolved.root, load=plugins.load, call=self.worker.call, env=clean(self.env))
        return Services(
            store=self.store,
            providers=self._providers,
            prices=self.prices,
            hooks=hooks,
            toolboxes=Toolboxes(resolved, self.options, self.env, self.notices, self.mcp, self.files, self._tools),
            prompts=self.prompts,
            environment=self.environment,
            instructions=self.files,
            notices=self.notices,
            log=log.also_to(self._log) if self._log else log,
            clock=self.clock,
            spending=self.spending,
            telemetry=self.telemetry,
        )

    @cached_property
    def telemetry(self) -> "Telemetry | None":
        if not self.env.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
            return None
        from ra.session.telemetry import telemetry  # start-up time: only for those who export

        return telemetry(self.env)

    @cached_property
    def spending(self) -> "DailySpending | None":
        """What a named agent with a budget has spent today. Kept in the store's database, else in the data folder."""
        budget = self.config.agents.get(self.options.agent, {}).get("budget")
        if not budget:
            return None
        from ra.session.settings import BudgetSettings
        from ra.timeline.spending import DailyLimits, DailySpending, PostgresSpending, SpendingDatabase, SqliteSpending

        settings = msgspec.convert(budget, BudgetSettings)
        limits = DailyLimits(settings.dollars, settings.per_channel, settings.per_sender)
        address = self.config.app.store or ""
        shared = address.startswith(("postgresql://", "postgres://"))
        file = self.resolved.data_dir / "spending.db"
        database: SpendingDatabase = PostgresSpending(address) if shared else SqliteSpending(file)
        return DailySpending(database, self.options.agent, limits, clock=self.clock)

    @cached_property
    def prompts(self) -> Prompts:
        return Prompts(
            self.resolved.root,
            self.resolved.cwd,
            ConfiguredResolvers(self.config.agent.context.resolvers, self.resolved.root, self.worker, self.mcp),
            self.files,
        )

    @cached_property
    def environment(self) -> prompt.Environment:
        return prompt.Environment(self.resolved.cwd, self.resolved.root)

    @cached_property
    def discovered(self) -> tuple[Section, ...]:
        """The user's and the project's instruction files."""
        for note in self.files.first_notes:
            self.notices.warn(note)
        return self.files.instructions.sections

    @cached_property
    def mcp(self) -> "Servers | None":
        if not any(server.enabled for server in self.config.agent.mcp_servers):
            return None
        from ra.config.mcp import mcp_servers  # start-up time: it imports threads and more

        return mcp_servers(self.resolved, self.env, self.notices, self.config.agent.mcp_servers)

    @cached_property
    def agent_file(self) -> "AgentFile | None":
        """The handler of an agent file, of a named agent or of the program that uses the library."""
        file = self.options.agent_file or self.config.agents.get(self.options.agent, {}).get("handler")
        if self._handler is None and not file:
            return None
        from ra.session.agent_file import AgentFile

        if self._handler is not None:
            return AgentFile(self._handler)
        path = plugins.locate(str(file), base=self.resolved.cwd)
        handler = plugins.load(str(path), base=self.resolved.cwd, name="handler")
        # It gets its own thread, so that an abandoned hook cannot block the handler.
        return AgentFile(handler, plugins.Worker(), path)


def choose_strategy(app: App, wanted: str | None) -> str:
    """Task or flag > agent > session > the default: `layered` for served tasks, `timeline` on the command line.

    `agent.context.sources` replaces the default strategy, and excludes any other that was named.
    """
    name = wanted or app.config.session.context_strategy
    context = app.config.agent.context
    composed = bool(context.sources) or context.source_budget is not None
    if name is not None:
        check_strategy(name)
        if composed and name != "timeline":
            raise ConfigError(
                f"contextStrategy is {name!r}, but agent.context.sources already decides what the model sees. "
                "Remove one of the two."
            )
    if composed:
        return SOURCES
    return name or ("layered" if app.options.served else "timeline")


class Providers:
    """Connects providers with the settings of the configuration."""

    def __init__(self, resolved: Resolved, env: Mapping[str, str]) -> None:
        self._resolved = resolved
        self._env = env

    def connect(self, provider: ProviderName, model: str, *, retries: Retries | None = None) -> Provider:
        config = self._resolved.config
        return connect.connect(
            provider,
            model,
            self._settings(provider),
            self._env,
            transport=config.agent.transport,
            data_dir=self._resolved.data_dir,
            retries=retries,
        )

    def info(self, provider: ProviderName, model: str) -> ModelInfo:
        return connect.info(provider, model)

    def named(self, model: str, in_force: ProviderName) -> tuple[ProviderName, str]:
        from ra.providers import model_choice  # start-up time, as above

        config = self._resolved.config
        asked_for = config.agent.provider is not None or in_force in (*model_choice.ANY_NAME, *IN_PROCESS)
        choice = model_choice.choose(model, in_force, config.app.providers, self._env, asked_for=asked_for)
        return choice.provider or in_force, choice.model

    def address(self, provider: ProviderName) -> str:
        return account.address(provider, self._settings(provider), self._env)

    def _settings(self, provider: ProviderName) -> ProviderSettings:
        return self._resolved.config.app.providers.get(provider, ProviderSettings())
