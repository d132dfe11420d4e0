"""What is a session made of, and from which settings? The parts that `App` puts together."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ra import plugins
from ra.agent import prompt
from ra.agent.journal import Journal
from ra.agent.limits import need_price
from ra.agent.loop import Loop
from ra.agent.prepare import Prepared, prepare
from ra.agent.turn import Turn, whole
from ra.config import trust
from ra.config.allowed import Allowed
from ra.config.load import Resolved
from ra.context import discovery, window
from ra.context.engine import Engine
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.core.errors import ConfigError, UsageError, UserError
from ra.core.events import ToolEnded, ToolStarted, Warned
from ra.core.facts import Noticed, Spent
from ra.core.messages import ToolCall, say
from ra.core.model import Section
from ra.core.ports import Provider, Timeline
from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value
from ra.costs.prices import Prices
from ra.middleware.hooks import Hooks
from ra.middleware.views import Loop as LoopView
from ra.middleware.views import Spending
from ra.providers import connect
from ra.providers.retry import Retries
from ra.resolvers.resolver import AskOutside, Resolver
from ra.timeline.memory import MemoryTimeline
from ra.timeline.store import Learned, Store
from ra.tools.builtin.agent import RunAgent
from ra.tools.environment import clean
from ra.tools.permissions import rules_from
from ra.tools.rules import Rule, parse_rule
from ra.tools.tool import Output, Tool, text_output
from ra.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from ra.app import App
    from ra.costs.economy import Economy
    from ra.tools.mcp.servers import Servers


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


def allowed(resolved: Resolved) -> Allowed:
    """What the user allowed for good when asked."""
    return Allowed(resolved.data_dir / "allowed.json")


def rules(resolved: Resolved, options: Options) -> tuple[Rule, ...]:
    """Flags, the configuration, and what was allowed when asked; deny is stronger than ask, and ask than allow."""
    kept = allowed(resolved).rules(resolved.root)
    return (
        *(parse_rule(text, "deny") for text in options.deny),
        *(parse_rule(text, "allow") for text in (*options.allow, *kept)),
        *rules_from(resolved.config.agent.permissions.rules),
    )


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


def mcp_servers(resolved: Resolved, env: Mapping[str, str], warn: Callable[[str], None]) -> "Servers | None":
    if not any(server.enabled for server in resolved.config.agent.mcp_servers):
        return None
    from ra.app.mcp import servers  # threads and more, for nobody else

    return servers(resolved, env, warn)


def custom_tools(resolved: Resolved, env: Mapping[str, str]) -> list[Tool]:
    """`agent.tools.custom`: functions of Python files, and scripts."""
    paths = resolved.config.agent.tools.get("custom", ())
    if not paths:
        return []
    from ra.tools.custom import function_tool, script_tool

    made: list[Tool] = []
    for path in paths:
        if path.endswith(".py"):
            module = plugins.load(path, base=resolved.root)
            public = [item for name, item in vars(module).items() if not name.startswith("_")]
            made += [function_tool(item) for item in public if getattr(item, "__module__", "") == module.__name__]
        else:
            given = resolved.config.agent.tools.get(Path(path).stem)
            passed = clean(env, tuple(given.get("env", ()))) if isinstance(given, dict) else clean(env)
            timeout_s = resolved.config.agent.tool_timeout
            made.append(script_tool(path, cwd=str(resolved.root), env=passed, timeout_s=timeout_s))
    return made


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


def toolbox(app: "App", journal: Journal, engine: Engine, *, sub_agent: RunAgent | None) -> Toolbox:
    agent, options = app.config.agent, app.options

    async def recall(what: str) -> str:
        from ra.context.recall import recall as read_back  # only when the model asks

        return read_back(what, journal.timeline)

    made = Toolbox(
        root=str(app.resolved.root),
        cwd=str(app.resolved.cwd),
        home=app.env.get("HOME", ""),
        env=app.env,
        rules=rules(app.resolved, options),
        writes=options.write,
        sandbox=options.sandbox,
        hidden=(str(app.resolved.data_dir),),
        instructions=tuple(dict.fromkeys((*INSTRUCTION_FILES, *agent.context.patterns))),
        runs=runs(app),
        tool_timeout_s=agent.tool_timeout,
        settings=agent.tools,
        recall=recall,
        entries=lambda: tuple(engine.view.entries.values()),
        agent=sub_agent,
        fetch=fetch,
        custom=custom_tools(app.resolved, app.env),
        remember=lambda rule: allowed(app.resolved).add(app.resolved.root, str(rule)),
        mcp=app.mcp if app.has_tools else None,
    )
    for rule in made.rules:
        if rule.tool not in made.known and "*" not in rule.tool and not rule.tool.startswith("mcp__"):
            app.warn(f"The {rule.action} rule {rule} has no effect: there is no tool {rule.tool!r}.")
    return made


def runs(app: "App") -> tuple[str, ...]:
    """What of the project runs outside any box: hooks and scripts, an agent file, and ra's own environment."""
    root, file = app.resolved.root, app.options.agent_file
    named: tuple[str, ...] = ()
    if file:
        from ra.config.reach import reach  # for those who bring an agent of their own

        named = trust.guarded(reach((str(app.resolved.cwd / Path(file).expanduser()),), str(root.resolve())), root)
    installed = Path(sys.prefix).resolve()
    return (*app.resolved.runs, *named, *((str(installed),) if root.resolve() in installed.parents else ()))


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
        app.store.learn(app.model, factor=estimator.factor)


async def fetch(url: str) -> str:
    """A page as text, for WebFetch, under the same guard as `url:`."""
    from ra.resolvers.fetch import fetch as get  # ssl and h11, when the model asks

    page = await get(url)
    text = await asyncio.to_thread(lambda: page.text)  # turning a long page into Markdown takes a second
    return text if page.status < 400 else f"The server answered {page.status}.\n{text}"


async def delegate(app: "App", task: str, parent: Loop) -> Output:
    """Run a sub-agent in a window of its own. Its answer comes back, and what it cost, as facts of the parent."""
    session = app.session(MemoryTimeline(), nested=True)
    run = session.start(say("user", task), ask=parent.calls.ask)
    try:
        async for event in run:
            if isinstance(event, ToolStarted | ToolEnded | Warned):
                parent.turn.emit(event)
    finally:
        await session.close()
    assert run.ended is not None, "a run ends with RunEnded"
    ended = run.ended
    spent = Spent(ended.model, ended.usage, ended.dollars, purpose="agent", seconds=round(ended.seconds, 3))
    if ended.outcome == "answered":
        return text_output(ended.answer, facts=(spent,))
    return text_output(f"The sub-agent gave no answer: {ended.error or ended.outcome}.", is_error=True, facts=(spent,))
