"""What is a session made of, and from which settings? The parts that `App` puts together."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ra import plugins
from ra.agent import prompt
from ra.agent.limits import need_price
from ra.agent.prepare import Prepared, prepare
from ra.agent.turn import Turn, whole
from ra.config.load import Resolved
from ra.context import discovery, window
from ra.context.engine import Engine
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.core.errors import ConfigError, StoreError, UsageError, UserError
from ra.core.facts import Noticed
from ra.core.messages import ToolCall
from ra.core.model import Section
from ra.core.ports import Provider, Timeline
from ra.core.value import Value
from ra.costs.prices import Prices
from ra.middleware.hooks import Hooks
from ra.middleware.views import LoopView, Spending
from ra.providers import connect
from ra.providers.retry import Retries
from ra.resolvers.resolver import AskOutside, Resolver
from ra.timeline.in_memory import MemoryTimeline
from ra.timeline.store import Learned, Store
from ra.tools.environment import clean

if TYPE_CHECKING:
    from ra.app import App
    from ra.costs.economy import Economy


class Options(Value, frozen=True):
    """What this run may do and where it takes place: said on the command line, never in a file."""

    tools: bool = True
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    sandbox: Literal["auto", "off"] = "auto"
    write: bool = False
    terminal: bool = False
    agent_file: str | None = None
    channel: str = "pipe"
    agent: str = ""  # the named agent, if it is one
    served: bool = False  # a task of the HTTP API
    dry_run: bool = False  # nothing is sent, not even what a strategy would ask


def open_store(resolved: Resolved, clock: Callable[[], float] = time.time) -> Store:
    return Store(resolved.data_dir / "ra.db", clock=clock)


def open_prices(resolved: Resolved) -> Prices:
    return Prices(resolved.config.app.prices, resolved.data_dir / "prices.json")


def resolvers(app: "App") -> Sequence[Resolver]:
    """The built-in ones that are on, the user's own, and one for what MCP servers hold."""
    from ra.resolvers.custom import Custom
    from ra.resolvers.expand import builtin

    chosen: dict[str, Resolver] = {resolver.name: resolver for resolver in builtin()}
    if app.mcp is not None:
        from ra.app.mcp import References

        chosen["mcp"] = References(app.mcp)
    for one in app.config.agent.context.resolvers:
        if not one.enabled:
            chosen.pop(one.name, None)
        elif one.path:
            chosen[one.name] = Custom(
                plugins.load(one.path, base=app.resolved.root), call=app.worker.call, name=one.name
            )
        elif one.name not in chosen:
            raise ConfigError(f"agent.context.resolvers: {one.name!r} needs a path; built in are file and url.")
    return tuple(chosen.values())


def discovered(resolved: Resolved, warn: Callable[[str], None]) -> tuple[Section, ...]:
    settings = resolved.config.agent.context
    if not settings.enabled:
        return ()
    found = discovery.discover(resolved.cwd, resolved.root, settings.patterns)
    for note in found.notes:
        warn(note)
    return found.sections


def sections(app: "App") -> Sequence[Section]:
    """What stands before the conversation."""
    return (prompt.system(app.config.agent.system_prompt, tools=app.has_tools), *app.discovered)


def noticed(app: "App") -> Sequence[Section]:
    """What enters with a prompt, because it changes."""
    return (prompt.environment(app.resolved.cwd, app.resolved.root),) if app.has_tools else ()


def touched(app: "App", call: ToolCall, engine: Engine) -> list[Noticed]:
    """A subdirectory's instruction files, when a tool first touches something in it."""
    path, resolved, settings = call.args.get("path"), app.resolved, app.config.agent.context
    if not settings.enabled or not isinstance(path, str):
        return []
    given = (*app.discovered, *engine.view.notices().values())
    found = discovery.nested(Path(path), resolved.cwd, resolved.root, settings.patterns, given=given)
    return [Noticed(section) for section in found.sections]


def have_local(resolved: Resolved) -> bool:
    from ra.providers import local

    return local.available(resolved.data_dir)


def check(app: "App") -> None:
    """What the user should know, or mend, before the first prompt."""
    if app.provider_name == "local" and app.config.agent.model is None:
        from ra.providers import local

        if notice := local.notice(app.resolved.data_dir):
            app.warn(notice)
    if app.config.agent.thinking != "off" and app.info.thinking == "none":
        app.warn(f"agent.thinking: {app.config.agent.thinking} has no effect: {app.model} is not known to think.")
    if app.limits.dollars:
        need_price(app.limits, app.model, known=app.prices.row(app.model, app.provider_name) is not None)


