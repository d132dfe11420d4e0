"""Creates a session's tools from the configuration and the flags: built-in tools, custom ones, and MCP servers'."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ra.config import paths, trust
from ra.config.load import Resolved
from ra.config.options import Options
from ra.config.private import Allowed
from ra.core.errors import ConfigError, UserError
from ra.core.facts import Entry
from ra.core.messages import ToolCall
from ra.core.model import Reply
from ra.core.settings import INSTRUCTION_FILES
from ra.session.recipe import Notices
from ra.system import plugins
from ra.system.environment import WIKI_DIRS, clean
from ra.tools.approvals import Approvals
from ra.tools.options import ToolOptions, options_of
from ra.tools.policy.explain import Explanation, explain
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import rules_from
from ra.tools.policy.rules import Rule, parse_rule
from ra.tools.port import SessionPort, SideCall
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.find import Launcher
from ra.tools.settings import Edits
from ra.tools.shell import Shell
from ra.tools.tool import Mistake, Output, Tool
from ra.tools.toolbox import Toolbox, open_toolbox
from ra.tools.workspace import Workspace

if TYPE_CHECKING:
    from ra.config.discovered import DiscoveredFiles
    from ra.tools.mcp.servers import Servers

READ_ONLY = ("Entry", "Glob", "Grep", "LS", "Read", "Recall", "Skill")
_CHANGING = ("Agent", "Bash", "Edit", "WebFetch", "Write", "mcp__*")


def allowed(resolved: Resolved) -> Allowed:
    """The rules that the user allowed permanently when asked."""
    return Allowed(resolved.data_dir / "allowed.json")


def rules(resolved: Resolved, options: Options) -> tuple[Rule, ...]:
    """The rules of flags, the configuration and earlier answers. Deny is stronger than ask, and ask than allow."""
    if options.read_only:
        denied, permitted = (*options.deny, *_CHANGING), allowed(resolved).rules(resolved.root)
    else:
        denied, permitted = options.deny, (*options.allow, *allowed(resolved).rules(resolved.root))
    return (
        *(parse_rule(text, "deny") for text in denied),
        *(parse_rule(text, "allow") for text in permitted),
        *rules_from(resolved.config.agent.permissions.rules),
    )


def edits(resolved: Resolved, options: Options) -> Edits:
    """How the file tools' writes are handled: as the user says, else `ask` on a terminal and `off` elsewhere."""
    return _stated_edits(resolved, options) or ("ask" if options.terminal else "off")


def _stated_edits(resolved: Resolved, options: Options) -> Edits | None:
    return "off" if options.read_only else options.edits or resolved.config.agent.permissions.edits


def host(resolved: Resolved, env: Mapping[str, str]) -> Host:
    """What a sandbox has besides the project: a private home, and none of ra's configuration and data."""
    root = resolved.root.resolve()
    files = [path for path in resolved.files if root not in path.resolve().parents]
    hidden = (resolved.data_dir, paths.user_file(env).parent, *files)
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    readable = (*resolved.config.agent.permissions.sandbox.readable, *_wiki_folders(resolved))
    home = resolved.data_dir.absolute() / "homes" / name
    return Host(tuple(str(path.absolute()) for path in hidden), readable, str(home), env)


