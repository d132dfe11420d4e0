"""Explains every key in one table, from which ra.yaml.example and docs/configuration.md are generated."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ra.config import check
from ra.config.settings import Config
from ra.config.show import scalar
from ra.config.yamlfile import Path_
from ra.context.settings import COMPACTIONS, STRATEGIES
from ra.core.settings import Settings

EXPLAINED: dict[str, str] = {
    "agent": "how a run works",
    "agent.provider": "null: the first whose key is set, else local",
    "agent.model": "null: the provider's default",
    "agent.systemPrompt": "null: the built-in prompt",
    "agent.thinking": "off (some models think anyway), low, medium, high, adaptive (high, then low)",
    "agent.thinkingBudgetCap": "at most this many tokens of thinking per call",
    "agent.transport": "http: ra's own client; sdk: the vendor's (Bedrock, Vertex, Azure); auto: ra chooses",
    "agent.maxIterations": "model calls per run; 0: no limit, here and in the next three",
    "agent.maxTokenBudget": "tokens per run, input and output",
    "agent.maxCost": "dollars per run",
    "agent.maxDuration": "seconds per run",
    "agent.toolTimeout": "seconds of one tool call",
    "agent.parallelToolCalls": "calls that only read run side by side",
    "agent.compaction": "what happens when the window fills",
    "agent.compaction.enabled": "false: never compact unless a request would be rejected as too long",
    "agent.compaction.threshold": "compact when this share of the window is full",
    "agent.compaction.strategy": f"{', '.join(COMPACTIONS)}; auto decides by price",
    "agent.compaction.model": "the model that summarizes; null: the agent's model",
    "agent.compaction.prompt": "your own summary prompt; its answer is used as it is",
    "agent.compaction.contextWindow": "tokens; null: learned from errors, else the catalog",
    "agent.compaction.maxTokens": "compact above this many tokens, whatever the window",
    "agent.compaction.recent": "share of the window, at its end, that is never hidden",
    "agent.cache": "the provider's prompt cache, where there is a choice",
    "agent.cache.ttl": "auto (by price, from the session's own pauses), 5m, 1h; for Claude",
    "agent.cache.keepWarm": "auto: a waiting conversation may make small paid calls to keep the cache; off: none",
    "agent.context": "what stands around the conversation",
    "agent.context.enabled": "discover files such as AGENTS.md",
    "agent.context.patterns": "files to look for; replaces this list",
    "agent.context.resolvers": "more kinds of references in prompts; {name: url, enabled: false} turns one off",
    "agent.context.sourceBudget": "tokens for all sources; with it, requests are composed from the sources alone",
    "agent.context.sources": "name: {file|command|text|timeline|python, max, cache, priority, role, trim}",
    "agent.context.mustKeep": "regular expressions; text that matches is put back if a compaction hid it",
    "agent.middleware": "hooks: Python files, scripts, or {shell: command}; see docs/middleware.md",
    "agent.permissions": "what the model may do without asking",
    "agent.permissions.edits": "changes to files: ask | auto | off; null: ask on a terminal, off elsewhere",
    "agent.permissions.sandbox": "your own file only",
    "agent.permissions.sandbox.readable": "more folders of your home that sandboxed commands may read, such as ~/sdk",
    "agent.permissions.rules": "[{allow|ask|deny: Tool(pattern), outside}]; deny wins over ask, ask over allow",
    "agent.tools": "per tool {enabled, rootDir}; custom: [paths]",
    "agent.mcpServers": "[{name, command, args, env} or {name, url, headers}]",
    "session": "how a session is cut into segments and put together",
    "session.staleMinutes": "1 to 1440; null: 45 under layered, off under timeline",
    "session.maxTurnsPerSession": "2 to 200; null: 15 under layered, off under timeline",
    "session.tierTwoThresholdTokens": "50000 to 200000; null: 180000 under layered, off under timeline",
    "session.contextStrategy": f"{', '.join(STRATEGIES)} or a Python file; null: timeline here, layered for tasks",
    "session.layers": "token budgets of the layered strategy",
    "session.layers.total": "for all layers together",
    "session.layers.channel": "terminal, pipe or API, and its rules",
    "session.layers.scope": "project, branch, verified facts",
    "session.layers.landscape": "tools, agents, MCP servers",
    "session.layers.identity": "first line of the system prompt",
    "session.layers.intent": "what kind of request it is",
    "session.layers.artifacts": "attached files and references",
    "session.layers.history": "what the replay does not carry",
    "session.layers.wiki": "the hint to ask the wiki",
    "session.planner": "the small call that plans a turn's context",
    "session.planner.model": "null: the provider's cheapest",
    "session.planner.timeout": "seconds",
    "session.planner.maxOutput": "tokens",
    "session.wiki": "folders of Markdown that can be queried",
    "session.wiki.dirs": "relative to the project",
    "agents": "named agents: {ID: {systemPrompt, contextStrategy, handler, budget, any key of agent and session}}",
    "app": "this installation; never taken from a project's file",
    "app.dataDir": "null: $RA_HOME, else the platform's data directory",
    "app.http": "the HTTP API of ra serve",
    "app.http.host": "another address than loopback needs an explicit token",
    "app.http.port": "0: any free one",
    "app.logLevel": "debug, info, warning, error",
    "app.prices": "dollars per million tokens: {MODEL: {input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75}}",
    "app.providers": "{anthropic: {baseUrl: https://…, apiKey: ${KEY}}}",
    "app.store": "null: a SQLite file in dataDir; postgresql://user@host/database for many processes and machines",
}

HEAD = """\
# Every key of ra with its default. Copy what you change into ra.yaml (project) or ~/.config/ra/ra.yaml (you).
# Later settings win: defaults < your file < the project's file < --config FILE < --set key=value and flags.
# ${VAR} must be set; ${VAR:-default} need not be. snake_case keys are read as well.
"""

EXAMPLES = """\
# Examples. Paths are relative to the file that names them; what a project's file may run needs `ra trust` once.
#
# agent:
#   middleware:
#     beforeModelCall: [./middleware/enforce_budget.py]
#     afterToolExecution: [./middleware/redact_secrets.py]
#     afterLoopComplete: [./middleware/log_cost.py, ./middleware/audit_log.py]
#     beforeToolExecution: [./middleware/policy_check.sh]
#   context:
#     resolvers:
#       - {name: issues, path: ./resolvers/github_issues.py}
#       - {name: record, path: ./resolvers/sqlite_record.py}
#     sourceBudget: 18000
#     sources:
#       docs: {file: docs/TOC.md, max: 3000, cache: stable}
#       status: {command: git status --short, max: 1000, cache: volatile}
#       conversation: {timeline: true, max: 12000, cache: volatile}
#   permissions:
#     rules: [{allow: "Bash(make test)"}, {deny: "Read(secrets/**)"}]
#   mcpServers:
#     - {name: files, command: mcp-server-filesystem, args: [.]}
# agents:
#   devops-agent: {systemPrompt: You look after servers., contextStrategy: planner, budget: {dollars: 20, per: day}}
# app:
#   providers: {openai-chat: {baseUrl: "http://127.0.0.1:11434/v1"}}
"""


def leaves(kind: type[Settings] = Config, path: Path_ = ()) -> Iterator[tuple[Path_, Any, Any]]:
    """Every key with its type and default, in order; a mapping comes before its keys."""
    for field in msgspec.structs.fields(kind):
        here = (*path, field.encode_name)
        default = msgspec.to_builtins(
            field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        )
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield here, field.type, None
            yield from leaves(field.type, here)
        else:
            yield here, field.type, default


def example() -> str:
    """The text of ra.yaml.example."""
    lines = [HEAD.rstrip()]
    for path, kind, default in leaves():
        indent = "  " * (len(path) - 1)
        mapping = isinstance(kind, type) and issubclass(kind, Settings)
        text = f"{indent}{path[-1]}:" if mapping else f"{indent}{path[-1]}: {scalar(default)}"
        if len(path) == 1:
            lines.append("")
        lines.append(f"{text:<48}  # {explained(path)}" if explained(path) else text)
    return "\n".join(lines) + "\n\n" + EXAMPLES


def explained(path: Path_) -> str:
    return EXPLAINED.get(".".join(path), "a list of hooks" if path[:2] == ("agent", "middleware") else "")


def table() -> str:
    """The keys as a Markdown table, for docs/configuration.md."""
    rows = ["| key | default | legal values | meaning |", "|---|---|---|---|"]
    for path, kind, default in leaves():
        if isinstance(kind, type) and issubclass(kind, Settings):
            continue
        legal = check.described(kind).replace("|", "\\|")
        value = scalar(default)
        value = value if len(value) <= 40 else "see the example"
        rows.append(f"| `{'.'.join(path)}` | `{value}` | {legal} | {explained(path).replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"
