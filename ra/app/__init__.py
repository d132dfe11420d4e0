"""Who is wired to whom? The only place that knows concrete classes."""

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ra import plugins
from ra.agent import prompt
from ra.agent.compose import Composer
from ra.agent.ground import Ground
from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.limits import Limits, need_price
from ra.agent.loop import Loop
from ra.agent.prepare import Prepared, prepare
from ra.agent.session import Session
from ra.agent.turn import Turn
from ra.app import parts, strategies
from ra.app.parts import Options, open_prices, open_store
from ra.config.load import Resolved
from ra.context import window
from ra.context.engine import Engine
from ra.context.tokens import Estimator
from ra.core.errors import UsageError, UserError
from ra.core.model import Request, Section, Usage
from ra.core.ports import Provider, Timeline
from ra.middleware.hooks import Hooks
from ra.middleware.views import Loop as LoopView
from ra.middleware.views import Spending
from ra.providers import connect
from ra.providers.retry import Retries
from ra.providers.settings import ProviderSettings
from ra.resolvers.resolver import AskOutside
from ra.timeline import folds
from ra.timeline.memory import MemoryTimeline
from ra.timeline.store import Learned
from ra.tools.builtin.agent import RunAgent
from ra.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from ra.agent.handler import Handler
    from ra.costs.economy import Economy

__all__ = ["App", "Options", "build", "open_prices", "open_store"]