async def prepared(
    app: "App", text: str, *, piped: str, files: Sequence[Path], ask_outside: AskOutside | None
) -> Prepared:
    return await prepare(
        text,
        piped=piped,
        files=files,
        root=app.resolved.root,
        cwd=app.resolved.cwd,
        resolvers=lambda: resolvers(app),
        always=any(one.path for one in app.config.agent.context.resolvers),
        ask_outside=ask_outside,
    )


def timeline(
    app: "App", resume: str | None, *, latest: bool = False, fork: bool = False, ephemeral: bool = False
) -> Timeline:
    """A new session, or one that is named; in memory only, if it shall leave no trace."""
    project = str(app.resolved.root)
    if resume is None and latest:
        resume = app.store.latest(project)
        if resume is None:
            raise UserError('There is no session of this project to go on with. Start one: ra "your question"')
    if fork and resume is None:
        raise UsageError("--fork goes with -c or --resume ID: it copies a session and goes on in the copy.")
    if resume is None:
        return MemoryTimeline(clock=app.clock) if ephemeral else app.store.create(project)
    if ephemeral:
        return in_memory(app.store.open(resume, write=False))
    return app.store.open(app.store.fork(resume) if fork else resume, write=True)


def in_memory(timeline: Timeline) -> Timeline:
    return MemoryTimeline(timeline.session, events=timeline.events(), texts=timeline.kept)


def connected(app: "App", retries: Retries | None) -> Provider:
    return connect.connect(
        app.provider_name,
        app.model,
        app.provider_settings,
        app.env,
        transport=app.config.agent.transport,
        data_dir=app.resolved.data_dir,
        retries=retries,
    )


def learned(app: "App", timeline: Timeline) -> Learned:
    """What the store knows of the model. Where nothing is to be stored, a store that cannot be read is only told."""
    try:
        return app.store.learned(app.model)
    except StoreError as error:
        if not isinstance(timeline, MemoryTimeline):
            raise
        app.warn(f"What was learned of models is not known to this run: {error}")
        return Learned()


def learn(app: "App", *, window: int | None = None, factor: float | None = None) -> None:
    """Remember what the model has taught; a store that cannot be written is no reason to give up an answer."""
    try:
        app.store.learn(app.model, window=window, factor=factor)
    except StoreError as error:
        app.warn(f"What was learned of {app.model} is not kept: {error}")


def engine(app: "App", session: str, provider: Provider, estimator: Estimator, learned: Learned) -> Engine:
    agent = app.config.agent
    return Engine(
        agent.compaction,
        estimator=estimator,
        window=window.resolve(agent.compaction.context_window, learned.window, app.info.window),
        info=app.info,
        must_keep=agent.context.must_keep,
        summarize=lambda request: whole(provider, request),
        summary_info=connect.info(app.provider_name, agent.compaction.model or app.model),
        price=app.price,
        economy=economy(agent.compaction, app.prices, app.provider_name),
        cache_key=session,
    )


def hooks(app: "App") -> Hooks:
    """The user's middleware. Scripts get no keys in their environment."""
    root = app.resolved.root
    return Hooks(app.config.agent.middleware, base=root, load=plugins.load, call=app.worker.call, env=clean(app.env))


def economy(settings: CompactionSettings, prices: Prices, provider: str) -> "Economy | None":
    """Who decides by price when to compact, if `auto` does."""
    if settings.strategy != "auto":
        return None
    from ra.costs.economy import Economy
    from ra.costs.promptcache import rules_for

    return Economy(lambda model: prices.row(model, provider), lambda model: rules_for(model, provider))


def look(app: "App", engine: Engine, turn: Turn) -> LoopView:
    """What hooks see of the run."""
    spent = turn.spent
    return LoopView(
        engine.view.messages,
        iteration=turn.iteration,
        usage=Spending.of(spent.usage, float(spent.dollars) if spent.priced else None),
        session=turn.journal.session,
        model=app.model,
    )


def remember(app: "App", estimator: Estimator, before: Learned) -> None:
    """Keep what replies taught about the model's tokens, when it changed by more than noise."""
    old = before.factor or app.info.tokens_per_o200k
    if abs(estimator.factor - old) > 0.01 * old:
        learn(app, factor=estimator.factor)
