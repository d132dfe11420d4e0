"""The tools of a session, and what becomes of a call: validate → decide → ask → run → Done."""

import asyncio
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from ra.core.asking import Asker, FieldValue, Question
from ra.core.errors import ConfigError, HookFailed, RaError, Stopped, UsageError
from ra.core.events import Event, FileChange, ToolOutput, Warned
from ra.core.facts import Fact
from ra.core.functions import Emit
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.model import Reply, ToolSpec
from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value
from ra.system.environment import clean
from ra.tools.kit import Kit
from ra.tools.options import ToolOptions, options_of
from ra.tools.policy.paths import Project, one_answer, shown
from ra.tools.policy.permissions import Allow, Ask, Deny, decide
from ra.tools.policy.rules import BUILTIN, Rule, SessionRules, parse_rule
from ra.tools.port import Form, RuleKeeper, SessionPort, SideCall
from ra.tools.sandbox.box import NOWHERE, Access, Box, Host
from ra.tools.sandbox.find import Launcher
from ra.tools.settings import Edits, Sandbox, ToolSettings
from ra.tools.shell import Shell
from ra.tools.tool import Mistake, Output, Tool, read_args, text_output, usage
from ra.tools.undo import Undo

if TYPE_CHECKING:
    from ra.tools.mcp.running import RunningCalls
    from ra.tools.mcp.servers import Servers


_NEEDS = {"Job": "Bash"}
"""A tool that is of no use without another is off where that is."""


class Done(Value, frozen=True):
    """What a call came to. The loop records the result, then the facts."""

    result: ToolResult
    facts: tuple[Fact, ...] = ()
    change: FileChange | None = None


