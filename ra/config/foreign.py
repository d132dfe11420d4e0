"""Lists other agents' files that ra does not use, each with the reason."""

import os
from collections.abc import Iterator
from pathlib import Path

from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value


class Ignored(Value, frozen=True):
    name: str
    why: str


_RULES = "rules of that editor; put rules for every agent into AGENTS.md"
_SETTINGS = "settings, permissions and hooks of that agent; `ra config import claude` prints them as settings of ra"
_AGENTS = "sub-agents of that agent; write them under agents: in ra.yaml"
_PROMPTS = "prompts of that agent; ra reads commands in .ra/commands and .claude/commands"

_PROJECT = {
    ".claude/settings.json": _SETTINGS,
    ".claude/settings.local.json": _SETTINGS,
    "CLAUDE.local.md": "not in agent.context.patterns; add it there if ra should read it",
    "AGENTS.override.md": "not in agent.context.patterns; add it there if ra should read it",
    ".claude/agents": _AGENTS,
    ".claude/rules": "rules of that agent; import those that always apply in CLAUDE.md, as @.claude/rules/NAME.md",
    ".codex/config.toml": "settings of that agent; `ra config import codex` prints them as settings of ra",
    ".cursor/rules": _RULES,
    ".clinerules": _RULES,
    ".roo": _RULES,
    ".windsurf/rules": _RULES,
    ".continue/rules": _RULES,
    ".kiro/steering": _RULES,
    ".github/instructions": _RULES,
    ".github/prompts": "prompts of that editor; ra reads commands in .ra/commands and .claude/commands",
    ".codex/prompts": _PROMPTS,
    ".gemini/settings.json": "settings of that agent; MCP servers that every agent may use go into .mcp.json",
    "GEMINI.md": "not in agent.context.patterns; add it there, or name it in AGENTS.md as @GEMINI.md",
    ".cursor/mcp.json": "belongs to that editor; ra reads .mcp.json",
    ".vscode/mcp.json": "belongs to that editor; ra reads .mcp.json",
}
_HOME = {
    ".claude/settings.json": _SETTINGS,
    ".claude.json": "state of that agent; `ra config import claude` shows the MCP servers in it",
    ".claude/agents": _AGENTS,
    ".claude/plugins": "plugins of that agent; copy the skills and commands that you want into ~/.claude",
    ".codex/prompts": _PROMPTS,
    ".codex/skills": "skills of that agent; ra reads those in ~/.agents/skills",
    ".codex/AGENTS.md": "belongs to that agent; `ra config import codex` prints it as settings of ra",
    ".codex/config.toml": "settings of that agent; `ra config import codex` prints them as settings of ra",
    ".gemini/GEMINI.md": "belongs to that agent; copy it to AGENTS.md beside your ra.yaml",
}


def ignored(way: list[Path], root: Path, home: Path | None, patterns: tuple[str, ...]) -> Iterator[Ignored]:
    """The unused files. `way` is the list of folders from the project's root to the working directory."""
    for folder in way:
        for name, why in _PROJECT.items():
            if os.path.lexists(folder / name) and name not in patterns:
                yield Ignored(os.path.relpath(folder / name, root), why)
        for name in INSTRUCTION_FILES:
            if name not in patterns and os.path.lexists(folder / name):
                yield Ignored(os.path.relpath(folder / name, root), "not among agent.context.patterns")
    for name, why in _HOME.items() if home else ():
        assert home is not None
        if os.path.lexists(home / name) and home not in way:
            yield Ignored(f"~/{name}", why)
