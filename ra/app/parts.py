"""What is a session made of, and from which settings? The parts that `App` puts together."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ra import plugins
from ra.agent.loop import Loop
from ra.config.load import Resolved
from ra.config.settings import Config
from ra.context import discovery
from ra.core.errors import ConfigError
from ra.core.events import ToolEnded, ToolStarted, Warned
from ra.core.facts import Noticed, Spent
from ra.core.messages import ToolCall, say
from ra.core.model import Reply, Request, Section
from ra.core.ports import Provider
from ra.core.value import Value
from ra.costs.prices import Prices
from ra.resolvers.resolver import Resolver
from ra.timeline.memory import MemoryTimeline
from ra.timeline.store import Store
from ra.tools.rules import Rule, parse_rule
from ra.tools.tool import Output, Tool, text_output

if TYPE_CHECKING:
    from ra.app import App


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


def open_store(resolved: Resolved, clock: Callable[[], float] = time.time) -> Store:
    return Store(resolved.data_dir / "ra.db", clock=clock)


def open_prices(resolved: Resolved) -> Prices:
    return Prices(resolved.config.app.prices, resolved.data_dir / "prices.json")


def rules(config: Config, options: Options) -> tuple[Rule, ...]:
    """Flags first, then the configuration; deny is stronger than ask, and ask than allow, wherever they stand."""
    found = [parse_rule(text, "deny") for text in options.deny] + [parse_rule(text, "allow") for text in options.allow]
    for rule in config.agent.permissions.rules:
        given = [text for text in (rule.deny, rule.ask, rule.allow) if text is not None]
        if len(given) != 1:
            raise ConfigError("agent.permissions.rules: each rule has exactly one of allow, ask and deny.")
        found.append(parse_rule(given[0], "deny" if rule.deny else "ask" if rule.ask else "allow"))
    return tuple(found)


def resolvers(resolved: Resolved, call: Callable[..., Any]) -> Sequence[Resolver]:
    """The built-in ones that are on, and the user's own."""
    from ra.resolvers.custom import Custom
    from ra.resolvers.expand import builtin

    chosen: dict[str, Resolver] = {resolver.name: resolver for resolver in builtin()}
    for one in resolved.config.agent.context.resolvers:
        if not one.enabled:
            chosen.pop(one.name, None)
        elif one.path:
            chosen[one.name] = Custom(plugins.load(one.path, base=resolved.root), call=call, name=one.name)
        elif one.name not in chosen:
            raise ConfigError(f"agent.context.resolvers: {one.name!r} needs a path; built in are file and url.")
    return tuple(chosen.values())


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
            timeout_s = resolved.config.agent.tool_timeout
            made.append(script_tool(path, cwd=str(resolved.root), env=env, timeout_s=timeout_s))
    return made


def discovered(resolved: Resolved, warn: Callable[[str], None]) -> tuple[Section, ...]:
    settings = resolved.config.agent.context
    if not settings.enabled:
        return ()
    found = discovery.discover(resolved.cwd, resolved.root, settings.patterns)
    for note in found.notes:
        warn(note)
    return found.sections


def touched(call: ToolCall, resolved: Resolved, given: Sequence[Section]) -> list[Noticed]:
    """A subdirectory's instruction files, when a tool first touches something in it."""
    path, settings = call.args.get("path"), resolved.config.agent.context
    if not settings.enabled or not isinstance(path, str):
        return []
    found = discovery.nested(Path(path), resolved.cwd, resolved.root, settings.patterns, given=given)
    return [Noticed(section) for section in found.sections]


async def fetch(url: str) -> str:
    """A page as text, for WebFetch, under the same guard as `url:`."""
    from ra.resolvers.fetch import fetch as get  # ssl and h11, when the model asks

    return (await get(url)).text


async def whole(provider: Provider, request: Request) -> Reply:
    """An answer without its deltas, for side calls."""
    reply: Reply | None = None
    async for item in provider.stream(request):
        if isinstance(item, Reply):
            reply = item
    assert reply is not None, "a provider ends with its Reply, or raises"
    return reply


async def delegate(app: "App", task: str, parent: Loop) -> Output:
    """Run a sub-agent in a window of its own. Its answer comes back, and what it cost, as facts of the parent."""
    session = app.session(MemoryTimeline(), nested=True)
    run = session.start(say("user", task), ask=parent.ask)
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