class Toolbox:
    """The tools of one session. `close` ends what still runs in the background.

    `session` answers for the tools that work on the conversation; without one they are not there. `agents`: it may run
    sub-agents. `offered`: the model has tools at all. `edits`: what becomes of writes by the file tools in the project.
    `read_only`: nothing may change the project, commands included. `hidden`: folders that a sandbox must not show,
    such as ra's own data. `keeper` keeps the rules that the user wants to hold in this project.
    """

    def __init__(
        self,
        *,
        root: str,
        cwd: str | None = None,
        home: str = "",
        env: Mapping[str, str] | None = None,
        rules: Sequence[Rule] = (),
        edits: Edits = "off",
        read_only: bool = False,
        sandbox: Sandbox = "auto",
        host: Host = NOWHERE,
        instructions: tuple[str, ...] = INSTRUCTION_FILES,
        runs: tuple[str, ...] = (),
        programs: tuple[str, ...] = (),
        tool_timeout_s: float = 120,
        settings: ToolSettings | None = None,
        session: SessionPort | None = None,
        agents: bool = True,
        offered: bool = True,
        custom: Sequence[Tool] = (),
        mcp: "Servers | None" = None,
        keeper: RuleKeeper | None = None,
    ) -> None:
        options = options_of(settings or {}, root, tuple(tool.name for tool in custom))
        roots = {name: option.root_dir for name, option in options.items() if option.root_dir}
        self.undo = Undo()
        self.place = Project(
            root,
            cwd or root,
            home,
            edits,
            read_only,
            container=sandbox == "off",
            roots=roots,
            instructions=instructions,
            runs=runs,
            programs=programs,
        )
        self._rules = SessionRules(rules, edits)
        self._launcher = Launcher(sandbox, self.place, host=host)
        child_env = clean(env or {}, options.get("Bash", ToolOptions()).env)
        self.shell = Shell(self.place, child_env, self._launcher, timeout_s=tool_timeout_s)
        self._timeout_s = tool_timeout_s
        self._keeper = keeper
        self._asking = asyncio.Lock()
        kit = Kit(self.place, self._rules, self.undo, self.shell, tool_timeout_s, session, agents)
        builtin = {tool.name: tool for tool in _builtin(kit)}
        if taken := [tool.name for tool in custom if tool.name in builtin]:
            raise ConfigError(f"agent.tools.custom: the name {taken[0]} is taken by a built-in tool; choose another.")
        names = [tool.name for tool in custom]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise ConfigError(f"agent.tools.custom: two tools are named {twice[0]}; rename one.")
        self._mcp = mcp
        self._session = session
        self._running = _running_calls() if mcp else None
        self._own = (*builtin.values(), *custom)
        free = [tool.name for tool in builtin.values() if tool.free]
        self._free = (*free, *(tool.name for tool in custom))
        self._options = options
        self._offered = offered
        self._foreign = mcp.join(self) if mcp else ()
        self._listings = mcp.current if mcp else None
        self._offer()

    def _offer(self) -> None:
        """What the model has is what is ours and what servers offer, without what is turned off."""
        lists = [tool.name for tool in self._foreign if tool.passes_on]
        self.place = msgspec.structs.replace(self.place, free=(*self._free, *lists))
        every_tool = {tool.name: tool for tool in (*self._foreign, *self._own)}
        self.known = frozenset((*BUILTIN, *every_tool))  # names that a rule may speak of, also of tools that are off
        self._tools = self._usual = {
            name: every_tool[name] for name in sorted(every_tool) if self._offered and self._enabled(name)
        }

    def _enabled(self, name: str) -> bool:
        return all(self._options.get(needed, ToolOptions()).enabled for needed in (name, _NEEDS.get(name, name)))

    def refresh(self) -> bool:
        """Take over what MCP servers offer by now. Whether requests must tell of other tools than before.

        That costs the cached prefix, so it is done for what the model could not use else: a tool that is new, or takes
        other arguments. One that is gone says so when it is called, until there is such a reason.
        """
        if self._mcp is None or self._mcp.current is self._listings or self._tools is not self._usual:
            return False
        from ra.tools.mcp.offered import as_told  # only for those who have servers

        self._listings = self._mcp.current
        before = self._tools
        fresh = self._mcp.tools(self)
        needed = any(
            tool.listed
            and self._offered
            and self._enabled(tool.name)
            and not (tool.name in before and before[tool.name].told_like(tool))
            for tool in fresh
        )
        self._foreign = fresh if needed else tuple(as_told(self._foreign, fresh))
        self._offer()
        return needed

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules.rules

    @property
    def edits(self) -> Edits:
        """What becomes of writes by the file tools in the project, as the user has it now."""
        return "off" if self.place.read_only else self._rules.edits

    def set_edits(self, edits: Edits) -> None:
        """For the rest of the session. Raises UsageError where the session was started with edits off."""
        if self.place.read_only and edits != "off":
            raise UsageError("This session was started with edits off; start ra with --edits ask.")
        self._rules.edits = edits

    def offering(self, tools: Sequence[Tool]) -> "Toolbox":
        """A toolbox with exactly these tools, which shares everything else with this one.

        They are tools of this session, and what the caller brought, which is as free as custom tools are. Where tools
        are off they stay off. Only one of the toolboxes that share needs to be closed.
        """
        if not self._offered:
            return self
        brought = [tool for tool in tools if tool is not self._usual.get(tool.name)]
        names = [tool.name for tool in tools]
        if taken := [tool.name for tool in brought if tool.name in self._usual or names.count(tool.name) > 1]:
            raise UsageError(f"The name {taken[0]} is taken by another tool; choose another.")
        toolbox = copy.copy(self)
        free = (*self.place.free, *(tool.name for tool in brought))
        toolbox.place = msgspec.structs.replace(self.place, free=free)
        toolbox._tools = {name: tool for name in sorted(names) for tool in tools if tool.name == name}
        return toolbox

    def take_over(self, other: "Toolbox") -> None:
        """Go on with what another toolbox was allowed in this session, and with what it can undo."""
        self._rules.take_over(other._rules)
        self.undo.take_over(other.undo)

    def deny(self, names: Iterable[str]) -> None:
        """Refuse these tools from now on, whatever other rules say."""
        self._rules.add(*(Rule("deny", name) for name in names))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values() if tool.listed)

    @property
    def box(self) -> Box | None:
        """The sandbox of Bash, looked for (and tested) at its first use."""
        return self._launcher.box

    def reads_only(self, call: ToolCall) -> bool:
        """Whether the call may run beside others."""
        tool = self._tools.get(self._meant(call).name)
        return bool(tool and tool.reads_only)

    def polls(self, call: ToolCall) -> bool:
        """Whether the call may be repeated as it is: it asks what happened since."""
        tool = self._tools.get(call.name)
        return bool(tool and tool.polls)

    async def run(self, call: ToolCall, *, ask: Asker | None = None, emit: Emit | None = None) -> Done:
        """Whatever goes wrong in a tool is an error result, a defect of the tool too: no call ends a run.

        Raises Stopped and HookFailed, which are about the run.
        """
        emit = emit or _unheard
        try:
            with one_answer():
                output = await self._run(call, ask, emit)
        except Mistake as mistake:
            output = text_output(str(mistake), is_error=True)
        except OSError as error:
            output = text_output(f"{call.name} failed: {error.strerror or error}.", is_error=True)
        except MemoryError:
            output = text_output(f"{call.name} ran out of memory. Ask for less at a time.", is_error=True)
        except (Stopped, HookFailed):
            raise
        except RaError as error:
            output = text_output(f"{call.name} failed: {error}", is_error=True)
        except Exception as error:  # noqa: BLE001 - the run goes on, and both the model and the user are told
            trouble = f"{call.name} failed unexpectedly: {type(error).__name__}: {shown(str(error))[:500]}"
            emit(Warned(f"{trouble}. The run goes on."))
            output = text_output(f"{trouble}. Go on without it, or call it differently.", is_error=True)
        result = ToolResult(call.id, call.name, output.content, output.is_error)
        return Done(result, output.facts, output.change)

    async def close(self) -> list[str]:
        """Let go of everything. One line for each thing that the user should know of what was ended with it."""
        notes = await self.shell.close()
        self._launcher.close()
        if self._mcp:
            await self._mcp.leave()
        return notes

    async def _run(self, call: ToolCall, ask: Asker | None, emit: Emit) -> Output:
        call = self._meant(call)
        tool, args, checked, note = self._check(call)
        decision = decide(checked, self.rules, place := self.place_of(call.name))
        if isinstance(decision, Ask) and ask:
            checked, edited = await self._ask(checked, decision, place, ask)
            if edited:
                note = f"{note} (The user changed the call to {msgspec.json.encode(checked.args).decode()}.)".strip()
                tool, args, checked, _ = self._check(checked)
                decision = decide(checked, self.rules, place := self.place_of(call.name))
            if not isinstance(decision, Deny):
                boxed = place.boxed or place.trouble
                outside = call.name == "Bash" and (not boxed or checked.args.get("outside") is True)
                git = isinstance(decision, Ask) and decision.git
                decision = Allow("the user said yes", outside=outside, git=git)
        if not isinstance(decision, Allow):
            raise self._refuse(call, decision, emit)
        limit_s = None if tool.own_timeout else self._timeout_s
        try:
            output: str | Output
            async with asyncio.timeout(limit_s) as deadline:
                if self._running:
                    self._running.begin(call, deadline, ask, emit)
                if call.name == "Bash":
                    access = Access(decision.outside, decision.network, decision.git)
                    output = await self.shell.run(args, _Heard(call.id, emit), access)
                else:
                    output = await tool.run(args, _Heard(call.id, emit))
        except TimeoutError as error:
            raise Mistake(f"{call.name} did not end within {limit_s:g} s.") from error
        finally:
            if self._running:
                self._running.end(call)
        if isinstance(output, str):
            output = text_output(output)
        return msgspec.structs.replace(output, content=(*output.content, Text(note))) if note else output

    def place_of(self, tool: str) -> Project:
        """Where a tool works now. A sandbox that cannot hold the project as it is counts as none."""
        if tool != "Bash":
            return msgspec.structs.replace(self.place, edits=self._rules.edits)
        trouble = self.box.trouble if self.box else ""
        boxed = bool(self.box and not trouble)
        return msgspec.structs.replace(self.place, boxed=boxed, trouble=trouble, cwd=self.shell.cwd)

    def _meant(self, call: ToolCall) -> ToolCall:
        """The call that is really made, when a tool passes it on to another."""
        tool = self._tools.get(call.name)
        passed_on = tool.passes_on(call.args) if tool and tool.passes_on and not call.broken else None
        return ToolCall(call.id, *passed_on) if passed_on else call

    def _check(self, call: ToolCall) -> tuple[Tool, Any, ToolCall, str]:
        """The tool, its arguments, the call as it will be judged and run, and a word on what was ignored."""
        tool = self._tools.get(call.name)
        if tool is None:
            similar_name = next((name for name in self._tools if name.casefold() == call.name.casefold()), "")
            hint = f" Did you mean {similar_name}?" if similar_name else ""
            listed = ", ".join(name for name, tool in self._tools.items() if tool.listed)
            raise Mistake(f"There is no tool {shown(call.name)!r}.{hint} Tools: {listed}.")
        if call.broken:
            raise Mistake(
                f"The arguments are not a JSON object, or nest too deeply: {call.broken[:200]!r}. {usage(tool.spec)} "
                "Nothing was run."
            )
        args, note = read_args(tool, call.args)
        checked = msgspec.to_builtins(args) if tool.args else call.args
        return tool, args, ToolCall(call.id, call.name, checked), note

    async def _ask(self, call: ToolCall, decision: Ask, place: Project, ask: Asker) -> tuple[ToolCall, bool]:
        """The call as the user wants it, and whether that differs. Raises Mistake when the answer is no."""
        async with self._asking:  # one question at a time, also for calls that run side by side
            if isinstance(decide(call, self.rules, self.place_of(call.name)), Allow):
                return call, False  # an answer in between has allowed it
            from ra.tools.policy.preview import planned_change, preview  # difflib, only for a question

            change = planned_change(call, place)
            text = preview(call, change, cwd=place.cwd, outside=decision.outside)
            answer = await ask(Question(call, decision.reason, text, change, edits=decision.edits))
            if answer.verdict == "no" and answer.why:
                raise Mistake(f"The user said no: {answer.why}")
            if answer.verdict == "no":
                raise Mistake("The user said no. Ask what to do instead, or go on without it.")
            if answer.verdict == "session" and decision.edits:
                self.set_edits("auto")
            elif answer.verdict in ("session", "project") and decision.rule and not answer.edited:
                rule = parse_rule(decision.rule, "allow")
                self._rules.add(rule)
                if answer.verdict == "project" and self._keeper:
                    self._keeper.remember(rule)
        edited = answer.edited
        return (ToolCall(call.id, call.name, edited.args), True) if edited and edited != call else (call, False)

    async def fill_in(self, server: str, form: Form) -> dict[str, FieldValue] | None:
        """What the user answers a server; None for a no, and where nobody can be asked."""
        from ra.tools.mcp.naming import server_name  # only for those who have servers

        prefix = server_name(server)
        call = ToolCall("", f"{prefix}__elicitation", {})
        running = self._running.of(prefix) if self._running else None
        if self._running is None or running is None or isinstance(decide(call, self.rules, self.place), Deny):
            return None
        if running.ask is None:
            words = f"The MCP server {server} asks: {shown(form.message)[:200]}"
            running.emit(Warned(f"{words} It was told no: run ra on a terminal to answer."))
            return None
        reason = f"the MCP server {server} asks you, and gets the answer"
        words = "\n".join(filter(None, (form.message, form.url)))
        question = Question(call, reason, words, form=True, fields=form.fields)
        with self._running.paused(prefix):
            async with self._asking:
                answer = await running.ask(question)
        if answer.verdict == "no":
            return None
        filled = ((field.name, answer.values.get(field.name, field.default)) for field in form.fields)
        values: dict[str, FieldValue] = {name: value for name, value in filled if value is not None}
        return None if any(field.required and field.name not in values for field in form.fields) else values

    async def ask_model(self, server: str, call: SideCall) -> Reply:
        """An answer of the model for a server. A rule or the user allows it, as if it were a call. Raises Mistake."""
        from ra.tools.mcp.naming import server_name  # only for those who have servers

        prefix = server_name(server)
        running = self._running.of(prefix) if self._running else None
        if self._running is None or running is None or self._session is None:
            raise Mistake("There is no model to ask.")
        args = {"prompt": call.messages[-1].text, "system": call.system, "max_tokens": call.max_output}
        asked = ToolCall("", f"{prefix}__sampling", {name: arg for name, arg in args.items() if arg})
        decision = decide(asked, self.rules, self.place)
        with self._running.paused(prefix):
            if isinstance(decision, Ask) and running.ask is not None:
                why = f"the MCP server {server} wants an answer of your model, which you pay"
                decision = msgspec.structs.replace(decision, reason=why)
                _, edited = await self._ask(asked, decision, self.place, running.ask)
                if edited:
                    raise Mistake("The user wants another request.")
            elif not isinstance(decision, Allow):
                raise self._refuse(asked, decision, running.emit)
            try:
                return await self._session.ask_model(call)
            except RaError as error:
                raise Mistake(f"The model gave no answer: {error}") from error

    def _refuse(self, call: ToolCall, decision: Ask | Deny, emit: Emit) -> Mistake:
        way = ""
        if isinstance(decision, Ask):
            quoted = shown(decision.rule).replace("'", "'\\''")
            way = f" To allow it: --allow '{quoted}'." if decision.rule else " Run ra on a terminal to be asked."
            if call.name == "Bash" and (not self.box or self.box.trouble):
                way += " Or install bubblewrap: in a sandbox commands run without a question."
        subject = call.args.get("command") or call.args.get("path") or call.args.get("url") or ""
        emit(Warned(f"{call.name} {shown(str(subject))[:200]} was refused: {decision.reason}.{way}"))
        return Mistake(
            f"Refused: {decision.reason}. Do not try to get around this; go on without it, or tell the user."
        )


class _Heard:
    """Passes on what a call shows while it runs."""

    def __init__(self, call: str, emit: Emit) -> None:
        self._call = call
        self._emit = emit

    def __call__(self, text: str) -> None:
        self._emit(ToolOutput(self._call, text))


def _builtin(kit: Kit) -> Iterator[Tool]:
    """The tools of `ra.tools.builtin`, one module each, that this session has the means for."""
    for name in BUILTIN:
        make: Callable[[Kit], Tool | None] = import_module(f"ra.tools.builtin.{name.lower()}").tool
        if (tool := make(kit)) is not None:
            yield tool


def _running_calls() -> "RunningCalls":
    from ra.tools.mcp.running import RunningCalls  # only for those who have servers

    return RunningCalls()


def _unheard(event: Event) -> None:
    """Nobody listens."""
