"""What may the model do, and what becomes of a call? Validate → decide → ask → run → Done."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from ra.core.asking import Asker, Question
from ra.core.errors import ConfigError, UsageError
from ra.core.events import Event, ToolOutput, Warned
from ra.core.facts import Entry, Fact
from ra.core.functions import Emit
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.model import ToolSpec
from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value
from ra.tools.builtin.bash import Shell
from ra.tools.environment import clean
from ra.tools.kit import Fetch, Kit, Recall, RunAgent
from ra.tools.options import ToolOptions, options_of
from ra.tools.paths import Place, one_answer, shown
from ra.tools.permissions import Allow, Ask, Deny, decide
from ra.tools.process import Launch
from ra.tools.rules import BUILTIN, Rule, parse_rule
from ra.tools.sandbox.find import Box, find_sandbox
from ra.tools.settings import Sandbox, ToolSettings
from ra.tools.tool import Mistake, Output, Tool, read_args, text_output, usage
from ra.tools.undo import Undo

if TYPE_CHECKING:
    from ra.tools.mcp.servers import Servers


class Done(Value, frozen=True):
    """What a call came to. The loop records the result, then the facts."""

    result: ToolResult
    facts: tuple[Fact, ...] = ()


class Toolbox:
    """The tools of one session. `close` ends what still runs in the background.

    `writes`: file tools may write in the project without a question (a terminal, or --write). `hidden`: folders that
    a sandbox must not show, such as ra's own data. `remember` is told of a rule that the user wants kept for the
    project. Tools whose callable is None are not there.
    """

    def __init__(
        self,
        *,
        root: str,
        cwd: str | None = None,
        home: str = "",
        env: Mapping[str, str] | None = None,
        rules: Sequence[Rule] = (),
        writes: bool = False,
        sandbox: Sandbox = "auto",
        hidden: Sequence[str] = (),
        instructions: tuple[str, ...] = INSTRUCTION_FILES,
        runs: tuple[str, ...] = (),
        tool_timeout_s: float = 120,
        settings: ToolSettings | None = None,
        recall: Recall | None = None,
        entries: Callable[[], Sequence[Entry]] | None = None,
        agent: RunAgent | None = None,
        fetch: Fetch | None = None,
        custom: Sequence[Tool] = (),
        mcp: "Servers | None" = None,
        remember: Callable[[Rule], None] | None = None,
    ) -> None:
        options = options_of(settings or {}, root, tuple(tool.name for tool in custom))
        roots = {name: option.root_dir for name, option in options.items() if option.root_dir}
        self.rules = tuple(rules)
        self.undo = Undo()
        self.place = Place(root, cwd or root, home, writes, roots=roots, instructions=instructions, runs=runs)
        env = clean(env or {}, options.get("Bash", ToolOptions()).env)
        self.shell = Shell(self.place, env, self._launch, timeout_s=tool_timeout_s)
        self._sandbox, self._hidden = sandbox, tuple(hidden)
        self._box: Box | None = None
        self._box_sought = False
        self._timeout_s = tool_timeout_s
        self._remember = remember
        self._asking = asyncio.Lock()
        kit = Kit(self.place, self.undo, self.shell, tool_timeout_s, self._readable, recall, entries, agent, fetch)
        own = {tool.name: tool for tool in _builtin(kit)}
        if taken := [tool.name for tool in custom if tool.name in own]:
            raise ConfigError(f"agent.tools.custom: the name {taken[0]} is taken by a built-in tool; choose another.")
        self._mcp = mcp
        foreign = mcp.join() if mcp else ()
        free = [tool.name for tool in own.values() if tool.free]
        lists = [tool.name for tool in foreign if tool.passes_on]
        self.place = msgspec.structs.replace(self.place, free=(*free, *(tool.name for tool in custom), *lists))
        everything = {tool.name: tool for tool in (*foreign, *own.values(), *custom)}
        self.known = frozenset((*BUILTIN, *everything))  # names that a rule may speak of, also of tools that are off
        self._tools = {
            name: everything[name] for name in sorted(everything) if options.get(name, ToolOptions()).enabled
        }
        self._usual, self._free = self._tools, self.place.free

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def use(self, tools: Sequence[Tool]) -> None:
        """Offer exactly these from now on: ours, and what the caller brought, which is as free as custom tools are."""
        brought = [tool for tool in tools if tool is not self._usual.get(tool.name)]
        names = [tool.name for tool in tools]
        if taken := [tool.name for tool in brought if tool.name in self._usual or names.count(tool.name) > 1]:
            raise UsageError(f"The name {taken[0]} is taken by another tool; choose another.")
        free = (*self._free, *(tool.name for tool in brought))
        self.place = msgspec.structs.replace(self.place, free=free)
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values() if tool.listed)

    @property
    def box(self) -> Box | None:
        """The sandbox of Bash, looked for (and tested) at its first use."""
        if not self._box_sought:
            self._box_sought, self._box = True, find_sandbox(self._sandbox, self.place, hidden=self._hidden)
        return self._box

    def reads_only(self, call: ToolCall) -> bool:
        """Whether the call may run beside others."""
        tool = self._tools.get(self._meant(call).name)
        return bool(tool and tool.reads_only)

    async def run(self, call: ToolCall, *, ask: Asker | None = None, emit: Emit | None = None) -> Done:
        """Never raises for what a model or a file did wrong: that is an error result."""
        try:
            with one_answer():
                output = await self._run(call, ask, emit or _unheard)
        except Mistake as mistake:
            output = text_output(str(mistake), is_error=True)
        except OSError as error:
            output = text_output(f"{call.name} failed: {error.strerror or error}.", is_error=True)
        return Done(ToolResult(call.id, call.name, output.content, output.is_error), output.facts)

    async def close(self) -> None:
        await self.shell.close()
        if self._box:
            self._box.close()
        if self._mcp:
            await self._mcp.leave()

    async def _run(self, call: ToolCall, ask: Asker | None, emit: Emit) -> Output:
        call = self._meant(call)
        tool, args, checked, note = self._check(call)
        place = self._bash_place() if call.name == "Bash" else self.place
        decision = decide(checked, self.rules, place)
        if isinstance(decision, Ask) and ask:
            checked, edited = await self._ask(checked, decision, place, ask)
            if edited:
                note = f"{note} (The user changed the call to {msgspec.json.encode(checked.args).decode()}.)".strip()
                tool, args, checked, _ = self._check(checked)
                decision = decide(checked, self.rules, place)
            if not isinstance(decision, Deny):
                boxed = place.boxed or place.trouble
                outside = call.name == "Bash" and (not boxed or checked.args.get("outside") is True)
                decision = Allow("the user said yes", outside=outside)
        if not isinstance(decision, Allow):
            raise self._refuse(call, decision, emit)
        if call.name == "Bash":
            args.outside = decision.outside
        limit_s = None if tool.own_timeout else self._timeout_s
        try:
            async with asyncio.timeout(limit_s):
                output = await tool.run(args, lambda text: emit(ToolOutput(call.id, text)))
        except TimeoutError as error:
            raise Mistake(f"{call.name} did not end within {limit_s:g} s.") from error
        if isinstance(output, str):
            output = text_output(output)
        return msgspec.structs.replace(output, content=(*output.content, Text(note))) if note else output

    def _bash_place(self) -> Place:
        """Where commands run now. A sandbox that cannot hold the project as it is counts as none."""
        trouble = self.box.trouble if self.box else ""
        boxed = bool(self.box and not trouble)
        return msgspec.structs.replace(self.place, boxed=boxed, trouble=trouble, cwd=self.shell.cwd)

    def _meant(self, call: ToolCall) -> ToolCall:
        """The call that is really made, when a tool passes it on to another."""
        tool = self._tools.get(call.name)
        meant = tool.passes_on(call.args) if tool and tool.passes_on and not call.broken else None
        return ToolCall(call.id, *meant) if meant else call

    def _check(self, call: ToolCall) -> tuple[Tool, Any, ToolCall, str]:
        """The tool, its arguments, the call as it will be judged and run, and a word on what was ignored."""
        tool = self._tools.get(call.name)
        if tool is None:
            meant = next((name for name in self._tools if name.casefold() == call.name.casefold()), "")
            hint = f" Did you mean {meant}?" if meant else ""
            listed = ", ".join(name for name, tool in self._tools.items() if tool.listed)
            raise Mistake(f"There is no tool {shown(call.name)!r}.{hint} Tools: {listed}.")
        if call.broken:
            raise Mistake(
                f"The arguments are not a JSON object: {call.broken[:200]!r}. {usage(tool.spec)} Nothing was run."
            )
        args, note = read_args(tool, call.args)
        checked = msgspec.to_builtins(args) if tool.args else call.args
        return tool, args, ToolCall(call.id, call.name, checked), note

    async def _ask(self, call: ToolCall, decision: Ask, place: Place, ask: Asker) -> tuple[ToolCall, bool]:
        """The call as the user wants it, and whether that differs. Raises Mistake when the answer is no."""
        async with self._asking:  # one question at a time, also for calls that run side by side
            if isinstance(decide(call, self.rules, place), Allow):
                return call, False  # an answer in between has allowed it
            from ra.tools.preview import preview  # difflib, only for a question

            text = preview(call, place, cwd=place.cwd, outside=decision.outside)
            answer = await ask(Question(call, decision.reason, text))
            if answer.verdict == "no":
                raise Mistake("The user said no. Ask what to do instead, or go on without it.")
            if answer.verdict in ("session", "project") and decision.rule and not answer.edited:
                rule = parse_rule(decision.rule, "allow")
                self.rules = (*self.rules, rule)
                if answer.verdict == "project" and self._remember:
                    self._remember(rule)
        edited = answer.edited
        return (ToolCall(call.id, call.name, edited.args), True) if edited and edited != call else (call, False)

    def _refuse(self, call: ToolCall, decision: Ask | Deny, emit: Emit) -> Mistake:
        way = ""
        if isinstance(decision, Ask):
            quoted = shown(decision.rule).replace("'", "'\\''")
            way = f" To allow it: --allow '{quoted}'." if decision.rule else " Run ra on a terminal to be asked."
            if call.name == "Bash" and (not self.box or self.box.trouble):
                way += " Or install bubblewrap: in a sandbox commands need no word."
        subject = call.args.get("command") or call.args.get("path") or call.args.get("url") or ""
        emit(Warned(f"{call.name} {shown(str(subject))[:200]} was refused: {decision.reason}.{way}"))
        return Mistake(
            f"Refused: {decision.reason}. Do not try to get around this; go on without it, or tell the user."
        )

    def _launch(self, script: str, cwd: str, *, outside: bool) -> Launch:
        from ra.tools.sandbox.launch import under_warden  # ctypes and more, only for a command

        argv = ["bash", "--noprofile", "--norc", "-c", script]
        box = self.box
        return under_warden(argv) if outside or box is None else box.launch(argv, cwd)

    def _readable(self, path: str) -> bool:
        return isinstance(decide(ToolCall("", "Read", {"path": path}), self.rules, self.place), Allow)


def _builtin(kit: Kit) -> Iterator[Tool]:
    """The tools of `ra.tools.builtin`, one module each, that this session has the means for."""
    for name in BUILTIN:
        make: Callable[[Kit], Tool | None] = import_module(f"ra.tools.builtin.{name.lower()}").tool
        if (tool := make(kit)) is not None:
            yield tool


def _unheard(event: Event) -> None:
    """Nobody listens."""