def commands_env(resolved: Resolved, env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of the model's commands. With a wiki, it names the wiki's folders and has `agentx` on PATH.

    The configuration that names the wiki is hidden in a sandbox.
    """
    dirs = resolved.config.session.wiki.dirs
    if not dirs:
        return env
    path = env.get("PATH", os.defpath)
    own_programs = str(Path(sys.executable).parent)
    if shutil.which("agentx", path=path) is None:
        path = os.pathsep.join((path, own_programs))
    return {**env, "PATH": path, WIKI_DIRS: os.pathsep.join(dirs)}


def _wiki_folders(resolved: Resolved) -> Sequence[str]:
    """The folders that `agentx wiki query` reads in a sandbox: the wiki, and the program itself."""
    dirs = resolved.config.session.wiki.dirs
    if not dirs:
        return ()
    program = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))
    inside = f"{resolved.root.resolve()}{os.sep}"
    return [path for path in (*dirs, *program) if not os.path.realpath(path).startswith(inside)]


class Keeper:
    """Stores the rules that the user allows permanently in one project."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved

    def remember(self, rule: Rule) -> None:
        allowed(self._resolved).add(self._resolved.root, str(rule))


class NoSession:
    """The session of a toolbox that only explains permissions: no tool is run."""

    def entries(self) -> Sequence[Entry]:
        return ()

    async def recall(self, query: str) -> str:
        raise AssertionError("a call that is explained is not run")

    async def run_agent(self, task: str) -> Output:
        raise AssertionError("a call that is explained is not run")

    async def ask_model(self, call: SideCall) -> Reply:
        raise AssertionError("a call that is explained is not run")


class Toolboxes:
    """Creates the toolboxes for the sessions of one configuration. `mcp` are its servers, if it has any."""

    def __init__(
        self,
        resolved: Resolved,
        options: Options,
        env: Mapping[str, str],
        notices: Notices,
        mcp: "Servers | None" = None,
        files: "DiscoveredFiles | None" = None,
        tools: Sequence[Tool] = (),
    ) -> None:
        self._resolved = resolved
        self._options = options
        self._env = env
        self._notices = notices
        self._mcp = mcp
        self._files = files
        self._tools = tuple(tools)  # defined by the program that uses the library

    def toolbox(self, session: SessionPort, *, offered: bool = True, nested: bool = False) -> Toolbox:
        """`offered`: the model can use tools. `nested`: for a sub-agent, which cannot start sub-agents."""
        resolved, options, settings = self._resolved, self._options, self._resolved.config.agent
        offered = offered and options.tools
        custom = self._custom()
        tool_options = options_of(settings.tools, str(resolved.root), tuple(tool.name for tool in custom))
        project = self._project(tool_options)
        env = commands_env(resolved, self._env)
        launcher = Launcher(options.sandbox, project, host=host(resolved, env))
        child_env = clean(env, tool_options.get("Bash", ToolOptions()).env)
        workspace = Workspace(
            project=project,
            approvals=Approvals(
                rules(resolved, options), edits=project.edits, read_only=project.read_only, keeper=Keeper(resolved)
            ),
            shell=Shell(project, child_env, launcher, timeout_s=settings.tool_timeout),
            session=session,
            sub_agents=not nested,
            timeout_s=settings.tool_timeout,
        )
        toolbox = open_toolbox(
            workspace, custom, options=tool_options, offered=offered, servers=self._mcp if offered else None
        )
        if options.read_only:
            toolbox.deny(spec.name for spec in toolbox.specs if spec.name not in READ_ONLY)
        self._warn_of_rules(toolbox)
        return toolbox

    def _project(self, tool_options: Mapping[str, ToolOptions]) -> Project:
        """The project as the tools see it: its folders, and which writes need a question."""
        resolved, options = self._resolved, self._options
        guarded = self._files.guarded if self._files else ()
        return Project(
            str(resolved.root),
            str(resolved.cwd),
            self._env.get("HOME", ""),
            edits(resolved, options),
            read_only=_stated_edits(resolved, options) == "off",
            container=options.sandbox == "off",
            roots={name: option.root_dir for name, option in tool_options.items() if option.root_dir},
            instructions=tuple(dict.fromkeys((*INSTRUCTION_FILES, *resolved.config.agent.context.patterns, *guarded))),
            runs=_obeyed(resolved, options),
            programs=tuple(paths.programs(self._env, resolved.root)),
        )

    def _custom(self) -> list[Tool]:
        """The tools that are not built in: the user's, the calling program's, and the one that reads skills."""
        tools = [*_custom_tools(self._resolved, self._env), *self._tools]
        names = {tool.name for tool in tools}
        skill = self._files.tools() if self._files else ()
        return [*tools, *(tool for tool in skill if tool.name not in names)]

    def explain(self, call: ToolCall) -> tuple[Explanation, str]:
        """What would happen to a call, and its sandbox. Calls of MCP servers are judged by name. Runs nothing.

        Raises UserError for a call that cannot be made.
        """
        toolbox = self.toolbox(NoSession())
        project = toolbox.project_for(call.name)
        box = toolbox.box if call.name == "Bash" else None
        try:
            explanation = explain(call, toolbox.rules, project)
        except Mistake as mistake:
            raise UserError(str(mistake)) from mistake
        finally:
            if box:
                box.close()
        return explanation, (box.name if box else "none") + (f" ({project.trouble})" if project.trouble else "")

    def _warn_of_rules(self, toolbox: Toolbox) -> None:
        """Warn about rules for unknown tools. A flag with a misspelt tool is refused."""
        flags = (*self._options.allow, *self._options.deny)
        for rule in toolbox.rules:
            if rule.tool not in toolbox.known and "*" not in rule.tool and not rule.tool.startswith("mcp__"):
                if str(rule) in flags and (meant := self._meant_rule(rule, toolbox)):
                    raise ConfigError(
                        f"{rule.action} rule {str(rule)!r}: no tool is called {rule.tool!r}; did you mean {meant!r}?"
                    )
                self._notices.warn(
                    f"The {rule.action} rule {rule} has no effect: there is no tool {rule.tool!r}; "
                    f"tools: {', '.join(sorted(toolbox.known))}."
                )

    def _meant_rule(self, rule: Rule, toolbox: Toolbox) -> str:
        """The rule that was probably meant: Bash(rm:*) for `Bsh(rm:*)` and for `rm`. Empty for an unknown tool."""
        import difflib  # start-up time: only for a rule with an unknown tool

        near = difflib.get_close_matches(rule.tool, toolbox.known, n=1, cutoff=0.75)
        if near:
            return str(msgspec.structs.replace(rule, tool=near[0]))
        program = "" if rule.pattern else shutil.which(rule.tool, path=self._env.get("PATH", os.defpath))
        return f"Bash({rule.tool}:*)" if program else ""


def _custom_tools(resolved: Resolved, env: Mapping[str, str]) -> list[Tool]:
    """`agent.tools.custom`: functions of Python files, and scripts."""
    paths = resolved.config.agent.tools.get("custom", ())
    if not paths:
        return []
    from ra.tools.functions import function_tool
    from ra.tools.scripts import script_tool

    tools: list[Tool] = []
    for path in paths:
        if path.endswith(".py"):
            module = plugins.load(path, base=resolved.root)
            public = [item for name, item in vars(module).items() if not name.startswith("_")]
            tools += [function_tool(item) for item in public if getattr(item, "__module__", "") == module.__name__]
        else:
            settings = resolved.config.agent.tools.get(Path(path).stem)
            passed = clean(env, tuple(settings.get("env", ()))) if isinstance(settings, dict) else clean(env)
            timeout_s = resolved.config.agent.tool_timeout
            tools.append(script_tool(path, cwd=str(resolved.root), env=passed, timeout_s=timeout_s))
    return tools


def _obeyed(resolved: Resolved, options: Options) -> tuple[str, ...]:
    """Files of the project that run outside any sandbox: hooks and scripts, an agent file, ra's own environment."""
    root, file = resolved.root, options.agent_file
    named: tuple[str, ...] = ()
    if file:
        from ra.config.reach import reach  # start-up time: only with an agent file

        named = trust.guarded(reach((str(resolved.cwd / Path(file).expanduser()),), str(root.resolve())), root)
    places = (Path(sys.prefix).resolve(), Path(__file__).resolve().parents[1])
    return (*resolved.runs, *named, *(str(place) for place in places if root.resolve() in place.parents))
