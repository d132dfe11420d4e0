"""Which tools does a session have, and by which rules? Ours, the user's own, those of MCP servers, and a sub-agent."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ra import plugins
from ra.agent.journal import Journal
from ra.agent.loop import Loop
from ra.app.parts import Options
from ra.config import trust
from ra.config.allowed import Allowed
from ra.config.load import Resolved
from ra.context.engine import Engine
from ra.core.events import ToolEnded, ToolStarted, Warned
from ra.core.facts import Entry, Spent
from ra.core.messages import say
from ra.core.settings import INSTRUCTION_FILES
from ra.timeline.in_memory import MemoryTimeline
from ra.tools.environment import clean
from ra.tools.kit import Fetch, Recall, RunAgent
from ra.tools.permissions import rules_from
from ra.tools.rules import Rule, parse_rule
from ra.tools.tool import Output, Tool, text_output
from ra.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from ra.app import App
    from ra.tools.mcp.servers import Servers


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


def toolbox(app: "App", journal: Journal, engine: Engine, *, sub_agent: RunAgent | None) -> Toolbox:
    async def recall(what: str) -> str:
        from ra.context.recall import recall as read_back  # only when the model asks

        return read_back(what, journal.timeline)

    made = tools_here(
        app.resolved,
        app.options,
        app.env,
        recall=recall,
        entries=lambda: tuple(engine.view.entries.values()),
        agent=sub_agent,
        fetch=fetch,
        mcp=app.mcp if app.has_tools else None,
    )
    for rule in made.rules:
        if rule.tool not in made.known and "*" not in rule.tool and not rule.tool.startswith("mcp__"):
            app.warn(
                f"The {rule.action} rule {rule} has no effect: there is no tool {rule.tool!r}; "
                f"tools: {', '.join(sorted(made.known))}."
            )
    return made


def tools_here(
    resolved: Resolved,
    options: Options,
    env: Mapping[str, str],
    *,
    recall: Recall,
    entries: Callable[[], Sequence[Entry]],
    agent: RunAgent | None,
    fetch: Fetch,
    mcp: "Servers | None" = None,
) -> Toolbox:
    """The tools of this project as its configuration and the flags have it; who only explains runs none of them."""
    settings = resolved.config.agent
    return Toolbox(
        root=str(resolved.root),
        cwd=str(resolved.cwd),
        home=env.get("HOME", ""),
        env=env,
        rules=rules(resolved, options),
        writes=options.write,
        sandbox=options.sandbox,
        hidden=(str(resolved.data_dir),),
        instructions=tuple(dict.fromkeys((*INSTRUCTION_FILES, *settings.context.patterns))),
        runs=runs(resolved, options),
        tool_timeout_s=settings.tool_timeout,
        settings=settings.tools,
        recall=recall,
        entries=entries,
        agent=agent,
        fetch=fetch,
        custom=custom_tools(resolved, env),
        remember=lambda rule: allowed(resolved).add(resolved.root, str(rule)),
        mcp=mcp,
    )


def runs(resolved: Resolved, options: Options) -> tuple[str, ...]:
    """What of the project runs outside any box: hooks and scripts, an agent file, and ra's own environment."""
    root, file = resolved.root, options.agent_file
    named: tuple[str, ...] = ()
    if file:
        from ra.config.reach import reach  # for those who bring an agent of their own

        named = trust.guarded(reach((str(resolved.cwd / Path(file).expanduser()),), str(root.resolve())), root)
    installed = Path(sys.prefix).resolve()
    return (*resolved.runs, *named, *((str(installed),) if root.resolve() in installed.parents else ()))


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
