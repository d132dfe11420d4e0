"""Who is wired to whom? The only place that knows concrete classes."""

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ra import plugins
from ra.agent.calls import Calls
from ra.agent.compose import Composer
from ra.agent.ground import Ground
from ra.agent.hooked import Hooked
from ra.agent.journal import Journal
from ra.agent.limits import Limits
from ra.agent.loop import Loop
from ra.agent.prepare import Prepared
from ra.agent.session import Session
from ra.agent.turn import Turn
from ra.app import parts, tooling
from ra.app.parts import Options, open_prices, open_store
from ra.app.wiring import Wiring, choose_strategy, log_to
from ra.config.load import Resolved
from ra.context.tokens import Estimator
from ra.core.model import Usage
from ra.core.ports import Provider, Timeline
from ra.providers import connect
from ra.providers.retry import Retries
from ra.providers.settings import ProviderSettings
from ra.resolvers.resolver import AskOutside
from ra.timeline import folds

if TYPE_CHECKING:
    from ra.agent.handler import Handler

__all__ = ["App", "Options", "open_prices", "open_store"]


class App:
    """Everything that outlives a session: configuration, store, prices, and how to build the rest."""

    def __init__(
        self,
        resolved: Resolved,
        options: Options,
        *,
        env: Mapping[str, str],
        warn: Callable[[str], None] = lambda _: None,
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
        local = partial(parts.have_local, resolved)
        self.provider_name = connect.choose(env, agent.provider, app.providers, have_local=local)
        self.provider_settings = app.providers.get(self.provider_name, ProviderSettings())
        self.model = connect.model_for(self.provider_name, agent.model, self.provider_settings, env)
        self.info = connect.info(self.provider_name, self.model)
        self.limits = Limits(agent.max_iterations, agent.max_token_budget, agent.max_cost, agent.max_duration)
        self.discovered = parts.discovered(resolved, warn)
        self.worker = plugins.Worker()
        self.mcp = tooling.mcp_servers(resolved, env, warn)
        self.log = log_to(self)
        self.strategy = choose_strategy(self, None)
        parts.check(self)

    async def prepare(
        self, text: str, *, piped: str = "", files: Sequence[Path] = (), ask_outside: AskOutside | None = None
    ) -> Prepared:
        """What the user typed, with its references resolved."""
        return await parts.prepared(self, text, piped=piped, files=files, ask_outside=ask_outside)

    def open(
        self, *, resume: str | None = None, latest: bool = False, fork: bool = False, ephemeral: bool = False
    ) -> Session:
        return self.session(parts.timeline(self, resume, latest=latest, fork=fork, ephemeral=ephemeral))

    def session(self, timeline: Timeline, *, strategy: str | None = None, nested: bool = False) -> Session:
        """Wire a session to its timeline. What a crash left open is closed first.

        `strategy` is the one that this task asked for; `nested`: it is a sub-agent's.
        """
        agent = self.config.agent
        learned = parts.learned(self, timeline)
        estimator = Estimator(learned.factor or self.info.tokens_per_o200k)
        provider = self.connect()
        engine = parts.engine(self, timeline.session, provider, estimator, learned)
        name = "timeline" if nested else choose_strategy(self, strategy)
        wiring = Wiring(self, name)
        journal = Journal(timeline, [engine.apply, wiring.segment.apply], in_memory=parts.in_memory)
        journal.record(*folds.repair(timeline.events()))
        toolbox = tooling.toolbox(
            self, journal, engine, sub_agent=None if nested else lambda task: tooling.delegate(self, task, loop)
        )
        hooked = Hooked(parts.hooks(self), journal, look=lambda: parts.look(self, engine, turn))
        turn = Turn(
            journal=journal,
            engine=engine,
            provider=provider,
            price=self.price,
            hooked=hooked,
            level=agent.thinking,
            cap=agent.thinking_budget_cap,
            learn=lambda limit: parts.learn(self, window=limit),
        )
        tools = toolbox.specs if self.has_tools else ()
        ground = Ground(journal, engine, sections=lambda: parts.sections(self), tools=tools)
        wiring.attach(ground, turn)
        compose = Composer(
            engine=engine,
            hooked=hooked,
            provider=self.provider_name,
            model=self.model,
            name=name,
            strategy=wiring.strategy(lambda: parts.noticed(self)),
            tools=tools,
            level=agent.thinking,
            cap=agent.thinking_budget_cap,
            warn=self.warn,
            observe=wiring.composed,
        )
        calls = Calls(
            journal=journal,
            turn=turn,
            toolbox=toolbox,
            hooked=hooked,
            parallel=agent.parallel_tool_calls,
            touched=lambda call: parts.touched(self, call, engine),
        )
        loop = Loop(
            journal=journal,
            turn=turn,
            calls=calls,
            hooked=hooked,
            compose=compose,
            limits=self.limits,
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
            finish=lambda: parts.remember(self, estimator, learned),
        )

    @property
    def has_tools(self) -> bool:
        return self.options.tools and self.info.tools

    def connect(self, *, retries: Retries | None = None) -> Provider:
        return parts.connected(self, retries)

    def price(self, model: str, usage: Usage) -> Decimal | None:
        return self.prices.price(model, usage, self.provider_name)