class App:
    """Everything that outlives a session: configuration, store, prices, and how to build the rest."""

    def __init__(
        self,
        resolved: Resolved,
        options: Options,
        *,
        env: Mapping[str, str],
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
        handler: "Handler | None" = None,
    ) -> None:
        self.resolved = resolved
        self.config = resolved.config
        self.options = options
        self.env = env
        self.warn = warn
        self.clock = clock
        self.handler = handler
        self.store = open_store(resolved, clock)
        self.prices = open_prices(resolved)
        agent, app = self.config.agent, self.config.app
        self.provider_name = connect.choose(env, agent.provider, app.providers, have_local=self._have_local)
        self.provider_settings = app.providers.get(self.provider_name, ProviderSettings())
        self.model = connect.model_for(self.provider_name, agent.model, self.provider_settings, env)
        self.info = connect.info(self.provider_name, self.model)
        self.limits = Limits(agent.max_iterations, agent.max_token_budget, agent.max_cost, agent.max_duration)
        self.discovered = parts.discovered(resolved, warn)
        self.worker = plugins.Worker()
        self.log = strategies.log_to(self)
        self.strategy = strategies.choose(self, None)
        if self.provider_name == "local":
            from ra.providers import local

            if notice := local.notice(resolved.data_dir) if agent.model is None else "":
                warn(notice)
        if self.limits.dollars:
            row = self.prices.row(self.model, self.provider_name)
            need_price(self.limits, self.model, known=row is not None)

    # --- input ---

    async def prepare(
        self, text: str, *, piped: str = "", files: Sequence[Path] = (), ask_outside: AskOutside | None = None
    ) -> Prepared:
        return await prepare(
            text,
            piped=piped,
            files=files,
            root=self.resolved.root,
            cwd=self.resolved.cwd,
            resolvers=lambda: parts.resolvers(self.resolved, self.worker.call),
            always=any(one.path for one in self.config.agent.context.resolvers),
            ask_outside=ask_outside,
        )

    # --- sessions ---

    def open(
        self, *, resume: str | None = None, latest: bool = False, fork: bool = False, ephemeral: bool = False
    ) -> Session:
        return self.session(self._timeline(resume, latest=latest, fork=fork, ephemeral=ephemeral))

    def session(self, timeline: Timeline, *, strategy: str | None = None, nested: bool = False) -> Session:
        """Wire a session to its timeline. What a crash left open is closed first.

        `strategy` is the one that this task asked for; `nested`: it is a sub-agent's.
        """
        agent = self.config.agent
        learned = self._learned()
        estimator = Estimator(learned.factor or self.info.tokens_per_o200k)
        provider = self.connect()
        engine = Engine(
            agent.compaction,
            estimator=estimator,
            window=window.resolve(agent.compaction.context_window, learned.window, self.info.window),
            info=self.info,
            must_keep=agent.context.must_keep,
            summarize=lambda request: parts.whole(provider, self._for_summary(request)),
            summary_info=connect.info(self.provider_name, agent.compaction.model or self.model),
            price=self.price,
            economy=self._economy(),
            cache_key=timeline.session,
        )
        name = "timeline" if nested else strategies.choose(self, strategy)
        wiring = strategies.Wiring(self, name)
        watching = [engine.apply, wiring.segment.apply]
        journal = Journal(timeline, watching, in_memory=_in_memory)
        journal.record(*folds.repair(timeline.events()))
        toolbox = self._toolbox(
            journal, engine, sub_agent=None if nested else lambda task: parts.delegate(self, task, loop)
        )
        hooks = Hooks(agent.middleware, base=self.resolved.root, load=plugins.load, call=self.worker.call, env=self.env)
        hooked = Hooked(hooks, journal, lambda: self._look(engine, turn))
        turn = Turn(
            journal=journal,
            engine=engine,
            provider=provider,
            price=self.price,
            hooked=hooked,
            level=agent.thinking,
            cap=agent.thinking_budget_cap,
            learn=lambda limit: self.store.learn(self.model, window=limit),
        )
        ground = Ground(journal, engine, sections=self._sections, tools=toolbox.specs if self._has_tools else ())
        wiring.attach(ground, turn)
        compose = Composer(
            engine=engine,
            hooked=hooked,
            provider=self.provider_name,
            model=self.model,
            name=name,
            strategy=wiring.strategy(self._noticed),
            tools=ground.tools,
            level=agent.thinking,
            cap=agent.thinking_budget_cap,
            warn=self.warn,
            observe=wiring.composed,
        )
        loop = Loop(
            journal=journal,
            turn=turn,
            toolbox=toolbox,
            hooked=hooked,
            compose=compose,
            limits=self.limits,
            parallel=agent.parallel_tool_calls,
            touched=lambda call: parts.touched(call, self.resolved, self._given(engine)),
            rotate=wiring.rotate,
            finished=wiring.finished,
        )
        handling = None if nested else wiring.handling(loop, compose)
        return Session(
            journal=journal,
            engine=engine,
            loop=loop,
            toolbox=toolbox,
            provider=provider,
            observer=wiring.observer,
            work=handling.run if handling is not None else None,
            release=wiring.close,
            finish=lambda: self._remember(estimator, learned),
        )

    def _timeline(self, resume: str | None, *, latest: bool, fork: bool, ephemeral: bool) -> Timeline:
        project = str(self.resolved.root)
        if resume is None and latest:
            resume = self.store.latest(project)
            if resume is None:
                raise UserError('There is no session of this project to go on with. Start one: ra "your question"')
        if fork and resume is None:
            raise UsageError("--fork goes with -c or --resume ID: it copies a session and goes on in the copy.")
        if resume is None:
            return MemoryTimeline(clock=self.clock) if ephemeral else self.store.create(project)
        if ephemeral:
            with_events = self.store.open(resume, write=False)
            return MemoryTimeline(with_events.session, events=with_events.events(), texts=with_events.kept)
        return self.store.open(self.store.fork(resume) if fork else resume, write=True)

    # --- parts ---

    def connect(self, *, retries: Retries | None = None) -> Provider:
        return connect.connect(
            self.provider_name,
            self.model,
            self.provider_settings,
            self.env,
            transport=self.config.agent.transport,
            data_dir=self.resolved.data_dir,
            retries=retries,
        )

    def price(self, model: str, usage: Usage) -> Decimal | None:
        return self.prices.price(model, usage, self.provider_name)

    def _for_summary(self, request: Request) -> Request:
        model = self.config.agent.compaction.model
        return msgspec.structs.replace(request, model=model) if model else request

    def _economy(self) -> "Economy | None":
        if self.config.agent.compaction.strategy != "auto":
            return None
        from ra.costs.economy import Economy
        from ra.costs.promptcache import rules_for

        return Economy(
            lambda model: self.prices.row(model, self.provider_name), lambda model: rules_for(model, self.provider_name)
        )

    @property
    def _has_tools(self) -> bool:
        return self.options.tools and self.info.tools

    def _toolbox(self, journal: Journal, engine: Engine, *, sub_agent: RunAgent | None) -> Toolbox:
        agent, options = self.config.agent, self.options

        async def recall(what: str) -> str:
            from ra.context.recall import recall as read_back  # only when the model asks

            return read_back(what, journal.timeline)

        return Toolbox(
            root=str(self.resolved.root),
            cwd=str(self.resolved.cwd),
            home=self.env.get("HOME", ""),
            env=self.env,
            rules=parts.rules(self.config, options),
            writes=options.write,
            sandbox=options.sandbox,
            hidden=(str(self.resolved.data_dir),),
            tool_timeout_s=agent.tool_timeout,
            settings=agent.tools,
            recall=recall,
            entries=lambda: tuple(engine.view.entries.values()),
            agent=sub_agent,
            fetch=parts.fetch,
            custom=parts.custom_tools(self.resolved, self.env),
        )

    def _sections(self) -> Sequence[Section]:
        return (prompt.system(self.config.agent.system_prompt, tools=self._has_tools), *self.discovered)

    def _noticed(self) -> Sequence[Section]:
        return (prompt.environment(self.resolved.cwd, self.resolved.root),) if self._has_tools else ()

    def _given(self, engine: Engine) -> Sequence[Section]:
        return (*self.discovered, *engine.view.notices().values())

    def _look(self, engine: Engine, turn: Turn) -> LoopView:
        """What hooks see of the run."""
        spent = turn.spent
        return LoopView(
            engine.view.messages,
            iteration=turn.iteration,
            usage=Spending.of(spent.usage, float(spent.dollars) if spent.priced else None),
            session=turn.journal.session,
            model=self.model,
        )

    def _have_local(self) -> bool:
        from ra.providers import local

        return local.available(self.resolved.data_dir)

    def _learned(self) -> Learned:
        return self.store.learned(self.model) or Learned(None, None)

    def _remember(self, estimator: Estimator, before: Learned) -> None:
        """Keep what replies taught about the model's tokens, when it changed by more than noise."""
        old = before.factor or self.info.tokens_per_o200k
        if abs(estimator.factor - old) > 0.01 * old:
            self.store.learn(self.model, factor=estimator.factor)


def _in_memory(timeline: Timeline) -> Timeline:
    return MemoryTimeline(timeline.session, events=timeline.events(), texts=timeline.kept)


def build(
    resolved: Resolved,
    options: Options,
    *,
    env: Mapping[str, str],
    warn: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.time,
    handler: "Handler | None" = None,
) -> App:
    return App(resolved, options, env=env, warn=warn, clock=clock, handler=handler)
